//! Every rule with its code. Codes are stable: files name them in comments.

use crate::diagnostic::Level::{Advice, Error, Warning};
use crate::lint::Rule;

macro_rules! rules {
    ($($name:ident = $code:literal $level:ident $finds:literal;)+) => {
        $(#[doc = $finds] pub const $name: Rule = Rule { code: $code, level: $level, finds: $finds };)+
        /// Every rule, by its code.
        pub const RULES: &[Rule] = &[$($name),+];
    };
}

rules! {
    USELESS_ALLOW = "MQ200" Warning "an `allow` comment that names no rule or silences nothing";
    DLX_MISSING = "MQ201" Error "a dead-letter exchange that is declared nowhere";
    DEAD_LETTERS_LOST = "MQ202" Error "dead letters that reach no queue";
    DEAD_LETTERS_PARTLY_LOST = "MQ203" Warning "dead letters of which some keys reach no queue";
    CYCLE_WITHOUT_REJECTION = "MQ204" Error "a ring of queues that messages go round by expiry alone: the broker drops them";
    OTHER_DEATH_IN_RETRY = "MQ205" Error "a retry loop on a queue that messages also leave by delivery limit or length: those are dropped";
    ENDLESS_RETRY = "MQ206" Warning "a retry loop that nothing ends";
    LOOKING_DESTROYS = "MQ207" Warning "a dead-letter queue with a delivery limit: looking often enough destroys what is in it";
    WAIT_QUEUE_EXPIRES = "MQ208" Error "a wait queue that deletes itself with what waits in it";
    NO_DEAD_LETTER_PATH = "MQ209" Warning "a work queue whose rejected messages are deleted";
    OVERFLOW_IGNORED = "MQ210" Error "`reject-publish-dlx` by policy on a quorum queue, which drops the oldest message instead";
    SILENT_DROP = "MQ211" Warning "a TTL or limit that drops messages silently, without a dead-letter exchange";
    NOT_DURABLE = "MQ212" Warning "an exchange or queue that a restart of the broker deletes";
    UNBOUNDED = "MQ213" Advice "a work queue without a length limit";
    DEAD_LETTER_QUEUE_EXPIRES = "MQ214" Warning "a dead-letter queue that deletes itself with what is in it, unused or after its last consumer";
    REFUSED_ARGUMENT = "MQ215" Error "an argument that every broker refuses for queues of this type";
    TEXT_FOR_A_NUMBER = "MQ216" Error "text where brokers look for a number";
    DEAD_LETTERS_REFUSED = "MQ217" Warning "a queue that refuses dead letters when it is full: those are dropped";
    UNREACHABLE_QUEUE = "MQ220" Warning "a queue that no exchange leads to";
    LEADS_NOWHERE = "MQ221" Warning "an exchange that leads to no queue";
    NEVER_MATCHES = "MQ222" Warning "a binding that no message can match";
    NO_WILDCARD = "MQ223" Warning "`*` or `#` where it is no wildcard";
    BAD_HEADERS_BINDING = "MQ224" Error "a headers binding with an `x-match` that brokers refuse";
    NOTHING_COMPARED = "MQ225" Warning "a headers binding that compares nothing";
    NOT_JUDGED = "MQ226" Warning "a topology too large or too tangled to be judged in full";
    UNSUPPORTED = "MQ230" Error "what this version of the broker refuses or silently leaves out";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend() {
        assert!(RULES.is_sorted_by(|a, b| a.code < b.code));
    }
}
