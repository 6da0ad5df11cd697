//! What is added to each message on request, and the schema that bodies must fit.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where events get their time and traces their ids"
)]

use std::time::SystemTime;

use super::message_schemas;
use super::publish_prototype::{Environment, Prototype};
use crate::amqp::Frames;
use crate::cli::PublishArgs;
use crate::contract::Schema;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{
    CloudEvent, Publication, TraceParent, add_trace, guess_content_type, is_structured,
    is_trace_state,
};

/// Bytes that the header of a new trace takes, at most.
const NEW_TRACE: usize = 128;

/// What is added to each message that lacks it, and what is checked before.
#[derive(Clone, Debug)]
pub(super) struct Additions {
    schema: Option<Schema>,
    gives_ids: bool,
    guesses_content_type: bool,
    /// Without its time.
    event: Option<CloudEvent>,
    trace: Option<Trace>,
}

#[derive(Clone, Debug)]
enum Trace {
    /// One that goes on, with its state.
    Known(TraceParent, Option<String>),
    /// A new one of this id.
    New(u128),
}

impl Additions {
    /// What messages of this prototype need. Small frames spare lapin 7 MiB of buffers
    /// (measured on 4.12.3), and take headers that are known to be small.
    pub(super) fn frames(&self, prototype: &Prototype) -> Frames {
        match (&self.event, &self.trace, prototype.header_bytes()) {
            (None, None | Some(Trace::New(_)), Some(bytes)) => {
                Frames::for_message(bytes + NEW_TRACE, 0)
            }
            _ => Frames::Large,
        }
    }

    /// Whether nothing is checked or added.
    pub(super) const fn are_none(&self) -> bool {
        self.schema.is_none()
            && !self.gives_ids
            && !self.guesses_content_type
            && self.event.is_none()
            && self.trace.is_none()
    }

    /// Reads it from the command line, the schema and the environment.
    ///
    /// # Errors
    /// When the schema cannot be read, or a value is wrong.
    pub(super) fn of(args: &PublishArgs, environment: Environment) -> Result<Self> {
        let added = &args.added;
        let schema = added.schema.as_deref().map(message_schemas::compiled);
        let event = match (&added.ce_type, &added.ce_source) {
            (Some(kind), Some(source)) => {
                let event = CloudEvent {
                    kind: kind.clone(),
                    source: source.clone(),
                    subject: added.ce_subject.clone(),
                    time: String::new(),
                };
                event
                    .check()
                    .map_err(|error| error.as_kind(ErrorKind::Usage))?;
                if args.content_type.as_deref().is_some_and(is_structured) {
                    return Err(Error::new(
                        ErrorKind::Usage,
                        "a body of the content type application/cloudevents is a whole event, to which --ce-type adds nothing",
                    )
                    .hint("leave --ce-type out, or give the content type of the data"));
                }
                Some(event)
            }
            _ => None,
        };
        Ok(Self {
            schema: schema.transpose()?,
            gives_ids: added.generate_message_id,
            guesses_content_type: added.guess_content_type,
            event,
            trace: (added.traceparent.as_deref())
                .map(|given| trace(given, environment))
                .transpose()?,
        })
    }

    /// Whether bodies are held against a schema.
    pub(super) const fn check(&self) -> bool {
        self.schema.is_some()
    }

    /// Checks a message and adds what it lacks; `id` is the one it gets if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when its body does not fit.
    pub(super) fn add(&self, message: &mut Publication, id: impl Fn() -> String) -> Result<()> {
        if let Some(schema) = &self.schema {
            let encoding = message.properties.content_encoding.as_deref();
            if let Some(why) = schema.broken_by(&message.body, encoding) {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("the body does not fit {why}"),
                ));
            }
        }
        if self.guesses_content_type {
            guess_content_type(message);
        }
        let properties = &mut message.properties;
        if self.gives_ids {
            properties.message_id.get_or_insert_with(&id);
        }
        if let Some(event) = &self.event {
            let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
            let event = CloudEvent {
                time,
                ..event.clone()
            };
            event.describe(properties, id);
        }
        match &self.trace {
            None => {}
            Some(Trace::Known(parent, state)) => add_trace(properties, parent, state.as_deref()),
            Some(Trace::New(trace)) => {
                let parent = TraceParent::new(*trace, fastrand::u64(..));
                add_trace(properties, &parent, None);
            }
        }
        Ok(())
    }
}

fn trace(given: &str, environment: Environment) -> Result<Trace> {
    if !given.is_empty() {
        return Ok(Trace::Known(TraceParent::parse(given)?, None));
    }
    let found = environment("TRACEPARENT").filter(|text| !text.is_empty());
    Ok(match found.as_deref().map(TraceParent::parse) {
        Some(Ok(parent)) => {
            let state = environment("TRACESTATE").filter(|text| is_trace_state(text));
            Trace::Known(parent, state)
        }
        // So the recommendation: who gets a wrong one begins a new trace.
        Some(Err(error)) => {
            tracing::warn!(
                error = error.message(),
                "TRACEPARENT is not used, a new trace begins"
            );
            Trace::New(fastrand::u128(..))
        }
        None => Trace::New(fastrand::u128(..)),
    })
}
