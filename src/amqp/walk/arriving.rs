//! Messages as they come in on a walk, and whether more will.

use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable as LapinTable;
use tokio::time::timeout;

use crate::amqp::consume::from_delivery;
use crate::amqp::convert::short;
use crate::amqp::failure::explain;
use crate::amqp::walk::Source;
use crate::amqp::{Taken, Walk};
use crate::error::{Error, ErrorKind, Result};

/// What is under way should be here so soon.
const SOON: Duration = Duration::from_millis(20);

/// So many times nothing came soon before no more is waited for.
const IN_VAIN: u32 = 100;

impl Walk<'_> {
    /// Whether a message came within `patience`.
    pub(super) async fn wait_for_one(&mut self, patience: Duration) -> Result<bool> {
        let Some(source) = &mut self.source else {
            return Ok(false);
        };
        match timeout(patience, source.consumer.next()).await {
            Err(_) => Ok(false),
            Ok(next) => self.arrived(next).map(|()| true),
        }
    }

    /// Waits until all that is under way to the consumer is here: as much as it has
    /// credit for, or all there is. Waits no longer for what does not come.
    pub(super) async fn have_what_is_under_way(&mut self) -> Result<()> {
        let mut in_vain = 0;
        while in_vain < IN_VAIN && self.source.as_ref().is_some_and(Source::has_credit) {
            if self.wait_for_one(SOON).await? {
                in_vain = 0;
            } else if self.is_empty().await? {
                return Ok(());
            } else {
                in_vain += 1;
            }
        }
        Ok(())
    }

    /// Whether nothing is ready any more. Then all that was handed out to us is
    /// here too: asked on the channel of the deliveries, for a large one may
    /// take longer than any pause (10 MB took more than 200 ms). Twice, because
    /// what the queue sends just before its answer the channel sends just after.
    pub(super) async fn is_empty(&self) -> Result<bool> {
        Ok(self.ready().await? == 0 && self.ready().await? == 0)
    }

    pub(super) async fn ready(&self) -> Result<u32> {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let asked = self.channel.queue_declare(
            short(self.queue.as_str(), "queue name")?,
            options,
            LapinTable::default(),
        );
        let doing = format!("look at queue '{}'", self.queue);
        let status = self.connection.within(&doing, asked).await?;
        Ok(status.message_count())
    }

    pub(super) fn arrived(
        &mut self,
        next: Option<lapin::Result<lapin::message::Delivery>>,
    ) -> Result<()> {
        let delivery = match next {
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => {
                return Err(explain(&error, &format!("consume queue '{}'", self.queue)));
            }
            None => {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "the broker ended our subscription to queue '{}'",
                        self.queue
                    ),
                )
                .hint("somebody deleted the queue, or its node went away; run this again"));
            }
        };
        if let Some(source) = &mut self.source {
            source.out += 1;
        }
        self.last = delivery.delivery_tag;
        self.behind.push_back(Taken {
            tag: delivery.delivery_tag,
            delivery: from_delivery(delivery),
        });
        Ok(())
    }
}
