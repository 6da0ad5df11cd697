//! What the command line says of the messages to be sent: their place,
//! properties and, with `--template`, what differs between them.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where templates are filled by the clock and chance"
)]

use std::time::SystemTime;

use super::headers;
use crate::cli::PublishArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::message::{DeliveryMode, Filling, Properties, Publication, Template};
use crate::offsets::uuid;
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// How a variable of the environment is asked for.
pub(super) type Environment = fn(&str) -> Option<String>;

/// What all messages have in common.
#[derive(Clone, Debug)]
pub(super) struct Prototype {
    exchange: ExchangeName,
    key: Template,
    properties: Properties,
    /// Headers that differ, in place of those in `properties`.
    headers: Vec<(String, Template)>,
    message_id: Option<Template>,
    correlation_id: Option<Template>,
    /// Whether bodies are templates too.
    fills_bodies: bool,
}

impl Prototype {
    /// Reads it from the command line.
    ///
    /// # Errors
    /// When a name is too long, a header or a template is wrong.
    pub(super) fn of(args: &PublishArgs, environment: Environment) -> Result<Self> {
        if args.bulk.drop_user_id && args.bulk.jsonl.is_none() {
            // clap asks for no flag that the rest of the line excludes.
            return Err(Error::new(
                ErrorKind::Usage,
                "--drop-user-id is about messages of a file",
            )
            .hint("leave it out, or give the file with --jsonl"));
        }
        let fills = args.bulk.template;
        let template = |text: &str| {
            if fills {
                Template::parse(text, &environment)
            } else {
                Ok(Template::literal(text))
            }
        };
        let (exchange, key) = match (&args.exchange, &args.queue) {
            (_, Some(queue)) => {
                let queue = QueueName::of_existing(queue)?;
                (
                    ExchangeName::default_exchange(),
                    Template::literal(RoutingKey::of_queue(&queue).as_str()),
                )
            }
            (exchange, None) => (
                ExchangeName::new(exchange.clone().unwrap_or_default())?,
                template(args.key.as_deref().unwrap_or_default())?,
            ),
        };
        let mut fixed = FieldTable::new();
        let mut differing = Vec::new();
        for (name, value) in headers::table(&args.headers)? {
            match value.as_text() {
                Some(text) if fills => differing.push((name.clone(), template(text)?)),
                _ => {
                    fixed.insert(name, value);
                }
            }
        }
        let id = |given: &Option<String>| given.as_deref().map(template).transpose();
        Ok(Self {
            exchange,
            key,
            headers: differing,
            message_id: id(&args.message_id)?,
            correlation_id: id(&args.correlation_id)?,
            fills_bodies: fills,
            properties: Properties {
                content_type: args.content_type.clone(),
                content_encoding: args.content_encoding.clone(),
                headers: fixed,
                delivery_mode: Some(if args.transient {
                    DeliveryMode::Transient
                } else {
                    DeliveryMode::Persistent
                }),
                priority: args.priority,
                correlation_id: None,
                reply_to: args.reply_to.clone(),
                expiration: args
                    .expiration
                    .map(|duration| duration.as_millis().to_string()),
                message_id: None,
                timestamp: args.timestamp,
                kind: args.kind.clone(),
                user_id: args.user_id.clone(),
                app_id: args.app_id.clone(),
                cluster_id: None,
            },
        })
    }

    /// Whether there are templates.
    pub(super) const fn fills(&self) -> bool {
        self.fills_bodies
    }

    /// The most bytes of properties and headers that a message has; none where
    /// templates make headers, of any size.
    pub(super) fn header_bytes(&self) -> Option<usize> {
        let ids = 2 * 256;
        (self.headers.is_empty()).then(|| self.properties.encoded_bytes() + ids)
    }

    /// A message with this body ([`Body::fill`]), and all templates filled.
    ///
    /// # Errors
    /// When a filled routing key is longer than AMQP allows.
    pub(super) fn message(&self, with: &Filling, body: Vec<u8>) -> Result<Publication> {
        let mut properties = self.properties.clone();
        for (name, template) in &self.headers {
            let text = FieldValue::text(template.fill(with));
            properties.headers.insert(name.clone(), text);
        }
        properties.message_id = self.message_id.as_ref().map(|id| id.fill(with));
        properties.correlation_id = self.correlation_id.as_ref().map(|id| id.fill(with));
        Ok(Publication {
            exchange: self.exchange.clone(),
            routing_key: RoutingKey::new(self.key.fill(with))?,
            properties,
            body,
        })
    }

    /// Bytes that were given as a body, to be filled for each message.
    ///
    /// # Errors
    /// With `--template`, when they are no text or no template.
    pub(super) fn body(&self, bytes: Vec<u8>, environment: Environment) -> Result<Body> {
        if !self.fills_bodies {
            return Ok(Body::Fixed(bytes));
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("the body is no text, and so no template: {error}"),
            )
            .hint("leave --template out")
        })?;
        Template::parse(text, &environment).map(Body::Filled)
    }
}

/// The body of many messages.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// The same for all.
    Fixed(Vec<u8>),
    /// Filled for each.
    Filled(Template),
}

impl Body {
    pub(super) fn fill(&self, with: &Filling) -> Vec<u8> {
        match self {
            Self::Fixed(bytes) => bytes.clone(),
            Self::Filled(template) => template.fill(with).into_bytes(),
        }
    }
}

/// What fills the templates of one message.
pub(super) fn filling(seq: u64, file: &str) -> Filling {
    Filling {
        seq,
        uuid: uuid(fastrand::u128(..), 4),
        now: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        file: file.to_owned(),
    }
}
