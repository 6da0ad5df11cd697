//! `mq dlq inspect`: a look that costs nothing, or no look.

use super::session::Session;
use crate::broker::BrokerFacts;
use crate::cli::InspectArgs;
use crate::deadletter::{Letter, PeekRisk, letter_json, peek_risk};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, Format, Inspection, inspection_json, inspection_text};
use crate::topology::{QueueName, VhostName};

pub(super) async fn run(args: &InspectArgs, session: &Session) -> anyhow::Result<Exit> {
    let queue = QueueName::of_existing(&args.queue)?;
    let vhost = session.vhost()?;
    let management = session.management()?;
    let facts = BrokerFacts::new("RabbitMQ", management.version().await?);
    let observed = management.queue(vhost, &queue, &facts).await?;
    let risk = peek_risk(&observed.kind, observed.limit, &facts);
    match refusal(vhost, &queue, &risk, &facts) {
        None => {}
        Some(error) if args.even_if_it_counts && risk != PeekRisk::Impossible => {
            output::talk(&format!("mq: looking all the same: {}", error.message()));
        }
        Some(error) => return Err(error.into()),
    }
    let body_bytes = usize::try_from(args.body_bytes).unwrap_or(usize::MAX);
    let look = management
        .look(vhost, &queue, args.limit, body_bytes)
        .await?;
    let inspection = Inspection {
        queue: queue.to_string(),
        vhost: vhost.to_string(),
        observed,
        messages: look
            .messages
            .into_iter()
            .map(|message| {
                let letter = Letter::read(&message.message.properties);
                (message, letter)
            })
            .collect(),
        not_shown: look.not_shown,
        body_bytes,
    };
    print(&inspection, session)?;
    Ok(Exit::Done)
}

fn print(inspection: &Inspection, session: &Session) -> Result<()> {
    match session.format {
        // The data was asked for: --quiet does not take it away.
        Format::Table => output::data(&inspection_text(inspection)),
        Format::Json => output::data(&output::json_pretty(&inspection_json(inspection))),
        Format::JsonLines => {
            for (message, letter) in &inspection.messages {
                let json = letter_json(
                    &message.message,
                    letter,
                    message.body_bytes,
                    inspection.body_bytes,
                );
                output::data(&output::json_line(&json))?;
            }
            Ok(())
        }
    }
}

/// Why a look is not safe, and what is; `None`: it is.
fn refusal(
    vhost: &VhostName,
    queue: &QueueName,
    risk: &PeekRisk,
    facts: &BrokerFacts,
) -> Option<Error> {
    let why = match risk {
        PeekRisk::Safe => return None,
        PeekRisk::Impossible => {
            return Some(
                Error::new(
                    ErrorKind::Blocked,
                    format!(
                        "queue '{queue}' is a stream, which the management API cannot look into"
                    ),
                )
                .hint("read it with a stream consumer from an offset"),
            );
        }
        PeekRisk::Unknown(kind) => format!(
            "queue '{queue}' has the type '{kind}', of which it is not known what a look does"
        ),
        PeekRisk::LosesAtOnce { limit } => format!(
            "queue '{queue}' has the delivery limit {limit}, and {facts} loses a message at its first return: one look would lose every message it shows"
        ),
        PeekRisk::Counts { looks, limit } => format!(
            "queue '{queue}' is a quorum queue with the delivery limit {limit}, and on {facts} every look counts: a message survives {looks} looks at most and is lost at the next one"
        ),
        PeekRisk::CarriedCount { limit } => format!(
            "queue '{queue}' is a quorum queue with the delivery limit {limit}, and {facts} loses a message at its first look if it came with a higher count from the queue it died in"
        ),
    };
    let policy = match risk {
        PeekRisk::LosesAtOnce { .. } => {
            "move the messages to a queue declared without x-delivery-limit"
        }
        _ => {
            "use a dead-letter queue that is classic, or quorum with `delivery_limit: unlimited` (4.x)"
        }
    };
    Some(Error::new(ErrorKind::Blocked, why).hint(format!(
        "on the broker's machine, without counting: rabbitmq-queues peek --vhost {} {} 1\n\
         for good: {policy}\n\
         knowing the risk: mq dlq inspect {} --even-if-it-counts",
        vhost.shell_quoted(),
        queue.shell_quoted(),
        queue.shell_quoted()
    )))
}
