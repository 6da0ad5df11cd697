//! `mq dlq inspect`: a look that costs nothing, or no look.

use super::dlq_guard::may_take;
use super::dlq_look::look_carefully;
use super::session::Session;
use crate::cli::InspectArgs;
use crate::deadletter::{Letter, PeekRisk, letter_json, most_to_look_at};
use crate::error::Result;
use crate::exit::Exit;
use crate::management::Peeked;
use crate::output::{self, Detail, Format, Inspection, inspection_json, inspection_text};
use crate::query::Filter;
use crate::topology::QueueName;

/// Bytes of each body that a filter can ask about: more than 64 MiB in one look
/// are not asked for, so that fewer messages are where they are large.
const FILTERED_BYTES: usize = 1024 * 1024;

pub(super) async fn run(args: &InspectArgs, session: &Session) -> anyhow::Result<Exit> {
    let filter = args.filter.as_deref().map(Filter::parse).transpose()?;
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
    let body_bytes = usize::try_from(args.body_bytes()).unwrap_or(usize::MAX);
    // A filter is asked about whole bodies, as far as that goes.
    let asked_bytes = match filter {
        Some(_) => body_bytes.max(FILTERED_BYTES),
        None => body_bytes,
    };
    let count = most_to_look_at(
        args.limit,
        asked_bytes,
        permit.observed.messages,
        permit.observed.message_bytes,
    );
    let (messages, not_shown, replaced) = match permit.risk {
        // Only the API can say what an unknown type of queue does.
        PeekRisk::Safe | PeekRisk::Unknown(_) | PeekRisk::Impossible => {
            let look = management.look(vhost, &queue, count, asked_bytes).await?;
            (look.messages, look.not_shown, 0)
        }
        _ => {
            let look = look_carefully(session, vhost, &queue, &permit, count, asked_bytes).await?;
            (look.messages, look.not_shown, look.replaced)
        }
    };
    if replaced > 0 {
        output::talk(&format!(
            "mq: {replaced} messages would have been lost when they were put back, and were replaced by copies at the end of the queue"
        ));
    }
    let looked_at = messages.len();
    let messages = matching(messages, filter.as_ref(), asked_bytes)?;
    let inspection = Inspection {
        queue: queue.to_string(),
        vhost: vhost.to_string(),
        observed: permit.observed,
        look: permit.risk.word(),
        filtered_out: filter.is_some().then(|| looked_at - messages.len()),
        messages,
        not_shown,
        capped: count < args.limit,
        replaced,
        body_bytes,
    };
    print(&inspection, args.full, session)?;
    Ok(Exit::Done)
}

/// The messages that the filter accepts, each with what its headers tell.
fn matching(
    messages: Vec<Peeked>,
    filter: Option<&Filter>,
    body_bytes: usize,
) -> Result<Vec<(Peeked, Letter)>> {
    let mut matching = Vec::new();
    for (at, peeked) in messages.into_iter().enumerate() {
        let letter = Letter::read(&peeked.message.properties);
        let accepted = match filter {
            None => true,
            Some(filter) => {
                let whole = peeked.body_bytes;
                let json = letter_json(&peeked.message, &letter, whole, body_bytes);
                filter
                    .accepts(&json)
                    .map_err(|error| error.during(&format!("message #{}", at + 1)))?
            }
        };
        if accepted {
            matching.push((peeked, letter));
        }
    }
    Ok(matching)
}

fn print(inspection: &Inspection, full: bool, session: &Session) -> Result<()> {
    match session.format {
        // The data was asked for: --quiet does not take it away.
        Format::Table => {
            let detail = if full {
                Detail::Full
            } else {
                Detail::Lines(output::data_width())
            };
            output::data(&inspection_text(inspection, detail))
        }
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
