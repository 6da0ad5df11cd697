//! `mq publish`: one message, confirmed and routed.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where bodies are read from files and standard input"
)]

use std::io::{IsTerminal as _, Read as _};

use super::alarms;
use super::publish_additions::Additions;
use super::publish_again;
use super::publish_prototype::{Environment, Prototype, filling};
use super::session::Session;
use crate::amqp::{Frames, Publisher, Receipt};
use crate::cli::PublishArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::message::{Publication, brokers_take};
use crate::output::{receipt_json, receipt_text};

pub(super) async fn run(
    args: PublishArgs,
    environment: Environment,
    session: &Session,
) -> anyhow::Result<Exit> {
    let message = message(&args, environment)?;
    let frames = Frames::for_message(message.properties.encoded_bytes(), message.body.len());
    let connection = session.connect("mq publish", frames).await?;
    if let Err(error) = brokers_take(&message.properties, connection.frame_bytes()) {
        connection.close().await;
        return Err(error
            .during(&format!("the message to {}", place(&message)))
            .into());
    }
    let mut publisher = Publisher::open(&connection, args.waits.confirm_timeout)
        .await?
        .with_blocked_limit(args.waits.blocked_timeout);
    let again = args.waits.retry_refused;
    let publishing = publish_again::publish(&mut publisher, &message, again, session);
    let limit = args.waits.blocked_timeout;
    let published = alarms::telling(&connection, limit, session, publishing).await;
    let channel = publisher.into_channel();
    connection.close_with(channel).await;
    let receipt = published?;
    session.report(
        || receipt_text(&message, &receipt),
        || receipt_json(&message, &receipt),
    )?;
    verdict(&message, receipt).map_err(Into::into)
}

fn place(message: &Publication) -> String {
    if message.exchange.is_empty() {
        format!("queue '{}'", message.routing_key)
    } else {
        format!(
            "exchange '{}' with key '{}'",
            message.exchange, message.routing_key
        )
    }
}

fn verdict(message: &Publication, receipt: Receipt) -> Result<Exit> {
    let place = place(message);
    match receipt {
        Receipt::Routed => Ok(Exit::Done),
        Receipt::Unroutable(said) => Err(Error::new(
            ErrorKind::Unroutable,
            format!("the message to {place} reached no queue ({said}); the broker has dropped it"),
        )
        .hint(if message.exchange.is_empty() {
            "declare the queue first, or check its name and the vhost"
        } else {
            "bind a queue to the exchange with a matching key, or check the key"
        })),
        Receipt::Refused => Err(Error::new(
            ErrorKind::Refused,
            format!("the broker refused (nack) the message to {place}"),
        )
        .hint("the queue may be full (x-overflow: reject-publish); make room and publish again, or have it sent again with --retry-refused 5m. If the message went to several queues, some may have it")),
        Receipt::Unknown(error) => {
            let error = error.as_kind(ErrorKind::TimedOut);
            Err(match error.way_out() {
                Some(_) => error,
                None => error.hint("publish again if a duplicate does no harm, or give it longer with --confirm-timeout"),
            })
        }
    }
}

fn message(args: &PublishArgs, environment: Environment) -> Result<Publication> {
    let prototype = Prototype::of(args, environment)?;
    let additions = Additions::of(args, environment)?;
    let with = filling(1, "");
    let body = prototype.body(body(args.body.as_deref())?, environment)?;
    let mut message = prototype.message(&with, body.fill(&with))?;
    additions
        .add(&mut message, || with.uuid.clone())
        .map_err(|error| error.hint("correct the body; nothing was sent"))?;
    Ok(message)
}

/// The bytes, exactly as they are.
pub(super) fn body(given: Option<&str>) -> Result<Vec<u8>> {
    match given {
        None | Some("-") => {
            let mut stdin = std::io::stdin();
            if given.is_none() && stdin.is_terminal() {
                return Err(Error::new(ErrorKind::Usage, "no body is given").hint(
                    "give it as an argument ('' for an empty one), as @FILE, or on standard input",
                ));
            }
            let mut bytes = Vec::new();
            stdin.read_to_end(&mut bytes).map_err(|error| {
                Error::new(
                    ErrorKind::InputOutput,
                    format!("cannot read the body from standard input: {error}"),
                )
            })?;
            Ok(bytes)
        }
        Some(text) => match text.strip_prefix('@') {
            None => Ok(text.as_bytes().to_vec()),
            Some(path) => std::fs::read(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Error::new(
                    ErrorKind::InputMissing,
                    format!("the body file {path} does not exist"),
                )
                .hint("check the path; for a text that begins with @ use standard input"),
                _ => Error::new(
                    ErrorKind::InputOutput,
                    format!("cannot read the body file {path}: {error}"),
                ),
            }),
        },
    }
}
