//! `mq topology validate`: files alone, no broker.

use super::topology_files;
use crate::cli::{GlobalArgs, OutputFormat, ValidateArgs};
use crate::exit::Exit;
use crate::output;

pub(super) fn run(args: &ValidateArgs, global: &GlobalArgs) -> anyhow::Result<Exit> {
    let topology = topology_files::load(args.files.all())?;
    let counts = [
        (topology.exchanges.len(), "exchanges"),
        (topology.queues.len(), "queues"),
        (topology.bindings.len(), "bindings"),
    ];
    match global.output {
        OutputFormat::Table if global.quiet => {}
        OutputFormat::Table => {
            let parts: Vec<String> = counts
                .iter()
                .map(|(count, what)| format!("{count} {what}"))
                .collect();
            output::data(&format!("fine: {}", parts.join(", ")))?;
        }
        OutputFormat::Json | OutputFormat::Jsonl => {
            let mut json = serde_json::json!({ "valid": true });
            for (count, what) in counts {
                json[what] = count.into();
            }
            output::data(&json.to_string())?;
        }
    }
    Ok(Exit::Done)
}
