//! The end of a walk: what is out goes back to where it was, in its order.

use lapin::options::BasicNackOptions;
use tokio::time::timeout;

use crate::amqp::Walk;
use crate::amqp::convert::short;
use crate::amqp::walk::{COMMANDS, QUIET};
use crate::error::Result;

/// So many times the count of a queue is the same before it counts as final.
const STILL: u32 = 10;

impl Walk<'_> {
    /// Ends the walk: sends the acks that are due, and returns what else is out
    /// to where it was. Gives how many messages were returned.
    ///
    /// A classic queue by closing the channel: it puts each where it was, and takes a
    /// nack of many thousands a hundred times longer (108 s for 100,000 on 4.0.5
    /// that were never returned before, against 0.7 s). A quorum queue on 4.3 by
    /// nacks, which do not count against a delivery limit there; on older versions,
    /// where every return counts, too, if nothing is left behind those that are out,
    /// and otherwise by closing the channel: after a nack 3.10.8 hands out what came
    /// behind first, and after a close no version does. A close returns consumer by
    /// consumer, by their tags on 3.10 and by their age on 4.0: in their order up to
    /// 32 of them (an Erlang map's; with tags of the broker's own 10,000 messages
    /// were mixed in 3 of 3 runs on 3.10.8, with ours in none).
    ///
    /// What goes back to a quorum queue stands before all that was never handed out,
    /// but behind what came back earlier and was not taken now. Nothing but taking all
    /// could change that.
    ///
    /// # Errors
    /// When the channel is gone; what was not acked returns by itself.
    pub async fn release(mut self) -> Result<u64> {
        let wanted = self.have_acks_sent_on().await?;
        let returned = self.held + self.behind.len() as u64;
        let by_nack = self.is_quorum && (self.nacks_are_free() || self.ready().await? == 0);
        if returned > 0 && by_nack {
            for tag in self.last_held_of_each() {
                self.nack_up_to(tag).await?;
            }
            self.nack_up_to(0).await?;
        }
        let closing = self.channel.close(200, short("bye", "text")?);
        self.connection.within("close a channel", closing).await?;
        self.wait_until_back(returned).await?;
        Ok(returned - wanted)
    }

    /// Ends the consumer, has all acks sent, and makes sure that the broker's channel
    /// sends them on. Gives how many messages were taken for that alone.
    async fn have_acks_sent_on(&mut self) -> Result<u64> {
        if self.left > 0 || !self.leaves_the_last() {
            self.wind_up_source().await?;
            self.send_acks().await?;
            let before = self.behind.len();
            if self.is_quorum && self.acks_sent >= COMMANDS && self.may_take_more {
                self.subscribe_for(1).await?;
                self.wind_up_source().await?;
            }
            return Ok((self.behind.len() - before) as u64);
        }
        self.send_acks().await?;
        self.wind_up_source().await?;
        self.send_acks().await?;
        Ok(0)
    }

    fn nacks_are_free(&self) -> bool {
        !self.connection.facts().requeue_counts()
    }

    /// Whether the last message is left to a consumer of its own. It has no credit
    /// for another one, and so can be ended behind the acks of all others without
    /// taking more than was asked for; but more than one consumer costs the order
    /// where messages do not go back by a nack.
    pub(super) fn leaves_the_last(&self) -> bool {
        self.is_quorum && self.may_take_more && self.nacks_are_free()
    }

    /// A classic queue tells its count before it has taken everything back:
    /// whoever came next would find only a part (measured on 4.0.5 with 100,000
    /// messages). Others may take some meanwhile, so that what no longer grows is
    /// waited for no longer.
    async fn wait_until_back(&self, returned: u64) -> Result<()> {
        let (mut most, mut quiet) = (0, 0);
        while quiet < STILL {
            let status = self.connection.queue_status(&self.queue).await?;
            let ready = status.map_or(returned, |status| status.ready.into());
            if ready >= returned {
                return Ok(());
            }
            quiet = if ready > most { 0 } else { quiet + 1 };
            most = most.max(ready);
            let _ = timeout(QUIET, std::future::pending::<()>()).await;
        }
        Ok(())
    }

    /// The last tag that is out of each consumer, in their order: what is nacked
    /// together 4.3 returns by consumer, and these in no order (measured).
    fn last_held_of_each(&self) -> Vec<u64> {
        let ends = self.spans.iter().skip(1).map(|span| span.after);
        let ends = ends.chain([u64::MAX]);
        self.spans
            .iter()
            .zip(ends)
            .map(|(span, end)| {
                let behind = self.behind.iter().map(|taken| taken.tag);
                let behind = behind
                    .filter(|tag| (span.after + 1..=end).contains(tag))
                    .max();
                let out = self.acks.last_out(span.after, end);
                span.kept.max(out.max(behind).unwrap_or_default())
            })
            .filter(|tag| *tag > 0)
            .collect()
    }

    /// Returns what is out up to this tag, or everything.
    async fn nack_up_to(&self, tag: u64) -> Result<()> {
        let all = BasicNackOptions {
            multiple: true,
            requeue: true,
        };
        let nacking = self.channel.basic_nack(tag, all);
        self.connection.within("nack", nacking).await
    }
}
