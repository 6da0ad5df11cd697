//! What a broker of a given version does: every version question is asked here.
//!
//! The answers were measured on real nodes of 3.10.8, 4.0.5 and 4.3.6, and read
//! in RabbitMQ's source for the versions between.

use std::fmt;

/// Product and version as the broker gives them when a connection starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerFacts {
    product: String,
    version: String,
    numbers: (u32, u32, u32),
}

impl BrokerFacts {
    /// Facts of a broker. A version that is no version counts as 0.0, the
    /// oldest and most careful answer to every question.
    #[must_use]
    pub fn new(product: impl Into<String>, version: impl Into<String>) -> Self {
        let version = version.into();
        let mut parts = version
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        let numbers = (next(), next(), next());
        Self {
            product: product.into(),
            version,
            numbers,
        }
    }

    /// The version as the broker wrote it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Major and minor version: what releases are called after.
    #[must_use]
    pub fn series(&self) -> (u32, u32) {
        (self.numbers.0, self.numbers.1)
    }

    /// Whether a prefetch for the whole channel (global QoS) can be in force and
    /// shows nowhere in the management API: 3.10.8 tells it as
    /// `global_prefetch_count`, 4.0.5 does not, and 4.3.6 makes it the prefetch of
    /// each consumer (measured).
    #[must_use]
    pub fn hides_channel_prefetch(&self) -> bool {
        self.numbers >= (4, 0, 0) && self.numbers < (4, 3, 0)
    }

    /// The value of `x-delivery-limit` that means "no limit"; `None`: leave it out.
    ///
    /// 4.x reads any negative number as unlimited. 3.x compares with it and
    /// loses the message at its first return (measured on 3.10.8).
    #[must_use]
    pub fn unlimited_delivery_limit(&self) -> Option<i64> {
        (self.numbers >= (4, 0, 0)).then_some(-1)
    }

    /// The limit of a quorum queue for which nobody set one: 20 since 4.0.
    #[must_use]
    pub fn default_delivery_limit(&self) -> Option<u32> {
        (self.numbers >= (4, 0, 0)).then_some(20)
    }

    /// Whether the management API tells the delivery limit of a quorum queue that
    /// is in force (a number or `"unlimited"`), since 4.0.
    #[must_use]
    pub fn tells_delivery_limits(&self) -> bool {
        self.numbers >= (4, 0, 0)
    }

    /// Whether the management API tells policies and the limit in force also
    /// without statistics, and so as they are now (measured on 4.3.6; 4.0.5 and
    /// 3.10.8 leave them out).
    #[must_use]
    pub fn tells_limits_without_statistics(&self) -> bool {
        self.numbers >= (4, 3, 0)
    }

    /// Whether a nack with requeue raises the count that a quorum queue
    /// compares with its delivery limit. Not any more since 4.3.
    #[must_use]
    pub fn requeue_counts(&self) -> bool {
        self.numbers < (4, 3, 0)
    }

    /// Whether a client's own malformed `x-death` makes the queue lose the
    /// message (quorum) or crash for ever (classic) when it is nacked.
    /// Measured on 3.10.8; gone where the broker no longer reads a client's
    /// `x-death` (4.0) and fixed in 3.13 with message containers.
    #[must_use]
    pub fn malformed_x_death_is_fatal(&self) -> bool {
        self.numbers < (3, 13, 0)
    }

    /// Whether a message with a death of its work queue that was no rejection
    /// can vanish when it comes back from a wait queue, although it was rejected
    /// since. Before 3.13 the order of deaths behind the newest is not reliable,
    /// and the broker's cycle detection goes by it (measured on 3.10.8).
    #[must_use]
    pub fn older_deaths_are_fatal(&self) -> bool {
        self.numbers < (3, 13, 0)
    }

    /// Whether a nack without requeue raises a quorum queue's delivery count,
    /// which then comes along through dead-lettering (measured on 4.0.5; not so
    /// on 3.10.8 and 4.3.6).
    #[must_use]
    pub fn nacks_raise_the_delivery_count(&self) -> bool {
        self.numbers >= (4, 0, 0) && self.numbers < (4, 3, 0)
    }

    /// Whether a quorum queue's delivery count tells a consumer that crashed from
    /// one that gave a message back (measured on 3.10.8, 4.0.5 and 4.3.6).
    #[must_use]
    pub fn delivery_count_tells_crashes(&self) -> bool {
        self.numbers >= (4, 3, 0)
    }

    /// The oldest version that was measured.
    #[must_use]
    pub fn oldest_measured() -> Self {
        Self::new("RabbitMQ", "3.10.8")
    }

    /// Whether messages are kept as message containers, since 3.13. They changed
    /// what headers exchanges take for equal, the `x-last-death-` headers, and
    /// that the order of older deaths is kept (measured on 3.10.8, 4.0.5 and
    /// 4.3.6).
    #[must_use]
    pub fn has_message_containers(&self) -> bool {
        self.numbers >= (3, 13, 0)
    }

    /// The newest version that was measured: for writing down what a file asks
    /// for, where every value needs a word.
    #[must_use]
    pub fn newest_measured() -> Self {
        Self::new("RabbitMQ", "4.3.6")
    }

    /// Whether quorum queues hold returned messages back by
    /// `x-delayed-retry-*`. Older ones store the arguments and do nothing
    /// (measured on 3.10.8 and 4.0.5).
    #[must_use]
    pub fn delays_retries(&self) -> bool {
        self.numbers >= (4, 3, 0)
    }

    /// Whether policies may set `delayed-retry-*` too (release notes of 4.3.1).
    #[must_use]
    pub fn delays_retries_by_policy(&self) -> bool {
        self.numbers >= (4, 3, 1)
    }

    /// Whether a queue or policy can set its consumer timeout (release notes of 3.12.0).
    #[must_use]
    pub fn has_consumer_timeout_per_queue(&self) -> bool {
        self.numbers >= (3, 12, 0)
    }

    /// Whether only quorum queues have a consumer timeout; the others then
    /// refuse the argument (measured on 4.3.6).
    #[must_use]
    pub fn consumer_timeout_is_for_quorum_queues_only(&self) -> bool {
        self.numbers >= (4, 3, 0)
    }

    /// Whether `x-dead-letter-strategy` is known (release notes of 3.10.0).
    #[must_use]
    pub fn dead_letters_at_least_once(&self) -> bool {
        self.numbers >= (3, 10, 0)
    }

    /// Whether a policy can be for one queue type only (release notes of 3.12.0).
    #[must_use]
    pub fn has_policies_by_queue_type(&self) -> bool {
        self.numbers >= (3, 12, 0)
    }

    /// Whether vhosts have a default queue type; 3.10.8 takes the setting and
    /// does nothing (release notes of 3.12.0).
    #[must_use]
    pub fn has_default_queue_type(&self) -> bool {
        self.numbers >= (3, 12, 0)
    }

    /// How many `#` the key of a topic binding can have, where there is a limit:
    /// 4.3.6 refuses a third one, 4.0.5 takes any number (measured).
    #[must_use]
    pub fn most_hashes_in_a_topic_key(&self) -> Option<usize> {
        (self.numbers >= (4, 3, 0)).then_some(2)
    }

    /// Whether classic queues refuse `x-queue-version: 1` (measured on 4.3.6).
    #[must_use]
    pub fn refuses_classic_version_1(&self) -> bool {
        self.numbers >= (4, 3, 0)
    }

    /// Whether streams filter by `x-stream-filter-size-bytes` (release notes of
    /// 3.13.0); 3.10.8 stores it and does nothing.
    #[must_use]
    pub fn filters_streams(&self) -> bool {
        self.numbers >= (3, 13, 0)
    }
}

impl fmt::Display for BrokerFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_by_version() {
        for (version, unlimited, default, requeue_counts, fatal) in [
            ("3.10.8", None, None, true, true),
            ("3.13.7", None, None, true, false),
            ("4.0.5", Some(-1), Some(20), true, false),
            ("4.2.0-rc.1", Some(-1), Some(20), true, false),
            ("4.3.6", Some(-1), Some(20), false, false),
            ("5.0.0+dev", Some(-1), Some(20), false, false),
            ("unknown", None, None, true, true),
        ] {
            let facts = BrokerFacts::new("RabbitMQ", version);
            assert_eq!(facts.unlimited_delivery_limit(), unlimited, "{version}");
            assert_eq!(facts.default_delivery_limit(), default, "{version}");
            assert_eq!(facts.requeue_counts(), requeue_counts, "{version}");
            assert_eq!(facts.malformed_x_death_is_fatal(), fatal, "{version}");
        }
    }

    #[test]
    fn knows_when_a_setting_came() {
        for (version, timeout, delays, by_policy) in [
            ("3.10.8", false, false, false),
            ("3.12.0", true, false, false),
            ("4.0.5", true, false, false),
            ("4.3.0", true, true, false),
            ("4.3.1", true, true, true),
            ("4.10.0", true, true, true),
            ("unknown", false, false, false),
        ] {
            let facts = BrokerFacts::new("RabbitMQ", version);
            assert_eq!(facts.has_consumer_timeout_per_queue(), timeout, "{version}");
            assert_eq!(facts.delays_retries(), delays, "{version}");
            assert_eq!(facts.delays_retries_by_policy(), by_policy, "{version}");
        }
        let newest = BrokerFacts::newest_measured();
        assert!(newest.delays_retries_by_policy() && newest.refuses_classic_version_1());
        assert_eq!(newest.most_hashes_in_a_topic_key(), Some(2));
        let older = BrokerFacts::new("RabbitMQ", "4.0.5");
        assert_eq!(older.most_hashes_in_a_topic_key(), None);
    }
}
