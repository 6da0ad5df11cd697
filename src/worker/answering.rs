//! Who waits for the result of a message.

use crate::message::ResultTo;
use crate::worker::drive::Session;

impl Session<'_> {
    /// Direct replies go to a client's connection and to no queue. 3.10 and 4.0
    /// return them as unroutable and deliver them all the same (measured on
    /// 3.10.8 and 4.0.5; not so on 4.3.6).
    pub(super) fn is_direct_reply(&self, tag: u64) -> bool {
        self.deliveries
            .get(&tag)
            .and_then(|in_work| in_work.delivery.properties.reply_to.as_deref())
            .is_some_and(|reply_to| reply_to.starts_with("amq.rabbitmq.reply-to."))
    }

    /// Whether there is somebody to give a result to.
    pub(super) fn answers(&self, tag: u64) -> bool {
        match &self.wanted.results {
            None => false,
            Some(ResultTo::Exchange { .. }) => true,
            Some(ResultTo::ReplyTo) => self
                .deliveries
                .get(&tag)
                .and_then(|in_work| in_work.delivery.properties.reply_to.as_ref())
                .is_some_and(|reply_to| !reply_to.is_empty()),
        }
    }
}
