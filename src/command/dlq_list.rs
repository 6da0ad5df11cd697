//! `mq dlq list`: every dead-letter queue, what is in it, and whether one may look.

use super::dlq_queues::dead_letter_queues;
use super::session::Session;
use crate::cli::ListArgs;
use crate::exit::Exit;
use crate::output::{self, Format, dlq_list_json, dlq_list_text};

pub(super) async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<Exit> {
    let management = session.management()?;
    let facts = management.facts().await?;
    let found =
        dead_letter_queues(session, &management, &facts, args.all_vhosts, !args.no_look).await?;
    match session.format {
        Format::Table => output::data(&dlq_list_text(&found.queues, args.all_vhosts))?,
        Format::Json => output::data(&output::json_pretty(&dlq_list_json(&found.queues)))?,
        Format::JsonLines => {
            for queue in &found.queues {
                let json = dlq_list_json(std::slice::from_ref(queue));
                let one = json.get(0).unwrap_or(&json);
                output::data(&output::json_line(one))?;
            }
        }
    }
    Ok(if found.skipped {
        Exit::Partial
    } else {
        Exit::Done
    })
}
