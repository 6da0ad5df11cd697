//! `mq dlq inspect`: a look that costs nothing, or no look.

use super::dlq_guard::may_take;
use super::session::Session;
use crate::cli::InspectArgs;
use crate::deadletter::{Letter, letter_json};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{self, Format, Inspection, inspection_json, inspection_text};
use crate::topology::QueueName;

pub(super) async fn run(args: &InspectArgs, session: &Session) -> anyhow::Result<Exit> {
    let queue = QueueName::of_existing(&args.queue)?;
    let vhost = session.vhost()?;
    let management = session.management()?;
    let permit = may_take(
        session,
        &management,
        vhost,
        &queue,
        "dlq inspect",
        args.even_if_it_counts,
    )
    .await?;
    tracing::info!(broker = %permit.facts, look = permit.risk.word(), "looking");
    let body_bytes = usize::try_from(args.body_bytes).unwrap_or(usize::MAX);
    let look = management
        .look(vhost, &queue, args.limit, body_bytes)
        .await?;
    let inspection = Inspection {
        queue: queue.to_string(),
        vhost: vhost.to_string(),
        observed: permit.observed,
        look: permit.risk.word(),
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
