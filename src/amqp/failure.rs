//! lapin's errors in our words: what the broker refused and what to do about it.

use std::io;

use lapin::ErrorKind as LapinKind;
use lapin::protocol::AMQPError;

use crate::error::{Error, ErrorKind};
use crate::tls::LoginNames;

/// What was being done when it failed; words the error.
pub(super) fn explain(error: &lapin::Error, doing: &str) -> Error {
    match error.kind() {
        LapinKind::ProtocolError(refusal) => refused(refusal).during(doing),
        LapinKind::IOError(error) => lost(error).during(doing),
        LapinKind::MissingHeartbeatError => Error::new(
            ErrorKind::Unavailable,
            "the broker stopped answering (no heartbeat)",
        )
        .hint("check the network and whether the broker is overloaded, then run this again")
        .during(doing),
        LapinKind::InvalidChannelState(..) | LapinKind::InvalidConnectionState(_) => Error::new(
            ErrorKind::Unavailable,
            "the connection to the broker was lost",
        )
        .hint("check that the broker runs, then run this again")
        .during(doing),
        LapinKind::ParsingError(_) => Error::new(
            ErrorKind::Protocol,
            "the broker sent a frame that the client library cannot read",
        )
        .hint(
            "a message with a routing key or a header name that is not UTF-8, or with headers larger than a frame, does this; remove it with another client (`amqp-get`, pika). Each new start hands messages out again, which counts against a quorum queue's delivery limit",
        )
        .during(doing),
        other => Error::new(ErrorKind::Protocol, format!("unexpected: {other:?}")).during(doing),
    }
}

/// A login with a certificate knows no password: what to check are its names.
pub(super) fn refused_by_certificate(error: Error, names: &LoginNames) -> Error {
    if error.kind() != ErrorKind::AccessRefused || !error.message().contains("Login was refused") {
        return error;
    }
    let whole = &names.distinguished;
    let common = match &names.common {
        Some(common) => format!("'{common}' with `ssl_cert_login_from = common_name`"),
        None => "it has no common name to take instead".to_owned(),
    };
    let hint = format!(
        "the broker takes the user from the client certificate: '{whole}' by default (`ssl_cert_login_from = distinguished_name`), {common}; that user must exist there: rabbitmqctl list_users"
    );
    error.hint(hint)
}

/// Whether the broker said that the object does not exist.
pub(super) fn is_not_found(error: &lapin::Error) -> bool {
    code(error) == Some(404)
}

/// Whether the object is exclusive to another connection.
pub(super) fn is_locked(error: &lapin::Error) -> bool {
    code(error) == Some(405)
}

/// The broker's text of a 406 refusal: what differs or is invalid.
pub(super) fn precondition(error: &lapin::Error) -> Option<String> {
    match error.kind() {
        LapinKind::ProtocolError(refusal) if refusal.get_id() == 406 => {
            Some(text(refusal).to_owned())
        }
        _ => None,
    }
}

/// The largest body that the broker takes, in bytes, if this error is about one
/// that was larger.
#[must_use]
pub fn max_message_size(error: &Error) -> Option<usize> {
    let (_, rest) = error
        .message()
        .split_once("is larger than configured max size ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn code(error: &lapin::Error) -> Option<u16> {
    match error.kind() {
        LapinKind::ProtocolError(refusal) => Some(refusal.get_id()),
        _ => None,
    }
}

/// The text after the broker's own code word (`ACCESS_REFUSED - …`).
fn text(refusal: &AMQPError) -> &str {
    let text = refusal.get_message().as_str();
    text.split_once(" - ").map_or(text, |(_, rest)| rest)
}

fn refused(refusal: &AMQPError) -> Error {
    let said = text(refusal);
    let (kind, hint) = match refusal.get_id() {
        403 if said.contains("Login was refused") => (
            ErrorKind::AccessRefused,
            "check user and password in the URL (or MQ_URL); `guest` may log in from the broker's own machine only",
        ),
        403 if said.contains("reserved") || said.contains("default exchange") => (
            ErrorKind::InvalidInput,
            "that name belongs to the broker; use another one",
        ),
        403 => (
            ErrorKind::AccessRefused,
            "grant it: rabbitmqctl set_permissions -p VHOST USER CONFIGURE WRITE READ",
        ),
        404 => (
            ErrorKind::NotFound,
            "declare it first, or check its name and the vhost",
        ),
        405 => (
            ErrorKind::Unavailable,
            "it is exclusive to another connection, or has a single active consumer that forbids this",
        ),
        406 if said.contains("delivery acknowledgement") => (
            ErrorKind::TimedOut,
            "a message was held longer than the broker's consumer_timeout; shorten the handler or raise that limit",
        ),
        406 if said.contains("message size") => (
            ErrorKind::InvalidInput,
            "the broker's limit is `max_message_size` (128 MiB up to 3.13, 16 MiB from 4.0)",
        ),
        406 => (ErrorKind::InvalidInput, "correct the argument it names"),
        530 if said.contains("access to vhost") => (
            ErrorKind::AccessRefused,
            "grant it: rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*'",
        ),
        530 if said.contains("not found") => (
            ErrorKind::NotFound,
            "create it with `rabbitmqctl add_vhost NAME`, or check the end of the URL (`/` is written %2f)",
        ),
        530 => (
            ErrorKind::Blocked,
            "the broker's configuration or policy forbids it",
        ),
        320 => (
            ErrorKind::Unavailable,
            "the broker closed the connection on purpose (shutdown or an operator); run this again when it is back",
        ),
        501 => (
            ErrorKind::InvalidInput,
            "headers must fit into one frame (128 KiB by default); make them smaller",
        ),
        503 if said.contains("exchange type") => (
            ErrorKind::InvalidInput,
            "correct the `type`, or enable the plugin that brings it",
        ),
        541 => (
            ErrorKind::Unavailable,
            "the broker had an internal error; its log says more",
        ),
        _ => (ErrorKind::Protocol, "the broker's log may say more"),
    };
    Error::new(kind, format!("the broker says: {said}")).hint(hint)
}

fn lost(error: &io::Error) -> Error {
    let (what, hint) = match error.kind() {
        io::ErrorKind::TimedOut => (
            "no answer in time".to_owned(),
            "something accepts connections there but does not speak AMQP; check host and port, or give it longer with --timeout",
        ),
        io::ErrorKind::ConnectionRefused => (
            "connection refused".to_owned(),
            "start the broker, or check host and port",
        ),
        // rustls words it with the address of its manual.
        io::ErrorKind::UnexpectedEof => (
            "the other side closed the connection without a word".to_owned(),
            "check that the broker runs, and that this is a port of AMQP (5672, or 5671 over TLS): one of HTTPS, or a proxy, closes like this",
        ),
        _ => (
            error.to_string(),
            "check that the broker runs and can be reached",
        ),
    };
    Error::new(ErrorKind::Unavailable, what).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::protocol::AMQPError;
    use lapin::types::ShortString;

    #[test]
    fn the_broker_says_how_large_a_message_may_be() {
        let of = |message: &str| max_message_size(&Error::new(ErrorKind::InvalidInput, message));
        let said = "f:6: publish to queue 'q': the broker says: message size 600000 is larger than configured max size 500000";
        assert_eq!(of(said), Some(500_000));
        assert_eq!(of("is larger than configured max size"), None);
        assert_eq!(of("is larger than configured max size x"), None);
        assert_eq!(of("queue 'a' does not exist"), None);
    }

    #[test]
    fn a_certificate_that_is_no_login_is_told_with_its_names() {
        let refused = |said: &str| {
            let names = LoginNames {
                distinguished: "CN=shop,O=Us".to_owned(),
                common: Some("shop".to_owned()),
            };
            let error = Error::new(ErrorKind::AccessRefused, said).hint("check the password");
            refused_by_certificate(error, &names)
        };
        let told = refused("Login was refused using authentication mechanism EXTERNAL").to_string();
        for part in [
            "'CN=shop,O=Us' by default",
            "'shop' with `ssl_cert_login_from",
        ] {
            assert!(told.contains(part), "{part:?} is not in {told}");
        }
        assert!(!told.contains("password"), "{told}");
        let other = refused("access to vhost 'v' refused").to_string();
        assert!(other.contains("password"), "{other}");
    }

    #[test]
    fn a_hang_up_is_told_without_an_address_of_rustls() {
        let error = io::Error::new(io::ErrorKind::UnexpectedEof, "see https://docs.rs/rustls");
        let told = lost(&error).to_string();
        assert!(
            told.contains("HTTPS") && !told.contains("docs.rs"),
            "{told}"
        );
    }

    #[test]
    fn a_refusal_becomes_its_exit_code_and_a_way_out() {
        for (id, said, kind) in [
            (
                403,
                "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.",
                ErrorKind::AccessRefused,
            ),
            (
                403,
                "ACCESS_REFUSED - write access to exchange 'x' refused",
                ErrorKind::AccessRefused,
            ),
            (
                404,
                "NOT_FOUND - no queue 'q' in vhost '/'",
                ErrorKind::NotFound,
            ),
            (
                406,
                "PRECONDITION_FAILED - message size 20 is larger than configured max size 16",
                ErrorKind::InvalidInput,
            ),
            (530, "NOT_ALLOWED - vhost v not found", ErrorKind::NotFound),
            (
                530,
                "NOT_ALLOWED - access to vhost 'v' refused for user 'u'",
                ErrorKind::AccessRefused,
            ),
            (
                320,
                "CONNECTION_FORCED - broker forced connection closure",
                ErrorKind::Unavailable,
            ),
        ] {
            let refusal = AMQPError::from_id(id, ShortString::from(said)).expect("known code");
            let error = refused(&refusal);
            assert_eq!(error.kind(), kind, "{said}");
            assert!(error.way_out().is_some());
            assert!(!error.message().contains(" - "), "{error}");
        }
    }
}
