//! `mq dlq replay`: dead letters go back to be worked again.

mod ask;
mod edit;
mod moving;
mod rules;

use std::time::{SystemTime, UNIX_EPOCH};

use super::dlq_guard::{may_take, ready_now};
use super::dlq_replace::Replacer;
use super::session::Session;
use super::signals;
use crate::amqp::{Frames, Pipeline, Walk};
use crate::cli::{ReplayArgs, ReplayTarget};
use crate::deadletter::{Aiming, ComingBack, PeekRisk, ReplayReport, ReplayTo};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{replay_json, replay_text};
use crate::query::{Filter, Transform};
use crate::routing::Router;
use crate::topology::{ExchangeName, QueueName, RoutingKey};

use ask::Person;
use edit::Editor;
use moving::Moving;
use rules::{Repair, Rules};

/// Unconfirmed copies at a time. lapin needs time in proportion to it for each
/// confirm, and three times as many are what may be in both places after a crash.
const WINDOW: usize = 256;

pub(super) async fn run(
    args: ReplayArgs,
    editor: Option<String>,
    session: &Session,
) -> anyhow::Result<Exit> {
    let queue = QueueName::of_existing(&args.queue)?;
    let to = target(&args, &queue)?;
    let filter = args.filter.as_deref().map(Filter::parse).transpose()?;
    let repair = match (&args.transform, args.edit || args.interactive) {
        (Some(program), _) => Repair::By(Transform::parse(program)?),
        (None, true) if args.edit => Repair::InEditor(Editor::new(editor.clone())?),
        _ => Repair::None,
    };
    let person = args.interactive.then(|| Person::new(editor)).transpose()?;
    let vhost = session.vhost()?.clone();
    let mut signals = signals::listen()?;

    let taking = session.connect("mq dlq replay", Frames::Large).await?;
    let management = session.management_of(taking.cluster()).await?;
    let permit = may_take(
        session,
        &management,
        &vhost,
        &queue,
        "dlq replay",
        args.even_if_it_counts,
    )
    .await?;
    let topology = management.topology(&vhost, &permit.facts).await?;
    let router = Router::on(&topology, &permit.facts);
    let ready = ready_now(&taking, &vhost, &queue).await?;

    // Of its own: a broker that blocks publishers reads nothing from their
    // connections, acks neither.
    let sending = session.connect("mq dlq replay", Frames::Large).await?;
    let mut walk = Walk::open(
        &taking,
        &queue,
        &permit.observed.kind,
        ready,
        permit.typical_body(),
    )
    .await?;
    if let (Some(limit), None) = (args.limit, &args.filter) {
        walk.ahead_at_most(limit);
    }
    if permit.risk != PeekRisk::Safe {
        walk.one_by_one();
    }
    let rules = Rules {
        aiming: Aiming {
            router: &router,
            queue: &queue,
            to: &to,
        },
        filter,
        repair,
        user: session.user()?,
        run: run_id(),
        dry_run: args.dry_run,
        limit: args.limit.unwrap_or(u64::MAX),
        rate: args.rate,
        max_replays: args.max_replays,
        restore_expiration: args.restore_expiration,
    };
    let replacer = Replacer::open(&sending, session, &vhost, &queue, &permit).await?;
    let pipeline = Pipeline::open(&sending, WINDOW, args.confirm_timeout).await?;
    let mut moving = Moving::new(rules, walk, pipeline, replacer, person, session, ready);
    let ended = moving.until_the_end(&mut signals).await;
    let report = moving.close().await;
    sending.close().await;
    taking.close().await;
    let back = |to: &QueueName| ComingBack::of(&router, to, &queue, &permit.facts);
    session.report(
        || replay_text(&queue, &report, args.dry_run, &back),
        || replay_json(&vhost, &queue, &report, args.dry_run, &back),
    )?;
    match ended.map_err(|error| what_is_safe(error, &report))? {
        Some(signal) => Ok(Exit::Signal(signal)),
        None => Ok(report.exit()),
    }
}

/// What a person must know of the messages when it ended early. An ack that was
/// sent need not have been read when a connection breaks.
fn what_is_safe(error: Error, report: &ReplayReport) -> Error {
    let open = match report.open {
        0 => String::new(),
        1 => "1 that was under way and ".to_owned(),
        open => format!("{open} that were under way and "),
    };
    error.hint(format!(
        "nothing is lost: {} messages were moved; {open}the last of those may be in both places, all others are where they were. Run it again to go on",
        report.moved
    ))
}

fn target(args: &ReplayArgs, queue: &QueueName) -> Result<ReplayTo> {
    let into_itself = |to: &QueueName| {
        if to == queue {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("queue '{queue}' is where the messages are"),
            )
            .hint("name another queue"));
        }
        Ok(())
    };
    Ok(match (&args.exchange, &args.to_queue, args.to) {
        (Some(exchange), _, _) => {
            let exchange = ExchangeName::new(exchange.clone())?;
            let key = args.key.clone().map(RoutingKey::new).transpose()?;
            ReplayTo::Exchange(exchange, key)
        }
        (None, Some(to), _) => {
            let to = QueueName::of_existing(to)?;
            into_itself(&to)?;
            ReplayTo::Queue(to)
        }
        (None, None, ReplayTarget::Original) => ReplayTo::Original,
        (None, None, ReplayTarget::Queue) => ReplayTo::OriginQueue,
    })
}

/// A name that no other run has: its start, and chance.
fn run_id() -> String {
    let seconds = now();
    format!("{seconds:x}.{:08x}", fastrand::u32(..))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge where a run is named by the clock"
)]
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
