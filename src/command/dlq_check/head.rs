//! What only some limits ask about: how old the first message is, how fast more come.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::dlq_queues::now;
use crate::deadletter::{Coming, Inflow, Letter, Oldest, age_at};
use crate::management::{FINE, Management, ObservedQueue};
use crate::output::ListedQueue;
use crate::topology::{QueueName, VhostName};

/// The age of the first message, where a look at it is safe.
pub(super) async fn oldest(
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
    listed: &ListedQueue,
    ready: Option<u64>,
) -> Oldest {
    let unknown = |why: &str| Oldest::Unknown(why.to_owned());
    let observed = &listed.observed;
    match (ready, observed.unacknowledged) {
        (Some(0), Some(0)) => return Oldest::Empty,
        (Some(0), _) => return unknown("its messages are out for delivery"),
        _ => {}
    }
    if let Some(why) = &listed.look_why {
        return Oldest::Unknown(format!("a look could lose messages: {why}"));
    }
    if listed.look != "safe" {
        return unknown("it is not known what a look does");
    }
    if observed.holds_back_returns() {
        return unknown(
            "the queue holds back what is returned to it, so that nothing is looked at",
        );
    }
    let head = match management.look(vhost, queue, 1, 0).await {
        Ok(look) => look.messages.into_iter().next(),
        Err(error) => return Oldest::Unknown(error.message().to_owned()),
    };
    let Some(head) = head else {
        return unknown("somebody took the first message meanwhile");
    };
    let properties = &head.message.properties;
    let moment = Letter::read(properties).last_death.or(properties.timestamp);
    match moment {
        None => unknown("nothing tells when its first message came"),
        Some(moment) => match age_at(now(), moment) {
            Some(age) => Oldest::Seconds(age),
            None => unknown("its first message claims to be of the future"),
        },
    }
}

/// How fast messages came in over this long. Of a long while the broker remembers
/// only every minute: what came since the last of these moments, and more, is in the
/// numbers of the last minutes.
pub(super) async fn coming(
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
    listed: &ListedQueue,
    ready: Option<u64>,
    window: Duration,
    uptimes: &BTreeMap<String, Duration>,
) -> Coming {
    let over = async |window| {
        let remembered = match management.history(vhost, queue, window).await {
            Ok(remembered) => remembered,
            Err(error) => return Coming::Unknown(error.message().to_owned()),
        };
        let up = remembered.node.and_then(|node| uptimes.get(&node).copied());
        match Inflow::of(&remembered.history, ready, sheds(&listed.observed), up) {
            Some(inflow) => Coming::Known(inflow),
            None => Coming::Unknown(
                "the broker remembers no statistics of it (are they switched off?)".to_owned(),
            ),
        }
    };
    let all = over(window).await;
    if window <= FINE {
        return all;
    }
    match (all, over(FINE).await) {
        (Coming::Known(all), Coming::Known(last)) => {
            Coming::Known(all.or_in_part(last, FINE, window))
        }
        (all, _) => all,
    }
}

/// Whether messages leave the queue uncounted: expired, or dropped at a length limit.
fn sheds(queue: &ObservedQueue) -> bool {
    ["message-ttl", "max-length", "max-length-bytes"]
        .iter()
        .any(|key| {
            queue.policy.contains_key(*key) || queue.arguments.contains_key(&format!("x-{key}"))
        })
}
