//! `mq wait`: until the broker really answers.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where waiting meets the clock"
)]

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::session::Session;
use crate::cli::WaitArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);

pub(super) async fn run(args: &WaitArgs, session: &Session) -> anyhow::Result<Exit> {
    let deadline = Instant::now() + args.limit;
    let (version, amqp) = for_amqp(deadline, session).await?;
    let mut management = None;
    if !args.amqp_only {
        management = Some(for_management(deadline, session).await?);
    }
    session.report(
        || match &management {
            Some(place) => format!("ready: {version} at {amqp}, management at {place}"),
            None => format!("ready: {version} at {amqp}"),
        },
        || json!({ "ready": true, "broker": version, "amqp": amqp, "management": management }),
    )?;
    Ok(Exit::Done)
}

/// Waits until AMQP answers, at most this long.
pub(super) async fn for_amqp_within(limit: Duration, session: &Session) -> Result<()> {
    for_amqp(Instant::now() + limit, session).await.map(drop)
}

/// Waits until the management API answers, at most this long.
pub(super) async fn for_management_within(limit: Duration, session: &Session) -> Result<()> {
    for_management(Instant::now() + limit, session)
        .await
        .map(drop)
}

/// Which of the management APIs answered.
async fn for_management(deadline: Instant, session: &Session) -> Result<String> {
    let what = format!("management at {}", session.management_address());
    until(deadline, &what, async |limit| {
        let management = session.management_within(limit)?;
        management.version().await?;
        Ok(management.endpoint().to_string())
    })
    .await
}

/// The broker's product and version, and which of the endpoints answered.
async fn for_amqp(deadline: Instant, session: &Session) -> Result<(String, String)> {
    let what = format!("AMQP at {}", session.amqp_address());
    until(deadline, &what, async |limit| {
        let connection = session.connect_within("mq wait", limit).await?;
        let found = (
            connection.facts().to_string(),
            connection.endpoint().to_string(),
        );
        connection.close().await;
        Ok(found)
    })
    .await
}

/// Tries until it works or the time is over. A wrong URL will not mend itself;
/// a refused login or a missing vhost may: they are created while brokers start.
async fn until<T>(
    deadline: Instant,
    what: &str,
    attempt: impl AsyncFn(Duration) -> Result<T>,
) -> Result<T> {
    let mut said = String::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // One try may use all the time there is, but never so little that it cannot succeed.
        let limit = left.clamp(Duration::from_millis(200), Duration::from_secs(5));
        let error = match attempt(limit).await {
            Ok(done) => return Ok(done),
            Err(error) if error.kind() == ErrorKind::Configuration => return Err(error),
            Err(error) => error,
        };
        if Instant::now() + PAUSE >= deadline {
            return Err(gave_up(what, &error));
        }
        if said != error.message() {
            said = error.message().to_owned();
            output::talk(&format!("waiting for {what}: {}", output::printable(&said)));
        }
        sleep(PAUSE).await;
    }
}

fn gave_up(what: &str, last: &Error) -> Error {
    let error = Error::new(
        ErrorKind::Unavailable,
        format!("gave up waiting for {what}: {}", last.message()),
    );
    match last.way_out() {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
