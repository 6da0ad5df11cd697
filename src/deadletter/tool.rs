//! What other tools write into the headers of messages they give up: the error,
//! and where the message came from.
//!
//! Read off their sources: Spring AMQP's `RepublishMessageRecoverer`, MassTransit's
//! `_error` and `_skipped` queues, NServiceBus' recoverability, Celery's protocol
//! 2, rascal's recovery. None of it is trusted: any client can write anything.

use std::time::UNIX_EPOCH;

use crate::field::{FieldTable, FieldValue};

/// What one tool says about a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolTrace {
    /// `spring`, `masstransit`, `nservicebus`, `celery` or `rascal`.
    pub tool: &'static str,
    /// What went wrong.
    pub error: Option<String>,
    /// The queue it failed in.
    pub origin: Option<String>,
    /// Why it was given up, in the tool's word.
    pub reason: Option<String>,
    /// The exchange it came from.
    pub exchange: Option<String>,
    /// The key it came with.
    pub routing_key: Option<String>,
    /// How often it was tried.
    pub attempts: Option<u64>,
    /// When it failed, in seconds since 1970.
    pub time: Option<u64>,
}

impl ToolTrace {
    /// Reads it; `None`: no such tool has written there.
    #[must_use]
    pub fn read(headers: &FieldTable) -> Option<Self> {
        masstransit(headers)
            .or_else(|| nservicebus(headers))
            .or_else(|| spring(headers))
            .or_else(|| rascal(headers))
            .or_else(|| celery(headers))
    }
}

fn spring(headers: &FieldTable) -> Option<ToolTrace> {
    let stack = text(headers, "x-exception-stacktrace");
    let message = text(headers, "x-exception-message");
    if stack.is_none() && message.is_none() {
        return None;
    }
    Some(ToolTrace {
        tool: "spring",
        // An exception without a message still has its name in the first line.
        error: message.or_else(|| stack.as_deref().and_then(first_line)),
        exchange: text(headers, "x-original-exchange"),
        routing_key: text(headers, "x-original-routingKey"),
        ..ToolTrace::default()
    })
}

fn masstransit(headers: &FieldTable) -> Option<ToolTrace> {
    let kind = text(headers, "MT-Fault-ExceptionType");
    let message = text(headers, "MT-Fault-Message");
    let reason = text(headers, "MT-Reason");
    if kind.is_none() && message.is_none() && reason.is_none() {
        return None;
    }
    Some(ToolTrace {
        tool: "masstransit",
        error: named(kind, message),
        // `rabbitmq://host/vhost/queue?durable=true`
        origin: text(headers, "MT-Fault-InputAddress").and_then(|address| {
            let path = address.split('?').next()?;
            let name = path.rsplit('/').next()?;
            (!name.is_empty()).then(|| name.to_owned())
        }),
        reason,
        attempts: number(headers, "MT-Fault-RetryCount").map(|retries| retries.saturating_add(1)),
        time: time(headers, "MT-Fault-Timestamp"),
        ..ToolTrace::default()
    })
}

fn nservicebus(headers: &FieldTable) -> Option<ToolTrace> {
    let kind = text(headers, "NServiceBus.ExceptionInfo.ExceptionType");
    let message = text(headers, "NServiceBus.ExceptionInfo.Message");
    let origin = text(headers, "NServiceBus.FailedQ");
    if kind.is_none() && message.is_none() && origin.is_none() {
        return None;
    }
    Some(ToolTrace {
        tool: "nservicebus",
        error: named(kind, message),
        origin,
        reason: text(headers, "NServiceBus.ExceptionInfo.Reason"),
        time: time(headers, "NServiceBus.TimeOfFailure"),
        ..ToolTrace::default()
    })
}

/// A rejected task tells no error, but how often it was retried.
fn celery(headers: &FieldTable) -> Option<ToolTrace> {
    text(headers, "task")?;
    text(headers, "id")?;
    let retries = number(headers, "retries")?;
    Some(ToolTrace {
        tool: "celery",
        attempts: Some(retries.saturating_add(1)),
        ..ToolTrace::default()
    })
}

fn rascal(headers: &FieldTable) -> Option<ToolTrace> {
    let table = |table: &FieldTable, name: &str| match table.get(name) {
        Some(FieldValue::Table(inner)) => Some(inner.clone()),
        _ => None,
    };
    let rascal = table(headers, "rascal")?;
    let error = table(&rascal, "error").unwrap_or_default();
    let origin = text(&rascal, "originalQueue");
    let message = text(&error, "message");
    if message.is_none() && origin.is_none() {
        return None;
    }
    let recovered = table(&rascal, "recovery")
        .zip(origin.as_deref())
        .and_then(|(recovery, queue)| table(&recovery, queue));
    let republished = recovered.and_then(|recovered| number(&recovered, "republished"));
    Some(ToolTrace {
        tool: "rascal",
        error: named(text(&error, "code"), message),
        origin,
        exchange: text(&rascal, "originalExchange"),
        routing_key: text(&rascal, "originalRoutingKey"),
        attempts: republished.map(|times| times.saturating_add(1)),
        ..ToolTrace::default()
    })
}

fn named(kind: Option<String>, message: Option<String>) -> Option<String> {
    match (kind, message) {
        (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
        (one, other) => one.or(other),
    }
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

fn text(headers: &FieldTable, name: &str) -> Option<String> {
    match headers.get(name)? {
        FieldValue::LongStr(bytes) if !bytes.is_empty() => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    }
}

fn number(headers: &FieldTable, name: &str) -> Option<u64> {
    let value = headers.get(name)?;
    match value.as_integer() {
        Some(number) => u64::try_from(number).ok(),
        None => value.as_text()?.parse().ok(),
    }
}

/// A timestamp, or a time in UTC to the second: `2026-04-20T16:30:00.12Z`, and
/// NServiceBus' `2014-11-11 02:26:58:000462 Z`.
fn time(headers: &FieldTable, name: &str) -> Option<u64> {
    let value = headers.get(name)?;
    if let FieldValue::Timestamp(seconds) = value {
        return Some(*seconds);
    }
    let text = value.as_text()?;
    let (seconds, rest) = text.split_at_checked(19)?;
    if rest.contains(['+', '-']) {
        return None;
    }
    let time = humantime::parse_rfc3339_weak(seconds).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::table_from_json;
    use serde_json::{Value as Json, json};

    fn read(headers: &Json) -> Option<ToolTrace> {
        ToolTrace::read(&table_from_json(headers.as_object().expect("object")))
    }

    #[expect(clippy::unnecessary_wraps, reason = "what the fields are")]
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn each_tool_is_understood() {
        for (headers, expected) in [
            (
                json!({"x-exception-message": "no stock", "x-exception-stacktrace": "java.lang.E: no stock\n\tat x",
                       "x-original-exchange": "orders", "x-original-routingKey": "created"}),
                ToolTrace {
                    tool: "spring",
                    error: some("no stock"),
                    exchange: some("orders"),
                    routing_key: some("created"),
                    ..ToolTrace::default()
                },
            ),
            (
                json!({"x-exception-stacktrace": "\njava.lang.NullPointerException\n\tat x"}),
                ToolTrace {
                    tool: "spring",
                    error: some("java.lang.NullPointerException"),
                    ..ToolTrace::default()
                },
            ),
            (
                json!({"MT-Reason": "fault", "MT-Fault-ExceptionType": "System.E", "MT-Fault-Message": "boom",
                       "MT-Fault-InputAddress": "rabbitmq://localhost/v/orders?durable=true",
                       "MT-Fault-RetryCount": "3", "MT-Fault-Timestamp": "2026-04-20T16:30:00.1234567Z"}),
                ToolTrace {
                    tool: "masstransit",
                    error: some("System.E: boom"),
                    origin: some("orders"),
                    reason: some("fault"),
                    attempts: Some(4),
                    time: Some(1_776_702_600),
                    ..ToolTrace::default()
                },
            ),
            (
                json!({"NServiceBus.ExceptionInfo.ExceptionType": "System.E", "NServiceBus.ExceptionInfo.Message": "boom",
                       "NServiceBus.FailedQ": "Sales", "NServiceBus.TimeOfFailure": "2014-11-11 02:26:58:000462 Z"}),
                ToolTrace {
                    tool: "nservicebus",
                    error: some("System.E: boom"),
                    origin: some("Sales"),
                    time: Some(1_415_672_818),
                    ..ToolTrace::default()
                },
            ),
            (
                json!({"task": "app.tasks.add", "id": "7c", "retries": 2}),
                ToolTrace {
                    tool: "celery",
                    attempts: Some(3),
                    ..ToolTrace::default()
                },
            ),
            (
                json!({"rascal": {"originalQueue": "q.1", "originalExchange": "e", "originalRoutingKey": "k",
                       "recovery": {"q.1": {"republished": 9}}, "error": {"message": "republish me", "code": "red"}}}),
                ToolTrace {
                    tool: "rascal",
                    error: some("red: republish me"),
                    origin: some("q.1"),
                    exchange: some("e"),
                    routing_key: some("k"),
                    attempts: Some(10),
                    ..ToolTrace::default()
                },
            ),
        ] {
            assert_eq!(read(&headers), Some(expected), "{headers}");
        }
    }

    #[test]
    fn what_no_tool_writes_does_no_harm() {
        for headers in [
            json!({}),
            json!({"task": "a", "id": "b"}),
            json!({"rascal": "x"}),
            json!({"rascal": {"error": [1]}}),
            json!({"x-exception-message": 7, "MT-Reason": {}, "NServiceBus.FailedQ": ""}),
        ] {
            assert_eq!(read(&headers), None, "{headers}");
        }
        let odd = json!({"MT-Reason": "fault", "MT-Fault-InputAddress": "?", "MT-Fault-RetryCount": -1,
                         "MT-Fault-Timestamp": "2026-04-20T16:30:00+02:00"});
        let odd = read(&odd).expect("MassTransit");
        assert_eq!((odd.origin, odd.attempts, odd.time), (None, None, None));
        let far = json!({"MT-Reason": "fault", "MT-Fault-RetryCount": i64::MAX, "MT-Fault-Timestamp": "ééééééééééééééé"});
        assert_eq!(read(&far).expect("MassTransit").time, None);
    }
}
