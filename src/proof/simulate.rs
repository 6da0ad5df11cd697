//! A test answered without a broker.

use crate::broker::BrokerFacts;
use crate::proof::{Answer, Asked, Check, Proof};
use crate::routing::{Death, Held, Message, Router, path_words, unknown_because};
use crate::topology::{DeliveryLimit, Overflow, Queue, QueueName, QueueType, RoutingTest};

/// Most ways told of one copy.
const MOST_WAYS: usize = 20;

/// Answers every expectation of a test for a broker like `facts`.
#[must_use]
pub fn simulate(router: &Router<'_>, test: &RoutingTest, facts: Option<&BrokerFacts>) -> Proof {
    let message = Message::new(
        test.exchange.clone(),
        test.key.clone(),
        test.headers.clone(),
    );
    let checks = Asked::of(test)
        .into_iter()
        .map(|(asked, expected)| Check {
            asked,
            expected,
            simulated: answer(router, &message, asked, facts),
            live: None,
        })
        .collect();
    Proof {
        name: test.name.clone(),
        origin: test.origin.clone(),
        exchange: test.exchange.clone(),
        key: test.key.clone(),
        checks,
    }
}

fn answer(
    router: &Router<'_>,
    message: &Message,
    asked: Asked,
    facts: Option<&BrokerFacts>,
) -> Answer {
    let reached = reached(router, message);
    match (asked, &reached) {
        (Asked::Dies(death), Answer::Queues { .. }) => {
            died(router, router.publish(message), death, facts)
        }
        _ => reached,
    }
}

fn reached(router: &Router<'_>, message: &Message) -> Answer {
    let topology = router.topology();
    let exchange = &message.exchange;
    if topology
        .exchange(exchange)
        .is_some_and(|exchange| exchange.internal)
    {
        return Answer::Impossible(format!(
            "exchange '{exchange}' is internal: a broker refuses what is published to it"
        ));
    }
    let routed = router.route(message);
    if let Some(exchange) = routed.unknown.first() {
        return Answer::Unknown(unknown_because(topology, exchange));
    }
    let mut ways: Vec<String> = routed
        .queues()
        .map(|queue| {
            let path = routed.path(queue).into_iter();
            let path: Vec<_> = path.map(|(name, hop)| (name.clone(), hop)).collect();
            format!("{queue} {}", path_words(&path))
        })
        .collect();
    if ways.is_empty() {
        let key = message.keys.first().map_or("", |key| key.as_str());
        ways.push(if exchange.is_empty() {
            format!("there is no queue '{key}'")
        } else {
            format!("exchange '{exchange}' leads key '{key}' nowhere")
        });
    }
    Answer::Queues {
        queues: routed.queues().cloned().collect(),
        ways,
    }
}

fn died(
    router: &Router<'_>,
    copies: Vec<Held>,
    death: Death,
    facts: Option<&BrokerFacts>,
) -> Answer {
    let topology = router.topology();
    let mut answer: Option<Answer> = None;
    let mut reaches_streams = false;
    for held in copies {
        let queue = held.queue.clone();
        let Some(declared) = topology.effective_queue(&queue) else {
            return Answer::Unknown(format!(
                "queue '{queue}' is declared elsewhere: what becomes of a message there is not known here"
            ));
        };
        if declared.kind == Some(QueueType::Stream) {
            reaches_streams = true;
            continue;
        }
        if let Some(why) = cannot_die(&queue, &declared, death, facts) {
            return Answer::Impossible(why);
        }
        let journey = router.journey(held, death);
        if let Some(exchange) = journey.unknown().first() {
            return Answer::Unknown(unknown_because(topology, exchange));
        }
        if journey.broken_off {
            return Answer::Unknown(format!(
                "copies of what died in queue '{queue}' multiply without end"
            ));
        }
        let told = journey.told(MOST_WAYS, topology);
        let ways = told.iter().map(|way| format!("{queue}, {death} → {way}"));
        let part = Answer::Queues {
            ways: ways.collect(),
            queues: journey.rests,
        };
        answer = Some(match answer {
            Some(before) => before.and(part),
            None => part,
        });
    }
    answer.unwrap_or_else(|| {
        Answer::Impossible(if reaches_streams {
            "it reaches streams only, in which no message dies".to_owned()
        } else {
            "it reaches no queue in which it could die".to_owned()
        })
    })
}

/// Why a message cannot be made to die so in this queue (with its policies
/// merged). A message can always carry an `expiration` of its own.
#[must_use]
pub fn cannot_die(
    name: &QueueName,
    queue: &Queue,
    death: Death,
    facts: Option<&BrokerFacts>,
) -> Option<String> {
    let is_stream = queue.kind == Some(QueueType::Stream);
    if death.happens_in(queue, facts) || (death == Death::Expired && !is_stream) {
        return None;
    }
    let limited = queue.max_length.is_some() || queue.max_length_bytes.is_some();
    let why = match death {
        _ if is_stream => "is a stream, in which no message dies",
        Death::Rejected | Death::Expired => "lets no message die so",
        Death::MaxLength if limited && queue.overflow == Some(Overflow::RejectPublish) => {
            "refuses messages when it is full (reject-publish), and pushes none out"
        }
        Death::MaxLength => "has no length limit, so nothing is pushed out of it",
        Death::DeliveryLimit if queue.kind != Some(QueueType::Quorum) => {
            "is not declared as a quorum queue, and no other has a delivery limit"
        }
        Death::DeliveryLimit if queue.delivery_limit == Some(DeliveryLimit::Unlimited) => {
            "has an unlimited delivery limit"
        }
        Death::DeliveryLimit => "has no delivery limit, and before 4.0 there is none by default",
    };
    Some(format!("queue '{name}' {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologyfile::parsed as topology;

    const OBJECTS: &str = "
exchanges:
  in: { type: fanout }
  plug: { type: x-random }
  inner: { type: fanout, internal: true }
  dlx: { type: direct }
queues:
  a: { type: quorum, delivery_limit: 3, bind: [{ exchange: in }], dead_letter: { exchange: dlx, key: wait } }
  b: { type: classic, max_length: 9, bind: [{ exchange: in }], dead_letter: { exchange: '', key: end } }
  log: { type: stream, bind: [{ exchange: in }] }
  wait: { message_ttl: 1s, bind: [{ exchange: dlx, key: wait }], dead_letter: { exchange: '', key: a } }
  end: {}
  plain: { type: quorum, delivery_limit: unlimited }
  full: { max_length: 9, overflow: reject-publish }
  odd: { dead_letter: { exchange: plug } }
elsewhere: { queues: [theirs] }
";

    /// Each answer in few words, by expectation.
    fn answers(test: &str, version: &str) -> Vec<(Asked, bool, String)> {
        let topology = topology(&format!("{OBJECTS}tests:\n  - {test}\n"));
        let router = Router::new(&topology);
        let facts = BrokerFacts::new("RabbitMQ", version);
        let test = topology.tests.first().expect("a test");
        let proof = simulate(&router, test, Some(&facts));
        let checks = proof.checks.into_iter();
        checks
            .map(|check| {
                let passed = check.passed();
                let told = match check.simulated {
                    Answer::Queues { queues, .. } => {
                        let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
                        names.join(" ")
                    }
                    Answer::Impossible(why) => format!("impossible: {why}"),
                    Answer::Unknown(why) => format!("unknown: {why}"),
                };
                (check.asked, passed, told)
            })
            .collect()
    }

    fn of_queue(queue: &str, expectation: &str) -> (bool, String) {
        let test = format!("{{ publish: {{ exchange: '', key: {queue} }}, {expectation} }}");
        let (_, passed, told) = answers(&test, "4.0.5").pop().expect("an answer");
        (passed, told)
    }

    #[test]
    fn deaths_are_followed_from_every_queue_but_streams() {
        let test = "{ publish: { exchange: in }, reaches: [a, b, log], rejected: [a, end], expired: [end] }";
        let reject = Asked::Dies(Death::Rejected);
        assert_eq!(
            answers(test, "4.0.5"),
            [
                (Asked::Reaches, true, "a b log".to_owned()),
                (reject, true, "a end".to_owned()),
                (Asked::Dies(Death::Expired), true, "end".to_owned()),
            ]
        );
    }

    #[test]
    fn what_cannot_happen_fails_and_says_why() {
        for (queue, expectation, why) in [
            ("a", "max_length: []", "queue 'a' has no length limit"),
            (
                "b",
                "delivery_limit: []",
                "queue 'b' is not declared as a quorum queue",
            ),
            (
                "plain",
                "delivery_limit: []",
                "queue 'plain' has an unlimited",
            ),
            ("full", "max_length: []", "refuses messages when it is full"),
            ("log", "expired: []", "streams only"),
            ("nobody", "rejected: []", "reaches no queue"),
            (
                "theirs",
                "rejected: []",
                "queue 'theirs' is declared elsewhere",
            ),
            (
                "odd",
                "rejected: []",
                "exchange 'plug' is of the type 'x-random'",
            ),
        ] {
            let (passed, told) = of_queue(queue, expectation);
            assert!(
                !passed && told.contains(why),
                "{queue} {expectation}: {told}"
            );
        }
        for (exchange, why) in [("inner", "is internal"), ("plug", "does not simulate")] {
            let test = format!("{{ publish: {{ exchange: {exchange} }}, reaches: [] }}");
            let (_, passed, told) = answers(&test, "4.0.5").pop().expect("an answer");
            assert!(!passed && told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_loss_can_be_expected_and_a_wrong_queue_fails() {
        assert_eq!(of_queue("end", "rejected: []"), (true, String::new()));
        assert_eq!(of_queue("b", "max_length: [end]"), (true, "end".to_owned()));
        assert_eq!(of_queue("b", "max_length: []"), (false, "end".to_owned()));
        assert_eq!(of_queue("nobody", "reaches: []"), (true, String::new()));
        // Nothing but a rejection brings it back from a wait queue.
        assert_eq!(of_queue("a", "delivery_limit: []"), (true, String::new()));
    }

    #[test]
    fn the_version_decides_about_limits_nobody_set() {
        let objects = OBJECTS.replace("delivery_limit: 3, ", "");
        let topology = topology(&format!(
            "{objects}tests:\n  - {{ publish: {{ exchange: '', key: a }}, delivery_limit: [] }}\n"
        ));
        let router = Router::new(&topology);
        let test = topology.tests.first().expect("a test");
        for (version, passed) in [("3.10.8", false), ("4.0.5", true)] {
            let facts = BrokerFacts::new("RabbitMQ", version);
            let proof = simulate(&router, test, Some(&facts));
            assert_eq!(proof.passed(), passed, "{version}");
        }
        assert!(simulate(&router, test, None).passed());
    }
}
