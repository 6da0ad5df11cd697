//! `mq consume`: find out where failures go, then work until told to stop.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the search path is read"
)]

use std::ffi::OsString;

use super::reconnect::{NAME, Worked, work};
use super::retry_path::retry_path;
use super::session::Session;
use super::{signals, topology_files};
use crate::amqp::{Connection, Frames};
use crate::cli::{ConsumeArgs, StrategyArg};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::handler::{Exec, Handler};
use crate::message::Delivery;
use crate::output::{self, Format, delivery_json, summary_json, summary_text};
use crate::retry::{DEFAULT_MAX_ATTEMPTS, RetryPolicy, Strategy};
use crate::topology::{QueueName, QueueType, Topology};
use crate::worker::{Handling, Limits, Machine, StopReason, Wanted};

pub(super) async fn run(args: ConsumeArgs, session: &Session) -> anyhow::Result<Exit> {
    let mut signals = signals::listen()?;
    // Until the first message is taken a signal has nothing to drain.
    let prepared = tokio::select! {
        prepared = prepare(args, session) => prepared?,
        _ = signals.recv() => return Ok(Exit::Done),
    };
    let Prepared {
        args,
        handler,
        connection,
        wanted,
        limits,
    } = prepared;
    let mut machine = Machine::new(limits);
    let format = session.format;
    let mut print = |delivery: &Delivery| print_delivery(delivery, format);
    let mut handling = match &handler {
        Some(handler) => Handling::Run(handler),
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
    // A worker that never got a message has nothing to sum up but its error.
    if worked.is_ok() || machine.counts().received > 0 {
        summarise(session, &wanted, &machine, args.print)?;
    }
    Ok(match worked? {
        Worked::Stopped => verdict(&wanted, &machine)?,
        Worked::SecondSignal(number) => Exit::Signal(number),
    })
}

struct Prepared {
    args: ConsumeArgs,
    handler: Option<Handler>,
    connection: Connection,
    wanted: Wanted,
    limits: Limits,
}

/// Everything that must be right before the first message is taken.
async fn prepare(args: ConsumeArgs, session: &Session) -> Result<Prepared> {
    let queue = QueueName::of_existing(&args.queue)?;
    let handler = if args.print {
        None
    } else {
        let search_path = std::env::var_os("PATH");
        Some(Handler::Exec(Exec::find(
            &args.exec,
            search_path,
            args.handler_timeout,
        )?))
    };
    warn_of_swallowed_flags(&args.exec);
    let file = if args.topology.is_empty() {
        None
    } else {
        Some(topology_files::load(&args.topology)?)
    };
    let policy = policy(&args, &queue, file.as_ref())?;
    if handler.is_some() {
        must_be_worked(&queue, policy.strategy)?;
    }
    let max_attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    let connection = session.connect(NAME, Frames::Large).await?;
    if connection.queue_status(&queue).await?.is_none() {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "queue '{queue}' does not exist in vhost '{}'",
                session.vhost()?
            ),
        )
        .hint("declare it first (`mq topology apply FILE`), or check its name and the vhost"));
    }
    refuse_stream(session, &connection, &queue).await?;
    // Printing never fails an attempt, so nothing can be dead-lettered.
    let (path, prove_retries) = match handler {
        None => (None, false),
        Some(_) => {
            let found = retry_path(session, &connection, &queue, file.as_ref(), &policy).await?;
            let proved = !found.seen || !found.path.nack_is_confirmed;
            (Some(found.path), proved)
        }
    };
    let limits = Limits {
        prefetch: prefetch(&args),
        max_messages: args.max_messages,
        max_attempts,
        strategy: path
            .as_ref()
            .map_or(Strategy::Immediate, |path| path.strategy),
        prove_retries,
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
    Ok(Prepared {
        args,
        handler,
        connection,
        wanted,
        limits,
    })
}

/// A stream hands out only what is new, unless an offset is asked for: a worker
/// would see nothing and call the queue empty.
async fn refuse_stream(
    session: &Session,
    connection: &Connection,
    queue: &QueueName,
) -> Result<()> {
    let management = session.management()?;
    match management
        .queue(session.vhost()?, queue, connection.facts())
        .await
    {
        Ok(observed) if observed.kind == QueueType::Stream => Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "queue '{queue}' is a stream, which is read from an offset; mq cannot do that yet"
            ),
        )
        .hint("read it with a stream consumer")),
        // Without the management API the type cannot be seen.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Another strategy than the one asked for would retry at other times, or
/// without a pause.
fn must_be_worked(queue: &QueueName, strategy: Option<Strategy>) -> Result<()> {
    match strategy {
        None | Some(Strategy::Dlx | Strategy::Backoff | Strategy::Immediate) => Ok(()),
        Some(strategy @ Strategy::Native) => Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "refusing to work queue '{queue}': the strategy `{strategy}` is not worked by this version yet"
            ),
        )
        .hint("use `strategy: dlx`, `backoff` or `immediate` in the topology file")),
    }
}

/// `--exec true --until-empty` gives the flag to `true`: the easiest mistake to
/// make, and it runs for ever.
fn warn_of_swallowed_flags(command: &[OsString]) {
    let own = [
        "--prefetch",
        "--max-attempts",
        "--max-messages",
        "--until-empty",
        "--idle-timeout",
        "--handler-timeout",
        "--grace",
        "--reconnect-for",
        "--topology",
        "--output",
    ];
    for flag in own {
        if command.iter().skip(1).any(|argument| argument == flag) {
            output::talk(&format!(
                "mq: {flag} stands after --exec and so belongs to the program; if it was meant for mq, put it before --exec"
            ));
        }
    }
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
        jitter: from_file.jitter,
        delays: if args.strategy.is_none() {
            from_file.delays
        } else {
            // They belong to the strategy of the file.
            Vec::new()
        },
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

fn print_delivery(delivery: &Delivery, format: Format) -> std::io::Result<()> {
    match format {
        Format::Table => output::bytes(&delivery.body),
        Format::Json | Format::JsonLines => {
            output::bytes(output::json_line(&delivery_json(delivery)).as_bytes())
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
