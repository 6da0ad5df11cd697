//! `mq publish`, many messages: each confirmed and routed, or named.

mod again;
mod apart;
mod batches;
mod books;
mod prepared;
mod refused;
mod results;
mod sending;
mod settled;
mod source;

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::alarms;
use super::publish_additions::Additions;
use super::publish_prototype::{Environment, Prototype};
use super::session::Session;
use super::signals;
use crate::amqp::{Frames, Pipeline};
use crate::cli::{OnUnroutable, PublishArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::message::{
    DEFAULT_FRAME_BYTES, Delivery, Publication, brokers_take, message_line, set_copies_aside,
};
use crate::offsets::SentFile;
use crate::output::{self, Existing, Lines, Published, published_json, published_text};
use crate::topology::{ExchangeName, QueueName, RoutingKey, VhostName};

use books::Books;
use results::Results;
use sending::{Rules, Sending};
use settled::Settled;
use source::{Reading, Source};

pub(super) async fn run(
    args: &PublishArgs,
    environment: Environment,
    session: &Session,
) -> anyhow::Result<Exit> {
    let prototype = Prototype::of(args, environment)?;
    let additions = Additions::of(args, environment)?;
    let source = source(args, &prototype, environment)?;
    source.must_be_there()?;
    apart::must_be(&args.bulk, &source)?;
    let name = source.name();
    let counts = source.counts();
    let frames = frames(&source, &additions, &prototype);
    let target = Target::of(args)?;
    let kept = match &args.bulk.resume {
        None => None,
        Some(path) => {
            let identity = identity(args, &source, session.vhost()?);
            Some(SentFile::open(path.clone(), &identity, &run_id())?)
        }
    };
    let mut batches = batches::read(
        source.clone(),
        Reading {
            prototype,
            environment,
            settled: kept.as_ref().map(|(_, sent)| sent.clone()),
            additions,
            is_dry_run: false,
        },
    )?;
    let existing = match kept {
        Some(_) => Existing::Append,
        None => Existing::Refuse,
    };
    let mut results = Results::open(args.bulk.results.as_deref(), existing, counts)?;
    let mut signals = signals::listen()?;
    let connection = session.connect("mq publish", frames).await?;
    let mut published = Published {
        counts,
        unroutable_before: (kept.as_ref())
            .map_or_else(Lines::default, |(_, sent)| sent.unroutable.clone()),
        ..Published::default()
    };
    let mut settled = kept.map(|(file, sent)| Settled::new(file, sent));
    let mut hurry = None;
    let publishing = async {
        let window = usize::from(args.bulk.in_flight);
        let pipeline = Pipeline::open(&connection, window, args.waits.confirm_timeout)
            .await?
            .with_blocked_limit(args.waits.blocked_timeout);
        let rules = Rules {
            source: &source,
            target,
            drop_user_id: args.bulk.drop_user_id,
            stops_at_unroutable: args.bulk.on_unroutable == OnUnroutable::Stop,
            rate: args.bulk.rate,
            blocked_timeout: args.waits.blocked_timeout,
            retry_refused: args.waits.retry_refused,
            session,
        };
        let books = Books::new(&mut published, &mut results, &mut settled);
        let mut sending = Sending::new(pipeline, &connection, rules, books);
        let sent = sending.send_all(&mut batches, &mut signals).await;
        let (rest, second_signal) = sending.settle_rest(&mut signals).await;
        hurry = second_signal;
        sent.and(rest)
    };
    let limit = args.waits.blocked_timeout;
    let result = alarms::telling(&connection, limit, session, publishing).await;
    if hurry.is_none() {
        connection.close().await;
    }
    let ended_well = result.is_ok();
    let written = Books::new(&mut published, &mut results, &mut settled).close();
    let result = unread(first_of(result, written), &published, ended_well);
    let reported = if results.is_on_standard_output() {
        session.warn(|| format!("mq: {}", published_text(&name, &published)));
        Ok(())
    } else {
        session.report(
            || published_text(&name, &published),
            || published_json(&name, &published),
        )
    };
    let told = verdict(&name, &published, result);
    let cleared = settled.as_mut().map_or(Ok(()), Settled::told);
    let told = told.and_then(|exit| reported.and(cleared).map(|()| exit));
    match (hurry, told) {
        (None, told) => told.map_err(Into::into),
        (Some(signal), Ok(_)) => Ok(Exit::Signal(signal)),
        (Some(signal), Err(error)) => {
            output::talk(&format!("mq: {}", output::printable(&error.to_string())));
            Ok(Exit::Signal(signal))
        }
    }
}

/// Why it ended; that receipts are missing is told as well.
fn first_of(result: Result<()>, written: Result<()>) -> Result<()> {
    if let (Err(first), Err(second)) = (&result, &written)
        && first != second
        && second.kind() != ErrorKind::ReaderGone
    {
        output::talk(&format!("mq: {}", output::printable(&second.to_string())));
    }
    result.and(written)
}

/// A reader of results that went away ends it well only if there was nothing
/// left to send or to tell.
fn unread(result: Result<()>, published: &Published, ended_well: bool) -> Result<()> {
    let all_arrived = ended_well
        && published.stopped_by.is_none()
        && published.routed == published.sent
        && published.unroutable_before.count == 0;
    result.map_err(|error| match error.kind() {
        ErrorKind::ReaderGone if !all_arrived => Error::new(
            ErrorKind::InputOutput,
            "nobody reads the results any more; nothing more was sent",
        )
        .hint("read --results to the end, or write them to a file"),
        _ => error,
    })
}

/// Lines of JSON may have headers of any size.
fn frames(source: &Source, additions: &Additions, prototype: &Prototype) -> Frames {
    match source {
        Source::JsonLines(_) => Frames::Large,
        _ => additions.frames(prototype),
    }
}

/// What tells this from other bulks. The cluster is no part of it: nodes of one that
/// nobody named each give it their own name, and a run may go on at another node.
fn identity(args: &PublishArgs, source: &Source, vhost: &VhostName) -> String {
    let template = args.bulk.template.then(|| "--template".to_owned());
    let parts = [Some(source.identity()), template, target_text(args)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} in vhost '{vhost}'", parts.join(" "))
}

/// Where the command line says that messages go.
fn target_text(args: &PublishArgs) -> Option<String> {
    if let Some(queue) = &args.queue {
        return Some(format!("to queue '{queue}'"));
    }
    let exchange = args
        .exchange
        .as_ref()
        .map(|name| format!("to exchange '{name}'"));
    let key = args.key.as_ref().map(|key| format!("with key '{key}'"));
    match (exchange, key) {
        (Some(exchange), Some(key)) => Some(format!("{exchange} {key}")),
        (exchange, key) => exchange.or(key),
    }
}

/// What all runs over one source have in common.
fn run_id() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// Shows what would be sent. With a schema all messages are checked, else it ends at
/// the first that is wrong.
pub(super) fn dry_run(args: &PublishArgs, environment: Environment) -> Result<Exit> {
    let prototype = Prototype::of(args, environment)?;
    let source = source(args, &prototype, environment)?;
    let target = Target::of(args)?;
    let additions = Additions::of(args, environment)?;
    let checks_all = additions.check();
    let mut batches = batches::read(
        source.clone(),
        Reading {
            prototype,
            environment,
            settled: None,
            additions,
            is_dry_run: true,
        },
    )?;
    let mut wrong: Option<Error> = None;
    while let Some(batch) = batches.blocking_recv() {
        let mut page = Vec::new();
        for item in batch {
            let line = item.and_then(|item| {
                let mut message = item.message;
                target
                    .applied_to(&mut message)
                    .and_then(|_| shown(Arc::unwrap_or_clone(message)))
                    .map_err(|error| error.during(&source.place(item.number)))
            });
            match line {
                Ok(line) => output::add_line(&mut page, line.as_bytes()),
                Err(error) => {
                    if let Some(before) = wrong.replace(error) {
                        output::talk(&format!("mq: {}", output::printable(&before.to_string())));
                    }
                    if !checks_all {
                        break;
                    }
                }
            }
        }
        output::data_page(&page)?;
        if wrong.is_some() && !checks_all {
            break;
        }
    }
    wrong.map_or(Ok(Exit::Done), Err)
}

/// A message as `--jsonl` reads it.
fn shown(message: Publication) -> Result<String> {
    brokers_take(&message.properties, DEFAULT_FRAME_BYTES)?;
    let as_delivered = Delivery {
        exchange: message.exchange.to_string(),
        routing_key: message.routing_key.to_string(),
        redelivered: false,
        properties: message.properties,
        body: message.body,
    };
    let mut line = message_line(&as_delivered, None)?;
    if let Some(line) = line.as_object_mut() {
        line.shift_remove("redelivered");
    }
    Ok(output::json_line(&line))
}

fn source(args: &PublishArgs, prototype: &Prototype, environment: Environment) -> Result<Source> {
    let bulk = &args.bulk;
    Ok(match (&bulk.jsonl, &bulk.lines, &bulk.files) {
        (Some(path), _, _) => Source::JsonLines(path.clone()),
        (None, Some(path), _) => Source::Lines(path.clone()),
        (None, None, Some(folder)) => Source::Files(folder.clone()),
        (None, None, None) => {
            let body = super::publish::body(args.body.as_deref())?;
            let count = bulk.repeat.map_or(1, std::num::NonZeroU64::get);
            let digest = format!("{:x}", Sha256::digest(&body));
            Source::Repeat(count, prototype.body(body, environment)?, digest)
        }
    })
}

/// Where messages of `--jsonl` go instead of where their lines say.
struct Target {
    exchange: Option<ExchangeName>,
    key: Option<RoutingKey>,
}

impl Target {
    fn of(args: &PublishArgs) -> Result<Self> {
        if args.bulk.jsonl.is_none() {
            return Ok(Self {
                exchange: None,
                key: None,
            });
        }
        if let Some(queue) = &args.queue {
            return Ok(Self {
                exchange: Some(ExchangeName::default_exchange()),
                key: Some(RoutingKey::of_queue(&QueueName::of_existing(queue)?)),
            });
        }
        Ok(Self {
            exchange: args.exchange.clone().map(ExchangeName::new).transpose()?,
            key: args.key.clone().map(RoutingKey::new).transpose()?,
        })
    }

    /// Gives the message its place; whether `CC` and `BCC` were set aside.
    fn applied_to(&self, message: &mut Arc<Publication>) -> Result<bool> {
        if self.exchange.is_none() && self.key.is_none() {
            if message.exchange.is_empty() && message.routing_key.is_empty() {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    "it names neither an exchange nor a routing key",
                )
                .hint("say where it goes with -q QUEUE or -e EXCHANGE"));
            }
            return Ok(false);
        }
        let message = Arc::make_mut(message);
        if let Some(exchange) = &self.exchange {
            message.exchange = exchange.clone();
        }
        if let Some(key) = &self.key {
            message.routing_key = key.clone();
        }
        Ok(set_copies_aside(&mut message.properties.headers))
    }
}

fn verdict(file: &str, published: &Published, result: Result<()>) -> Result<Exit> {
    let mut told = Vec::new();
    for (lines, what) in [
        (
            &published.unroutable,
            "reached no queue; the broker has dropped it",
        ),
        (
            &published.unroutable_before,
            "reached no queue in an earlier run; the broker has dropped it",
        ),
        (&published.refused, "refused by the broker"),
        (
            &published.unknown,
            "no answer; the broker may or may not have it",
        ),
    ] {
        if lines.count > 0 {
            told.push(format!("{}: {what}", lines.told(published.counts)));
        }
    }
    let mut told = told.join("\nof ");
    if let (Err(error), Some(last)) = (&result, published.last_sent)
        && matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable)
        && !told.is_empty()
    {
        let counts = published.counts;
        told.push_str(&format!("; nothing behind {counts} {last} was sent"));
    }
    if let Err(error) = result {
        if told.is_empty() {
            return Err(error);
        }
        output::talk(&format!(
            "mq: of {}",
            output::printable(&format!("{file}, {told}"))
        ));
        // What may or may not have arrived is the same to who sent it, whether the
        // connection was lost or the answer.
        return Err(match error.kind() {
            ErrorKind::Unavailable if published.unknown.count > 0 => {
                error.as_kind(ErrorKind::TimedOut)
            }
            _ => error,
        });
    }
    let kind = match published {
        p if p.refused.count + p.unknown.count > 0 => ErrorKind::Refused,
        p if p.unroutable_before.count > 0 => ErrorKind::Partial,
        p if p.unroutable.count > 0 && p.routed == 0 => ErrorKind::Unroutable,
        p if p.unroutable.count > 0 => ErrorKind::Partial,
        p if p.stopped_by.is_some() => return Ok(Exit::Partial),
        _ => return Ok(Exit::Done),
    };
    Err(Error::new(kind, format!("of {file}, {told}"))
        .hint("mend what kept them from arriving, and publish those again that are named"))
}
