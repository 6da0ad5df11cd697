//! `mq publish --jsonl`: the messages of a file, each confirmed and routed.

mod lines;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use tokio::sync::mpsc;

use super::session::Session;
use super::signals;
use crate::amqp::{Connection, Frames, Pipeline, Receipt};
use crate::cli::PublishArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::field::FieldValue;
use crate::message::{Properties, Publication, set_copies_aside};
use crate::output::{self, Published, published_json, published_text};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

use lines::{Line, file_name, read};

/// Messages that are not confirmed at a time, at most.
const WINDOW: usize = 256;

/// Bytes of bodies whose outcome is open, at most; one message may be larger.
const BYTES_OPEN: usize = 64 * 1024 * 1024;

/// Properties and headers share one frame, of 128 KiB by default; in bytes.
const MOST_PROPERTIES: usize = 131_064;

pub(super) async fn run(
    args: &PublishArgs,
    path: &Path,
    session: &Session,
) -> anyhow::Result<Exit> {
    let file = file_name(path);
    let target = Target::of(args)?;
    let mut lines = read(path)?;
    let mut signals = signals::listen()?;
    let connection = session.connect("mq publish", Frames::Large).await?;
    let mut published = Published::default();
    let result = async {
        let mut sending = Sending {
            pipeline: Pipeline::open(&connection, WINDOW, args.confirm_timeout).await?,
            connection: &connection,
            file: &file,
            target,
            drop_user_id: args.drop_user_id,
            open: VecDeque::new(),
            open_bytes: 0,
            exchanges: BTreeSet::new(),
            published: &mut published,
        };
        let sent = sending.send_all(&mut lines, &mut signals).await;
        sending.settle_rest().await.and(sent)
    }
    .await;
    connection.close().await;
    session.report(
        || published_text(&file, &published),
        || published_json(&file, &published),
    )?;
    verdict(&file, &published, result).map_err(Into::into)
}

/// Where messages go instead of where their lines say.
struct Target {
    exchange: Option<ExchangeName>,
    key: Option<RoutingKey>,
}

impl Target {
    fn of(args: &PublishArgs) -> Result<Self> {
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

    const fn is_elsewhere(&self) -> bool {
        self.exchange.is_some() || self.key.is_some()
    }
}

struct Sending<'s, 'c> {
    pipeline: Pipeline<'c>,
    connection: &'c Connection,
    file: &'s str,
    target: Target,
    drop_user_id: bool,
    /// Line and size of each message whose outcome is open, in order.
    open: VecDeque<(u64, usize)>,
    open_bytes: usize,
    /// Exchanges that are there.
    exchanges: BTreeSet<ExchangeName>,
    published: &'s mut Published,
}

impl Sending<'_, '_> {
    /// Sends line by line, until the end, a signal, or a line that cannot be sent.
    async fn send_all(
        &mut self,
        lines: &mut mpsc::Receiver<Line>,
        signals: &mut mpsc::UnboundedReceiver<u8>,
    ) -> Result<()> {
        loop {
            while self.open_bytes > BYTES_OPEN || !self.pipeline.has_room() {
                self.settle_one().await?;
            }
            tokio::select! {
                biased;
                signal = signals.recv() => {
                    self.published.stopped_by = signal.or(Some(0));
                    return Ok(());
                }
                line = lines.recv() => match line {
                    None => return Ok(()),
                    Some(line) => {
                        let (number, message) = line?;
                        self.send(number, message).await?;
                    }
                },
                told = self.pipeline.next(), if !self.open.is_empty() => {
                    let told = told?;
                    self.settled(told);
                }
            }
        }
    }

    async fn send(&mut self, number: u64, message: Publication) -> Result<()> {
        let place = format!("{}:{number}", self.file);
        let message = self.redirected(message).map_err(|e| e.during(&place))?;
        self.must_be_there(&message.exchange)
            .await
            .map_err(|e| e.during(&place))?;
        let bytes = message.body.len();
        self.pipeline.send(message).map_err(|e| e.during(&place))?;
        self.published.sent += 1;
        self.open.push_back((number, bytes));
        self.open_bytes += bytes;
        Ok(())
    }

    /// The message as it is sent.
    fn redirected(&mut self, mut message: Publication) -> Result<Publication> {
        if let Some((name, _)) =
            (message.properties.headers.iter()).find(|(_, value)| holds_no_number(value))
        {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the header '{}' holds NaN or infinity, at which brokers break the connection off",
                    output::one_line(name, 60)
                ),
            )
            .hint("send it as text"));
        }
        let us = &self.connection.endpoint().user;
        let properties = &mut message.properties;
        broker_takes(properties)?;
        if let Some(user) = properties.user_id.as_ref().filter(|user| *user != us) {
            if !self.drop_user_id {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "it has the user_id '{}', and brokers take none but that of who publishes, '{}'",
                        output::one_line(user, 60),
                        output::one_line(us, 60)
                    ),
                )
                .hint("log in as that user, or give --drop-user-id to send such messages without it"));
            }
            properties.user_id = None;
            self.published.user_ids_dropped += 1;
        }
        if self.target.is_elsewhere() {
            let dropped = set_copies_aside(&mut properties.headers);
            self.published.copies_dropped += u64::from(dropped);
        } else if message.exchange.is_empty() && message.routing_key.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "it names neither an exchange nor a routing key",
            )
            .hint("say where it goes with -q QUEUE or -e EXCHANGE"));
        }
        if let Some(exchange) = &self.target.exchange {
            message.exchange = exchange.clone();
        }
        if let Some(key) = &self.target.key {
            message.routing_key = key.clone();
        }
        Ok(message)
    }

    /// A message to an exchange that is not there would take the outcome of all
    /// that are under way with it: the broker closes the channel.
    async fn must_be_there(&mut self, exchange: &ExchangeName) -> Result<()> {
        if exchange.is_empty() || self.exchanges.contains(exchange) {
            return Ok(());
        }
        match self.connection.exchange_exists(exchange).await {
            Ok(false) => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("exchange '{exchange}' does not exist"),
                )
                .hint("declare it first, or send elsewhere with -q QUEUE or -e EXCHANGE"));
            }
            Ok(true) => {}
            // Who may publish need not be allowed to ask.
            Err(error) if error.kind() == ErrorKind::AccessRefused => {}
            Err(error) => return Err(error),
        }
        self.exchanges.insert(exchange.clone());
        Ok(())
    }

    async fn settle_one(&mut self) -> Result<()> {
        let told = self.pipeline.next().await?;
        self.settled(told);
        Ok(())
    }

    fn settled(&mut self, told: Option<(u64, Receipt)>) {
        let (Some((_, receipt)), Some((line, bytes))) = (told, self.open.pop_front()) else {
            return;
        };
        self.open_bytes -= bytes;
        match receipt {
            Receipt::Routed => self.published.routed += 1,
            Receipt::Unroutable(_) => self.published.unroutable.add(line),
            Receipt::Refused => self.published.refused.add(line),
            Receipt::Unknown(_) => self.published.unknown.add(line),
        }
    }

    /// What becomes of all that is under way; where that is not told, it is unknown.
    async fn settle_rest(&mut self) -> Result<()> {
        let mut result = Ok(());
        while !self.open.is_empty() && result.is_ok() {
            result = self.settle_one().await;
        }
        for (line, _) in self.open.drain(..) {
            self.published.unknown.add(line);
        }
        result
    }
}

/// Erlang has no such numbers: the broker fails when it reads the headers
/// (541 INTERNAL_ERROR, measured on 3.10.8, 4.0.5 and 4.3.6).
fn holds_no_number(value: &FieldValue) -> bool {
    match value {
        FieldValue::F32(n) => !n.is_finite(),
        FieldValue::F64(n) => !n.is_finite(),
        FieldValue::Array(items) => items.iter().any(holds_no_number),
        FieldValue::Table(table) => table.values().any(holds_no_number),
        _ => false,
    }
}

/// What a broker answers by closing the channel, and with it the outcome of all
/// that is under way: `expiration` must be a number, `CC` and `BCC` lists of text
/// (406), and all headers must fit into a frame (501; each measured).
fn broker_takes(properties: &Properties) -> Result<()> {
    let wrong = |what: String| {
        Err(Error::new(ErrorKind::InvalidInput, what)
            .hint("correct the line, or take it out; those before it were sent"))
    };
    if let Some(expiration) = &properties.expiration
        && (expiration.is_empty() || !expiration.bytes().all(|b| b.is_ascii_digit()))
    {
        let shown = output::one_line(expiration, 60);
        return wrong(format!(
            "its expiration '{shown}' is no number of milliseconds"
        ));
    }
    for name in ["CC", "BCC"] {
        let is_text = |value: &FieldValue| matches!(value, FieldValue::LongStr(_));
        match properties.headers.get(name) {
            None => {}
            Some(FieldValue::Array(keys)) if keys.iter().all(is_text) => {}
            Some(_) => return wrong(format!("its header '{name}' is no list of texts")),
        }
    }
    let bytes = properties.encoded_bytes();
    if bytes > MOST_PROPERTIES {
        return wrong(format!(
            "its properties and headers have {bytes} bytes; a frame holds {MOST_PROPERTIES}"
        ));
    }
    Ok(())
}

fn verdict(file: &str, published: &Published, result: Result<()>) -> Result<Exit> {
    let mut told = Vec::new();
    for (lines, what) in [
        (
            &published.unroutable,
            "reached no queue; the broker has dropped it",
        ),
        (&published.refused, "refused (nack) by the broker"),
        (
            &published.unknown,
            "no answer; the broker may or may not have it",
        ),
    ] {
        if lines.count > 0 {
            told.push(format!("{}: {what}", lines.told()));
        }
    }
    let told = told.join("\nof ");
    if let Err(error) = result {
        if told.is_empty() {
            return Err(error);
        }
        output::talk(&format!(
            "mq: of {}",
            output::printable(&format!("{file}, {told}"))
        ));
        return Err(error);
    }
    let kind = match published {
        p if p.refused.count + p.unknown.count > 0 => ErrorKind::Refused,
        p if p.unroutable.count > 0 && p.routed == 0 => ErrorKind::Unroutable,
        p if p.unroutable.count > 0 => ErrorKind::Partial,
        p if p.stopped_by.is_some() => return Ok(Exit::Partial),
        _ => return Ok(Exit::Done),
    };
    Err(Error::new(kind, format!("of {file}, {told}")).hint(
        "take these lines out into a file of their own, mend what kept them from arriving, and publish that",
    ))
}
