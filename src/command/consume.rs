//! `mq consume`: find out where failures go, then work until told to stop.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the search path is read"
)]

use std::ffi::OsString;
use std::sync::Arc;

use super::consume_policy::{must_be_possible, pausing, policy};
use super::consume_stream;
use super::dedupe_store::dedupe_store;
use super::reconnect::{NAME, Worked, work};
use super::retry_path::retry_path;
use super::session::Session;
use super::watching::Watching;
use super::{message_schemas, signals, topology_files};
use crate::amqp::{Connection, Frames};
use crate::cli::{ConsumeArgs, DeadLetterArg, OnExhaustedArg, RetryBodyArg};
use crate::endpoint::HandlerEndpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::handler::{Exec, ExecStream, Handler, Http};
use crate::message::{Delivery, ResultTo};
use crate::output::{self, Format, delivery_json, summary_json, summary_text};
use crate::retry::{DEFAULT_MAX_ATTEMPTS, OnExhausted, Strategy};
use crate::topology::{ExchangeName, QueueName, RoutingKey};
use crate::worker::{
    DeadLetterBy, Handling, Limits, Link, Machine, NackPath, Printer, Reading, StatusBoard,
    StopReason, Wanted,
};

/// As often as RabbitMQ 4 itself delivers a message anew where no limit is set.
const MAX_RETURNS: u64 = 20;

pub(super) async fn run(args: ConsumeArgs, session: &Session) -> anyhow::Result<Exit> {
    let mut signals = signals::listen()?;
    let mut watching = Watching::start(&args, session).await?;
    let board = Arc::clone(&watching.board);
    // Until the first message is taken a signal has nothing to drain.
    let prepared = tokio::select! {
        prepared = prepare(args, session, board) => prepared?,
        _ = signals.recv() => return Ok(Exit::Done),
    };
    let Prepared {
        args,
        handler,
        connection,
        wanted,
        limits,
        mut reading,
    } = prepared;
    let mut machine = Machine::new(limits);
    let format = session.format;
    let form = |delivery: &Delivery, page: &mut Vec<u8>| print_delivery(delivery, format, page);
    let mut handling = match &handler {
        Some(handler) => Handling::Run(handler),
        None => Handling::Print(Printer {
            form: &form,
            write: &output::page,
        }),
    };
    let worked = work(
        &wanted,
        session,
        connection,
        args.reconnect_for,
        &mut machine,
        reading.as_mut(),
        &mut handling,
        &mut signals,
    )
    .await;
    wanted.board.post(&machine, Link::Lost);
    if let Some(handler) = &handler {
        handler.close().await;
    }
    let end = reading.as_ref().map(consume_stream::End::of);
    let kept = match reading {
        Some(reading) => reading.finish().await,
        None => Ok(()),
    };
    watching.hide_progress();
    // A worker that never got a message has nothing to sum up but its error.
    if worked.is_ok() || machine.counts().received > 0 {
        summarise(session, &wanted, &machine, args.print)?;
    }
    kept?;
    drop(watching);
    Ok(match worked? {
        Worked::Stopped => verdict(&wanted, &machine, end.as_ref())?,
        Worked::SecondSignal(number) => Exit::Signal(number),
    })
}

struct Prepared {
    args: ConsumeArgs,
    handler: Option<Handler>,
    connection: Connection,
    wanted: Wanted,
    limits: Limits,
    reading: Option<Reading>,
}

/// Everything that must be right before the first message is taken.
async fn prepare(
    args: ConsumeArgs,
    session: &Session,
    board: Arc<StatusBoard>,
) -> Result<Prepared> {
    let queue = QueueName::of_existing(&args.queue)?;
    let handler = handler(&args)?;
    warn_of_swallowed_flags("--exec", &args.exec);
    warn_of_swallowed_flags("--exec-stream", &args.exec_stream);
    let file = if args.topology.is_empty() {
        None
    } else {
        Some(topology_files::load(&args.topology)?)
    };
    let policy = policy(&args, &queue, file.as_ref())?;
    // What is printed is not judged.
    let contracts = match handler {
        Some(_) => message_schemas::contracts(&args, &queue, file.as_ref())?.map(Arc::new),
        None => None,
    };
    let max_attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    let connection = session.connect(NAME, Frames::Large).await?;
    must_exist(&connection, session, &queue).await?;
    let stream = consume_stream::stream(&args, session, &connection, &queue, file.as_ref()).await?;
    // Printing never fails an attempt, so nothing can be dead-lettered.
    let (path, nack_path) = match (&handler, &stream) {
        (None, _) => (None, NackPath::Believed),
        (Some(_), Some(_)) => {
            let path = consume_stream::path(&args, &connection, &queue, &policy).await?;
            (Some(path), NackPath::Believed)
        }
        (Some(_), None) => {
            let found = retry_path(session, &connection, &queue, file.as_ref(), &policy).await?;
            let nack_path = match (found.seen, found.path.nack_is_confirmed) {
                (true, true) => NackPath::Confirmed,
                (true, false) => NackPath::Seen,
                (false, _) => NackPath::Believed,
            };
            (Some(found.path), nack_path)
        }
    };
    if let Some(path) = &path {
        must_be_possible(&args, path, connection.facts())?;
    }
    let results = results(&args, &connection).await?;
    let dedupe = dedupe_store(&args, session, &queue, args.reconnect_for).await?;
    let limits = Limits {
        prefetch: prefetch(&args),
        jobs: args.jobs.unwrap_or(args.prefetch).min(prefetch(&args)),
        on_exhausted: match args.on_exhausted {
            OnExhaustedArg::DeadLetter => OnExhausted::DeadLetter,
            OnExhaustedArg::Stop => OnExhausted::Stop,
        },
        max_returns: args.max_returns.or_else(|| {
            connection
                .facts()
                .delivery_count_tells_crashes()
                .then_some(MAX_RETURNS)
        }),
        dead_letter: match args.dead_letter {
            _ if stream.is_some() && policy.dead_letter_queue.is_none() => DeadLetterBy::Nowhere,
            DeadLetterArg::Republish => DeadLetterBy::Republish,
            DeadLetterArg::Nack => DeadLetterBy::Nack,
        },
        publish_results: results.is_some(),
        retry_with_result: args.retry_body == RetryBodyArg::Result,
        dedupe: dedupe.is_some(),
        pausing: pausing(&args)?,
        max_messages: args.max_messages,
        max_attempts,
        strategy: path
            .as_ref()
            .map_or(Strategy::Immediate, |path| path.strategy),
        nack_path,
    };
    let wanted = Wanted {
        queue,
        prefetch: limits.prefetch,
        max_attempts,
        path,
        until_empty: args.until_empty,
        idle_timeout: args.idle_timeout,
        grace: args.drain_timeout,
        results,
        retry_with_result: limits.retry_with_result,
        jitter: policy.jitter,
        dedupe,
        contracts,
        worker: worker_name(),
        board,
    };
    let reading = match stream {
        Some(stream) => Some(stream.read(&connection, &wanted.queue).await?),
        None => None,
    };
    Ok(Prepared {
        args,
        handler,
        connection,
        wanted,
        limits,
        reading,
    })
}

async fn must_exist(connection: &Connection, session: &Session, queue: &QueueName) -> Result<()> {
    if connection.queue_status(queue).await?.is_some() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NotFound,
        format!(
            "queue '{queue}' does not exist in vhost '{}'",
            session.vhost()?
        ),
    )
    .hint("declare it first (`mq topology apply FILE`), or check its name and the vhost"))
}

/// What works the messages; nothing, when they are only printed.
fn handler(args: &ConsumeArgs) -> Result<Option<Handler>> {
    if args.print {
        return Ok(None);
    }
    let limit = args.handler_timeout;
    if let Some(url) = &args.http {
        let endpoint = HandlerEndpoint::parse(url)?;
        let http = Http::new(endpoint, args.connect_timeout, limit)?;
        return Ok(Some(Handler::Http(http)));
    }
    let search_path = std::env::var_os("PATH");
    Ok(Some(if args.exec_stream.is_empty() {
        Handler::Exec(Exec::find(&args.exec, search_path, limit)?)
    } else {
        Handler::Stream(ExecStream::find(&args.exec_stream, search_path, limit)?)
    }))
}

/// Where results go; an exchange that is not there would be found missing only
/// when the first work is done.
async fn results(args: &ConsumeArgs, connection: &Connection) -> Result<Option<ResultTo>> {
    let Some(exchange) = &args.result_exchange else {
        return Ok(args.reply.then_some(ResultTo::ReplyTo));
    };
    let exchange = ExchangeName::new(exchange.clone())?;
    if !exchange.is_empty() && !connection.exchange_exists(&exchange).await? {
        return Err(Error::new(
            ErrorKind::Blocked,
            format!("refusing to work queue '{}': the exchange '{exchange}' for its results does not exist", args.queue),
        )
        .hint("declare it with `mq topology apply FILE`, or check --result-exchange"));
    }
    let key = args.result_key.clone().map(RoutingKey::new).transpose()?;
    Ok(Some(ResultTo::Exchange { exchange, key }))
}

/// Host and process, as dead letters tell them.
fn worker_name() -> String {
    let host = rustix::system::uname();
    format!(
        "{}:{}",
        host.nodename().to_string_lossy(),
        std::process::id()
    )
}

/// `--exec true --until-empty` gives the flag to `true`: the easiest mistake to
/// make, and it runs for ever.
fn warn_of_swallowed_flags(option: &str, command: &[OsString]) {
    let own = [
        "--prefetch",
        "--max-attempts",
        "--max-messages",
        "--until-empty",
        "--idle-timeout",
        "--handler-timeout",
        "--drain-timeout",
        "--jobs",
        "--on-exhausted",
        "--dedupe",
        "--dedupe-store",
        "--dedupe-ttl",
        "--pause-after",
        "--probe-wait",
        "--from",
        "--offset-file",
        "--rewind",
        "--dead-letter",
        "--result-exchange",
        "--reply",
        "--reconnect-for",
        "--topology",
        "--schema",
        "--strategy",
        "--delays",
        "--jitter",
        "--output",
        "--metrics",
    ];
    for flag in own {
        if command.iter().skip(1).any(|argument| argument == flag) {
            output::talk(&format!(
                "mq: {flag} stands after {option} and so belongs to the program; if it was meant for mq, put it before {option}"
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

fn print_delivery(delivery: &Delivery, format: Format, page: &mut Vec<u8>) {
    match format {
        Format::Table => output::add_line(page, &delivery.body),
        Format::Json | Format::JsonLines => {
            output::add_line(page, output::json_line(&delivery_json(delivery)).as_bytes());
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

fn verdict(wanted: &Wanted, machine: &Machine, end: Option<&consume_stream::End>) -> Result<Exit> {
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
            "a copy or result of a message of queue '{queue}' could not be put away, so the message was given back and the worker stopped"
        ))),
        Some(StopReason::NotDeduplicated(error)) => Err(error.clone().during(&format!(
            "what was done before of queue '{queue}' could not be told or remembered, so the worker stopped"
        ))),
        Some(StopReason::NoDeadLetterQueue { reason, .. }) => {
            Err(consume_stream::no_dead_letter_queue(queue, reason, end))
        }
        Some(StopReason::NotKept) => Err(Error::new(
            ErrorKind::InputOutput,
            format!("the position in stream '{queue}' could not be kept"),
        )
        .hint("check --offset-file and the free space")),
        Some(StopReason::QueueGone) => Err(Error::new(
            ErrorKind::NotFound,
            format!("queue '{queue}' was deleted while it was worked"),
        )
        .hint("if that was not meant, declare it again with `mq topology apply`")),
    }
}
