//! One replay from the first connection to its report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use super::ask::Person;
use super::moving::Moving;
use super::rules::{Repair, Rules};
use crate::amqp::{Frames, Pipeline, Walk};
use crate::command::dlq_chosen::Chosen;
use crate::command::dlq_guard::{may_take, ready_now};
use crate::command::dlq_queues::now;
use crate::command::dlq_replace::Replacer;
use crate::command::session::Session;
use crate::deadletter::{Aiming, ComingBack, ReplayReport, ReplayTo};
use crate::error::{Error, ErrorKind, Result};
use crate::routing::Router;
use crate::topology::{QueueName, VhostName};

/// Unconfirmed copies at a time. lapin needs time in proportion to it for each
/// confirm, and three times as many are what may be in both places after a crash.
const WINDOW: usize = 256;

/// What is to be sent back, where to and how.
pub(in crate::command) struct ReplayOrder {
    pub(in crate::command) vhost: VhostName,
    pub(in crate::command) queue: QueueName,
    pub(in crate::command) to: ReplayTo,
    pub(in crate::command) chosen: Chosen,
    pub(in crate::command) repair: Repair,
    pub(in crate::command) person: Option<Person>,
    pub(in crate::command) dry_run: bool,
    /// Most messages to send.
    pub(in crate::command) limit: Option<u64>,
    /// Most messages a second.
    pub(in crate::command) rate: Option<u32>,
    pub(in crate::command) max_replays: u64,
    pub(in crate::command) restore_expiration: bool,
    pub(in crate::command) confirm_timeout: Duration,
    pub(in crate::command) even_if_it_counts: bool,
    /// Counts the messages that were looked at, while it runs.
    pub(in crate::command) looked: Arc<AtomicU64>,
}

/// What became of it.
pub(in crate::command) struct Replayed {
    pub(in crate::command) report: ReplayReport,
    /// How messages come back from the queues they landed in.
    pub(in crate::command) back: BTreeMap<QueueName, ComingBack>,
    /// The number of a second signal that did not wait for the end, or the error
    /// it ended with.
    pub(in crate::command) ended: Result<Option<u8>>,
}

impl Replayed {
    /// How messages in `queue` would come back.
    pub(in crate::command) fn comes_back(&self, queue: &QueueName) -> ComingBack {
        self.back.get(queue).copied().unwrap_or(ComingBack::Not)
    }
}

/// Carries the order out; the first signal ends it in order.
///
/// # Errors
/// Those before anything was taken; later ones are in what it gives.
pub(in crate::command) async fn replay(
    order: ReplayOrder,
    session: &Session,
    signals: &mut UnboundedReceiver<u8>,
) -> Result<Replayed> {
    let (vhost, queue) = (&order.vhost, &order.queue);
    let taking = session.connect("mq dlq replay", Frames::Large).await?;
    let management = session.management_of(taking.cluster()).await?;
    let permit = may_take(
        session,
        &management,
        vhost,
        queue,
        "dlq replay",
        order.even_if_it_counts,
    )
    .await?;
    let topology = management.topology(vhost, &permit.facts).await?;
    let router = Router::on(&topology, &permit.facts);
    let ready = ready_now(&taking, vhost, queue).await?;

    // Of its own: a broker that blocks publishers reads nothing from their
    // connections, acks neither.
    let sending = session.connect("mq dlq replay", Frames::Large).await?;
    let kind = &permit.observed.kind;
    let mut walk = Walk::open(&taking, queue, kind, ready, permit.typical_body()).await?;
    if let (Some(limit), Chosen::All) = (order.limit, &order.chosen) {
        walk.ahead_at_most(limit);
    }
    if permit.one_by_one() {
        walk.one_by_one();
    }
    let rules = Rules {
        aiming: Aiming {
            router: &router,
            queue,
            to: &order.to,
        },
        chosen: order.chosen,
        repair: order.repair,
        user: session.user()?,
        run: run_id(),
        dry_run: order.dry_run,
        limit: order.limit.unwrap_or(u64::MAX),
        rate: order.rate,
        max_replays: order.max_replays,
        restore_expiration: order.restore_expiration,
    };
    let replacer = Replacer::open(&sending, session, vhost, queue, &permit).await?;
    let pipeline = Pipeline::open(&sending, WINDOW, order.confirm_timeout).await?;
    let counted = (order.looked, ready);
    let mut moving = Moving::new(
        rules,
        walk,
        pipeline,
        replacer,
        order.person,
        session,
        counted,
    );
    let ended = moving.until_the_end(signals).await;
    let report = moving.close().await;
    sending.close().await;
    taking.close().await;
    let landed = report.aims.keys().flat_map(|aim| &aim.lands);
    let back = landed
        .map(|to| {
            let back = ComingBack::of(&router, to, queue, &permit.facts);
            (to.clone(), back)
        })
        .collect();
    Ok(Replayed {
        ended: ended.map_err(|error| what_is_safe(error, &report)),
        back,
        report,
    })
}

/// What a person must know of the messages when it ended early. An ack that was
/// sent need not have been read when a connection breaks.
fn what_is_safe(error: Error, report: &ReplayReport) -> Error {
    let open = match report.open {
        0 => String::new(),
        1 => "1 that was under way and ".to_owned(),
        open => format!("{open} that were under way and "),
    };
    let missing = missing_permission(&error);
    error.hint(format!(
        "{missing}nothing is lost: {} messages were moved; {open}the last of those may be in both places, all others are where they were. Run it again to go on",
        report.moved
    ))
}

/// The permission whose lack ended it. A replay touches exchanges by publishing
/// only, so it is that to write (measured: 3.10 says `access to exchange 'x' …
/// refused`, 4.0 and 4.3 `write access to exchange 'x' … refused`). That says
/// nothing about what was sent before: permissions differ by exchange, and change.
fn missing_permission(error: &Error) -> &'static str {
    let said = error.message();
    if error.kind() != ErrorKind::AccessRefused {
        ""
    } else if said.contains("access to exchange '") {
        "grant the user write permission on that exchange (rabbitmqctl set_permissions); "
    } else if said.contains("access to topic '") {
        "grant the user write permission for that topic (rabbitmqctl set_topic_permissions); "
    } else {
        ""
    }
}

/// A name that no other run has: its start, and chance.
fn run_id() -> String {
    let seconds = now();
    format!("{seconds:x}.{:08x}", fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_that_is_missing_is_named() {
        for (kind, said, begins) in [
            (
                ErrorKind::AccessRefused,
                "the broker says: access to exchange 'shop' in vhost '/' refused for user 'u'",
                "grant the user write permission on that exchange",
            ),
            (
                ErrorKind::AccessRefused,
                "the broker says: write access to exchange 'shop' in vhost '/' refused for user 'u'",
                "grant the user write permission on that exchange",
            ),
            (
                ErrorKind::AccessRefused,
                "the broker says: write access to topic 'a' in exchange 'shop' in vhost '/' refused for user 'u'",
                "grant the user write permission for that topic",
            ),
            (
                ErrorKind::AccessRefused,
                "the broker says: read access to queue 'access to' in vhost '/' refused for user 'u'",
                "nothing is lost",
            ),
            (
                ErrorKind::Unavailable,
                "connection reset",
                "nothing is lost",
            ),
        ] {
            let report = ReplayReport {
                open: 18,
                ..ReplayReport::default()
            };
            let error = what_is_safe(Error::new(kind, said), &report);
            let way_out = error.way_out().unwrap_or_default();
            assert!(way_out.starts_with(begins), "{said}: {way_out}");
            assert!(way_out.contains("18 that were under way"), "{way_out}");
        }
    }
}
