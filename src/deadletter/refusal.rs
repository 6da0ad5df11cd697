//! Why messages of a queue are not taken and put back, and the ways out.

use crate::broker::BrokerFacts;
use crate::deadletter::{InForce, PeekRisk, SetPolicy, set_policy};
use crate::error::{Error, ErrorKind};
use crate::topology::{QueueName, VhostName};

/// A queue whose messages somebody wants to take and put back.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The command, such as `dlq inspect`.
    pub command: &'a str,
    /// The queue's vhost.
    pub vhost: &'a VhostName,
    /// The queue.
    pub queue: &'a QueueName,
    /// What a return can do.
    pub risk: &'a PeekRisk,
    /// The broker.
    pub facts: &'a BrokerFacts,
    /// Whether an argument sets a delivery limit of 0 or more: no policy lifts it.
    pub limited_by_argument: bool,
    /// Whether a policy is in force for the queue.
    pub has_policy: bool,
}

impl<'a> Asked<'a> {
    /// A question of no command, of which only the reason matters.
    #[must_use]
    pub const fn about(
        vhost: &'a VhostName,
        queue: &'a QueueName,
        risk: &'a PeekRisk,
        facts: &'a BrokerFacts,
    ) -> Self {
        Self {
            command: "dlq inspect",
            vhost,
            queue,
            risk,
            facts,
            limited_by_argument: false,
            has_policy: false,
        }
    }
}

/// Why this is not safe, and what is; `None`: it is safe.
#[must_use]
pub fn refusal(asked: &Asked<'_>) -> Option<Error> {
    let Asked { queue, facts, .. } = asked;
    let why = match asked.risk {
        PeekRisk::Safe => return None,
        PeekRisk::Impossible => {
            return Some(
                Error::new(
                    ErrorKind::Blocked,
                    format!(
                        "queue '{queue}' is a stream: a message of it can neither be taken nor put back"
                    ),
                )
                .hint(format!(
                    "read it: mq consume {} --from first --exec …",
                    queue.shell_quoted()
                )),
            );
        }
        PeekRisk::Unknown(kind) => format!(
            "queue '{queue}' has the type '{kind}', of which it is not known what a look does"
        ),
        PeekRisk::UnknownLimit => format!(
            "queue '{queue}' is a quorum queue, and {facts} does not tell its delivery limit: each look may count, and the next one may lose messages"
        ),
        PeekRisk::LosesAtOnce { limit } => format!(
            "queue '{queue}' has the delivery limit {limit}, and {facts} loses a message at its first return: one look would lose every message it shows"
        ),
        PeekRisk::Counts { limit, .. } => format!(
            "queue '{queue}' is a quorum queue with the delivery limit {limit}, and on {facts} every look counts: a message survives {limit} of them at most and is lost by the next one"
        ),
        PeekRisk::CarriedCount { limit } => format!(
            "queue '{queue}' is a quorum queue with the delivery limit {limit}, and {facts} loses a message at its first look if it came with a higher count from the queue it died in"
        ),
    };
    Some(Error::new(ErrorKind::Blocked, why).hint(ways_out(asked).join("\n")))
}

fn ways_out(asked: &Asked<'_>) -> Vec<String> {
    let (vhost, queue) = (asked.vhost.shell_quoted(), asked.queue.shell_quoted());
    let mut ways = vec![format!(
        "on the broker's machine, without counting: rabbitmq-queues peek --vhost {vhost} {queue} 1"
    )];
    if *asked.risk == PeekRisk::UnknownLimit {
        ways.push(
            "the statistics come late: run this again in ten seconds; if they are switched off, it stays so"
                .to_owned(),
        );
    }
    let can_be_unlimited = asked.facts.unlimited_delivery_limit().is_some();
    let is_counted = matches!(
        asked.risk,
        PeekRisk::Counts { .. } | PeekRisk::CarriedCount { .. }
    );
    if can_be_unlimited && is_counted && !asked.limited_by_argument {
        ways.push(lifted(asked));
    }
    ways.push(if can_be_unlimited {
        format!(
            "for good: make it a classic queue, or quorum with `delivery_limit: unlimited`: mq topology migrate {queue} FILE"
        )
    } else {
        format!(
            "for good: make it a classic queue, or quorum without x-delivery-limit: mq topology migrate {queue} FILE"
        )
    });
    ways.push(format!(
        "knowing the risk: mq {} {queue} --even-if-it-counts",
        asked.command
    ));
    ways
}

/// How a policy lifts the limit.
fn lifted(asked: &Asked<'_>) -> String {
    let in_force = if asked.has_policy {
        InForce::Unnamed
    } else {
        InForce::None
    };
    let setting = "\"delivery-limit\":-1";
    match set_policy(asked.vhost, asked.queue, in_force, "unlimited", setting) {
        SetPolicy::Command(command) => {
            format!("at once (and wait ten seconds after it): {command}")
        }
        SetPolicy::Words(words) => format!("at once: {words}; then wait ten seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::QueueType;

    fn ways(risk: &PeekRisk, version: &str, limited_by_argument: bool, has_policy: bool) -> String {
        let error = refusal(&Asked {
            command: "dlq replay",
            vhost: &VhostName::new("my vhost").expect("name"),
            queue: &QueueName::new("orders.dlq").expect("name"),
            risk,
            facts: &BrokerFacts::new("RabbitMQ", version),
            limited_by_argument,
            has_policy,
        })
        .expect("refused");
        assert_eq!(error.kind(), ErrorKind::Blocked);
        error.to_string()
    }

    #[test]
    fn each_refusal_tells_only_ways_that_help() {
        let counts = PeekRisk::Counts {
            looks: 21,
            limit: 20,
        };
        let carried = PeekRisk::CarriedCount { limit: 20 };
        let loses = PeekRisk::LosesAtOnce { limit: -1 };
        let unknown = PeekRisk::UnknownLimit;
        let set_policy = r"set_policy --vhost 'my vhost' --apply-to queues unlimited-orders.dlq '^orders\.dlq$' '{";
        let in_policy = "in the policy that is in force";
        for (risk, version, by_argument, has_policy, said, not_said) in [
            (&counts, "4.0.5", false, false, set_policy, in_policy),
            (&carried, "4.3.6", false, false, set_policy, in_policy),
            (&counts, "4.0.5", false, true, in_policy, "set_policy"),
            (&counts, "4.0.5", true, false, "unlimited", "policy"),
            (
                &counts,
                "3.10.8",
                false,
                true,
                "without x-delivery-limit",
                "policy",
            ),
            (
                &loses,
                "3.10.8",
                false,
                false,
                "without x-delivery-limit",
                "policy",
            ),
            (&unknown, "4.0.5", false, false, "ten seconds", "policy"),
        ] {
            let told = ways(risk, version, by_argument, has_policy);
            assert!(told.contains(said), "{version} {said}\n{told}");
            assert!(!told.contains(not_said), "{version} {not_said}\n{told}");
            assert!(told.contains("rabbitmq-queues peek --vhost 'my vhost' orders.dlq 1"));
            assert!(told.contains("mq dlq replay orders.dlq --even-if-it-counts"));
        }
        let stream = ways(&PeekRisk::Impossible, "4.3.6", false, false);
        assert!(!stream.contains("--even-if-it-counts"), "{stream}");
        let other = PeekRisk::Unknown(QueueType::from_name("x-jms"));
        assert!(ways(&other, "4.3.6", false, false).contains("x-jms"));
    }
}
