//! A session's dealings with what remembers what is done.

use crate::dedupe::{Answer, Claim, Desk};
use crate::error::Result;
use crate::worker::drive::Session;
use crate::worker::event::Event;
use crate::worker::telling::Fate;
use crate::worker::wanted::Handling;

impl Session<'_> {
    /// Asks whether the like of a message was done.
    pub(super) fn claim(&mut self, tag: u64) {
        if let (Some(desk), Some(in_work)) = (&mut self.desk, self.deliveries.get(&tag)) {
            desk.claim(tag, &in_work.delivery);
        }
    }

    /// Has it remembered that a message is done.
    pub(super) fn record(&mut self, tag: u64) {
        if let Some(desk) = &mut self.desk {
            desk.record(tag);
        }
    }

    /// What the dedupe store says.
    pub(super) async fn answered(
        &mut self,
        answer: Answer,
        handling: &mut Handling<'_>,
    ) -> Result<()> {
        match answer {
            Answer::Claimed { tag, result } => {
                if let (Ok(Claim::Done), Some(in_work)) = (&result, self.deliveries.get_mut(&tag)) {
                    in_work.acked_as = Some(Fate::Deduplicated);
                }
                self.apply(Event::Claimed { tag, result }, handling).await
            }
            Answer::Recorded { tags, result } => {
                for tag in tags {
                    let result = result.clone();
                    self.apply(Event::Recorded { tag, result }, handling)
                        .await?;
                }
                Ok(())
            }
        }
    }

    /// Its message comes again. With a memory of what is done it is then only
    /// acked, unless a result of it is still to be published.
    pub(super) fn done_unacked(&mut self, tag: u64) {
        match &mut self.desk {
            Some(desk) if self.wanted.results.is_none() => desk.record(tag),
            Some(_) | None => tracing::warn!(
                "a message was handled but could not be acknowledged; the broker will hand it out again"
            ),
        }
    }

    pub(super) async fn close_desk(&mut self) {
        if let Some(desk) = self.desk.take() {
            desk.close().await;
        }
    }
}

/// Never, where nothing is remembered.
pub(super) async fn next_answer(desk: &mut Option<Desk>) -> Answer {
    match desk {
        Some(desk) => desk.next().await,
        None => std::future::pending().await,
    }
}
