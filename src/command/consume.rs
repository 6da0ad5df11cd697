//! `mq consume`: find out where failures go, then work until told to stop.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where reconnecting meets the clock, chance and the search path"
)]

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::session::Session;
use super::{signals, topology_files};
use crate::amqp::Connection;
use crate::cli::{ConsumeArgs, StrategyArg};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::handler::Exec;
use crate::message::Delivery;
use crate::output::{self, Format, delivery_json, summary_json, summary_text};
use crate::retry::{DEFAULT_MAX_ATTEMPTS, RetryPath, RetryPolicy, Strategy, path};
use crate::topology::{QueueName, Topology};
use crate::worker::{
    Ending, Event, Handling, Limits, Machine, Session as Work, StopReason, Wanted,
};

const NAME: &str = "mq consume";

/// The first pause before a reconnect; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn run(args: ConsumeArgs, session: &Session) -> anyhow::Result<Exit> {
    let mut signals = signals::listen()?;
    let queue = QueueName::new(args.queue.clone())?;
    let exec = if args.print {
        None
    } else {
        let search_path = std::env::var_os("PATH");
        Some(Exec::find(&args.exec, search_path, args.handler_timeout)?)
    };
    let file = if args.topology.is_empty() {
        None
    } else {
        Some(topology_files::load(&args.topology)?)
    };
    let policy = policy(&args, &queue, file.as_ref())?;
    let max_attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    let connection = session.connect(NAME).await?;
    if connection.queue_status(&queue).await?.is_none() {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "queue '{queue}' does not exist in vhost '{}'",
                session.vhost()?
            ),
        )
        .hint("declare it first (`mq topology apply FILE`), or check its name and the vhost")
        .into());
    }
    // Printing never fails an attempt, so nothing can be dead-lettered.
    let path = match exec {
        None => None,
        Some(_) => Some(retry_path(session, &connection, &queue, file.as_ref(), &policy).await?),
    };
    let limits = Limits {
        prefetch: prefetch(&args),
        max_messages: args.max_messages,
        max_attempts,
        strategy: path
            .as_ref()
            .map_or(Strategy::Immediate, |path| path.strategy),
        park: path.as_ref().is_some_and(|path| path.park.is_some()),
    };
    let wanted = Wanted {
        queue,
        prefetch: limits.prefetch,
        max_attempts,
        path,
        until_empty: args.until_empty,
        idle_timeout: args.idle_timeout,
        grace: args.grace,
    };
    let mut machine = Machine::new(limits);
    let format = session.format;
    let mut print = |delivery: &Delivery| print_delivery(delivery, format);
    let mut handling = match &exec {
        Some(exec) => Handling::Exec(exec),
        None => Handling::Print(&mut print),
    };
    let worked = work(
        &wanted,
        session,
        connection,
        args.reconnect_for,
        &mut machine,
        &mut handling,
        &mut signals,
    )
    .await;
    summarise(session, &wanted, &machine, args.print)?;
    Ok(match worked? {
        Worked::Stopped => verdict(&wanted, &machine)?,
        Worked::SecondSignal(number) => Exit::Signal(number),
    })
}

/// Never more than can be used: what is handed out too much must be given back.
fn prefetch(args: &ConsumeArgs) -> u16 {
    args.max_messages.map_or(args.prefetch, |max| {
        args.prefetch.min(u16::try_from(max).unwrap_or(u16::MAX))
    })
}

/// Flags over file.
fn policy(args: &ConsumeArgs, queue: &QueueName, file: Option<&Topology>) -> Result<RetryPolicy> {
    let from_file = match file {
        None => RetryPolicy::default(),
        Some(topology) => topology
            .queues
            .get(queue)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    format!("the topology file does not declare queue '{queue}'"),
                )
                .hint("check the queue's name and --topology")
            })?
            .retry
            .clone()
            .unwrap_or_default(),
    };
    let dead_letter_queue = args
        .dead_letter_queue
        .clone()
        .map(QueueName::new)
        .transpose()?;
    Ok(RetryPolicy {
        strategy: args
            .strategy
            .map(|strategy| match strategy {
                StrategyArg::Dlx => Strategy::Dlx,
                StrategyArg::Immediate => Strategy::Immediate,
            })
            .or(from_file.strategy),
        max_attempts: args.max_attempts.or(from_file.max_attempts),
        dead_letter_queue: dead_letter_queue.or(from_file.dead_letter_queue),
    })
}

/// Where failures go, as the broker has it. Without the management API the
/// file is believed, and what it names must exist.
async fn retry_path(
    session: &Session,
    connection: &Connection,
    queue: &QueueName,
    file: Option<&Topology>,
    policy: &RetryPolicy,
) -> Result<RetryPath> {
    let rest = policy.dead_letter_queue.as_ref();
    let found = |topology: &Topology| {
        path(topology, queue, rest).map_err(|problem| {
            Error::new(
                ErrorKind::Blocked,
                format!("refusing to work queue '{queue}': {problem}"),
            )
            .hint(problem.way_out())
        })
    };
    let expected = file.map(found).transpose()?;
    let live = session.management()?.topology(session.vhost()?).await;
    let path = match (live, expected) {
        (Ok(topology), expected) => {
            let live = found(&topology)?;
            if let Some(expected) = expected
                && !same_way(&expected, &live)
            {
                return Err(Error::new(
                    ErrorKind::Blocked,
                    format!(
                        "refusing to work queue '{queue}': on the broker its dead letters go {}, but the file says {}",
                        describe(&live),
                        describe(&expected)
                    ),
                )
                .hint("bring the broker to the file with `mq topology apply`, or use the right file"));
            }
            live
        }
        (Err(error), Some(expected)) => {
            tracing::warn!(
                error = error.message(),
                "the management API does not answer: the dead-letter path is taken from the file"
            );
            must_exist(connection, queue, &expected).await?;
            expected
        }
        (Err(error), None) => {
            let hint = error.way_out().unwrap_or_default().to_owned();
            return Err(error
                .during("find out where failed messages go")
                .hint(format!(
                    "{hint}\nor pass the topology file with --topology, which needs no management API"
                )));
        }
    };
    if let Some(wanted) = policy.strategy
        && wanted != path.strategy
    {
        return Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "refusing to work queue '{queue}': the strategy `{wanted}` is asked for, but its dead letters go {}, which makes it `{}`",
                describe(&path),
                path.strategy
            ),
        )
        .hint("`dlx` needs a wait queue with a message TTL that leads back to the queue"));
    }
    tracing::info!(strategy = %path.strategy, dead_letters = describe(&path), "retries");
    Ok(path)
}

fn same_way(a: &RetryPath, b: &RetryPath) -> bool {
    a.strategy == b.strategy
        && a.exchange == b.exchange
        && a.key == b.key
        && a.wait_queues == b.wait_queues
        && a.dead_letter_queues == b.dead_letter_queues
        && a.park == b.park
}

fn describe(path: &RetryPath) -> String {
    let names = |queues: &std::collections::BTreeSet<QueueName>| {
        let names: Vec<String> = queues.iter().map(|queue| format!("'{queue}'")).collect();
        names.join(", ")
    };
    match path.strategy {
        Strategy::Dlx => format!(
            "through exchange '{}' to wait in {} and at last to {}",
            path.exchange,
            names(&path.wait_queues),
            names(&path.dead_letter_queues)
        ),
        Strategy::Immediate => format!(
            "through exchange '{}' straight to {}",
            path.exchange,
            names(&path.dead_letter_queues)
        ),
    }
}

async fn must_exist(connection: &Connection, queue: &QueueName, path: &RetryPath) -> Result<()> {
    let missing = |what: String| {
        Error::new(
            ErrorKind::Blocked,
            format!("refusing to work queue '{queue}': {what} does not exist, so dead letters would vanish"),
        )
        .hint("declare it with `mq topology apply FILE`")
    };
    if !connection.exchange_exists(&path.exchange).await? {
        return Err(missing(format!(
            "the dead-letter exchange '{}'",
            path.exchange
        )));
    }
    for needed in path.wait_queues.iter().chain(&path.dead_letter_queues) {
        if connection.queue_status(needed).await?.is_none() {
            return Err(missing(format!("queue '{needed}'")));
        }
    }
    Ok(())
}

enum Worked {
    Stopped,
    SecondSignal(u8),
}

/// Session after session until one ends by itself.
async fn work(
    wanted: &Wanted,
    session: &Session,
    mut connection: Connection,
    reconnect_for: Duration,
    machine: &mut Machine,
    handling: &mut Handling<'_>,
    signals: &mut mpsc::UnboundedReceiver<u8>,
) -> Result<Worked> {
    loop {
        let opened = Work::open(wanted, &connection, machine, session.limit).await;
        let ending = match opened {
            Ok(work) => work.run(handling, signals).await,
            Err(error) if error.kind() == ErrorKind::Unavailable => Ending::Lost(error),
            Err(error) => {
                connection.close().await;
                return Err(error);
            }
        };
        let error = match ending {
            Ending::Done => {
                // Waits for the broker's answer, so that the last acks have arrived.
                connection.close().await;
                return Ok(Worked::Stopped);
            }
            Ending::SecondSignal(number) => return Ok(Worked::SecondSignal(number)),
            Ending::Lost(error) => error,
        };
        connection.close().await;
        if machine.stop_reason().is_some() {
            // Stopping anyway: what was not settled goes back by itself.
            return Ok(Worked::Stopped);
        }
        tracing::warn!(error = error.message(), "connection lost, reconnecting");
        let Some(back) = reconnect(session, reconnect_for, error, signals).await? else {
            machine.handle(Event::Stop(StopReason::Signal));
            return Ok(Worked::Stopped);
        };
        connection = back;
    }
}

/// Tries again with growing, jittered pauses; `None` when a signal ends it.
async fn reconnect(
    session: &Session,
    limit: Duration,
    lost: Error,
    signals: &mut mpsc::UnboundedReceiver<u8>,
) -> Result<Option<Connection>> {
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut last = lost;
    while Instant::now() + pause < deadline {
        let jittered = pause.mul_f64(0.5 + fastrand::f64());
        tokio::select! {
            () = sleep(jittered) => {}
            _ = signals.recv() => return Ok(None),
        }
        match session.connect(NAME).await {
            Ok(connection) => {
                tracing::warn!("reconnected");
                return Ok(Some(connection));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Protocol
                ) =>
            {
                last = error;
            }
            Err(error) => return Err(error),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!(
            "the connection was lost and did not come back within {}: {}",
            humantime::format_duration(limit),
            last.message()
        ),
    )
    .hint("unsettled messages are back in their queue; start the worker again when the broker runs, or give it longer with --reconnect-for"))
}

fn print_delivery(delivery: &Delivery, format: Format) -> std::io::Result<()> {
    match format {
        Format::Table => output::bytes(&delivery.body),
        Format::Json | Format::JsonLines => {
            output::bytes(delivery_json(delivery).to_string().as_bytes())
        }
    }
}

/// The last word: data when a program was run, talk when messages were the data.
fn summarise(session: &Session, wanted: &Wanted, machine: &Machine, printed: bool) -> Result<()> {
    let queue = wanted.queue.as_str();
    let counts = machine.counts();
    let stopped = machine.stop_reason();
    if printed {
        if session.format == Format::Table {
            output::talk(&summary_text(queue, &counts, stopped));
        } else {
            output::talk(&summary_json(queue, &counts, stopped).to_string());
        }
        return Ok(());
    }
    match session.format {
        Format::Table => session.say(|| summary_text(queue, &counts, stopped)),
        Format::Json | Format::JsonLines => {
            output::data(&summary_json(queue, &counts, stopped).to_string())
        }
    }
}

fn verdict(wanted: &Wanted, machine: &Machine) -> Result<Exit> {
    let queue = &wanted.queue;
    match machine.stop_reason() {
        None
        | Some(
            StopReason::Signal
            | StopReason::MaxMessages
            | StopReason::Empty
            | StopReason::Idle
            | StopReason::ReaderGone,
        ) => Ok(Exit::Done),
        Some(StopReason::Output(why)) => Err(Error::new(
            ErrorKind::InputOutput,
            format!("cannot print a message of queue '{queue}': {why}; it was given back"),
        )
        .hint("check free space and where the output goes")),
        Some(StopReason::Handler { why }) => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the handler of queue '{queue}' cannot work: {why}; its message was given back"),
        )
        .hint("mend what the handler needs, then start the worker again")),
        Some(StopReason::NotParked(error)) => Err(error.clone().during(&format!(
            "a dead letter of queue '{queue}' could not be put away, so its message was given back and the worker stopped"
        ))),
        Some(StopReason::QueueGone) => Err(Error::new(
            ErrorKind::NotFound,
            format!("queue '{queue}' was deleted while it was worked"),
        )
        .hint("if that was not meant, declare it again with `mq topology apply`")),
    }
}
