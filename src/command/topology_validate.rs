//! `mq topology validate`: files alone, no broker.

use serde_json::{Map, Value as Json};

use super::topology_files;
use crate::cli::{GlobalArgs, OutputFormat, ValidateArgs};
use crate::exit::Exit;
use crate::output;

pub(super) fn run(args: &ValidateArgs, global: &GlobalArgs) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
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
            let counts = counts.map(|(count, what)| (what.to_owned(), Json::from(count)));
            let valid = ("valid".to_owned(), Json::from(true));
            let json: Map<String, Json> = std::iter::once(valid).chain(counts).collect();
            output::data(&Json::Object(json).to_string())?;
        }
    }
    Ok(Exit::Done)
}
