//! `mq publish`: one message, confirmed and routed.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where bodies are read from files and standard input"
)]

use std::io::{IsTerminal as _, Read as _};

use super::headers;
use super::session::Session;
use crate::amqp::{Frames, Publisher, Receipt};
use crate::cli::PublishArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::message::{DeliveryMode, Properties, Publication};
use crate::output::{receipt_json, receipt_text};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

pub(super) async fn run(args: PublishArgs, session: &Session) -> anyhow::Result<Exit> {
    if args.drop_user_id {
        // clap asks for no flag that the rest of the line excludes.
        return Err(Error::new(
            ErrorKind::Usage,
            "--drop-user-id is about messages of a file",
        )
        .hint("leave it out, or give the file with --jsonl")
        .into());
    }
    let confirm_limit = args.confirm_timeout;
    let message = message(args)?;
    let frames = Frames::for_message(message.properties.encoded_bytes(), message.body.len());
    let connection = session.connect("mq publish", frames).await?;
    let mut publisher = Publisher::open(&connection, confirm_limit).await?;
    let published = publisher.publish(&message).await;
    drop(publisher);
    connection.close().await;
    let receipt = published?;
    session.report(
        || receipt_text(&message, &receipt),
        || receipt_json(&message, &receipt),
    )?;
    verdict(&message, receipt).map_err(Into::into)
}

fn verdict(message: &Publication, receipt: Receipt) -> Result<Exit> {
    let place = if message.exchange.is_empty() {
        format!("queue '{}'", message.routing_key)
    } else {
        format!(
            "exchange '{}' with key '{}'",
            message.exchange, message.routing_key
        )
    };
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
        .hint("the queue may be full (x-overflow: reject-publish); make room and publish again. If the message went to several queues, some may have it")),
        Receipt::Unknown(error) => {
            let error = error.as_kind(ErrorKind::TimedOut);
            Err(match error.way_out() {
                Some(_) => error,
                None => error.hint("publish again if a duplicate does no harm, or give it longer with --confirm-timeout"),
            })
        }
    }
}

fn message(args: PublishArgs) -> Result<Publication> {
    let (exchange, routing_key) = match (args.exchange, args.queue) {
        (_, Some(queue)) => (
            ExchangeName::default_exchange(),
            RoutingKey::of_queue(&QueueName::of_existing(&queue)?),
        ),
        (exchange, None) => (
            ExchangeName::new(exchange.unwrap_or_default())?,
            RoutingKey::new(args.key.unwrap_or_default())?,
        ),
    };
    let properties = Properties {
        content_type: args.content_type,
        content_encoding: args.content_encoding,
        headers: headers::table(&args.headers)?,
        delivery_mode: Some(if args.transient {
            DeliveryMode::Transient
        } else {
            DeliveryMode::Persistent
        }),
        priority: args.priority,
        correlation_id: args.correlation_id,
        reply_to: args.reply_to,
        expiration: args
            .expiration
            .map(|duration| duration.as_millis().to_string()),
        message_id: args.message_id,
        timestamp: args.timestamp,
        kind: args.kind,
        user_id: args.user_id,
        app_id: args.app_id,
        cluster_id: None,
    };
    Ok(Publication {
        exchange,
        routing_key,
        properties,
        body: body(args.body.as_deref())?,
    })
}

/// The bytes, exactly as they are.
fn body(given: Option<&str>) -> Result<Vec<u8>> {
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
