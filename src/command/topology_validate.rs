//! `mq topology validate`: files alone, no broker.

use serde_json::{Map, Value as Json};

use super::topology_files;
use crate::cli::{GlobalArgs, OutputFormat, ValidateArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output;
use crate::topology::Topology;
use crate::topologyfile;

pub(super) fn run(args: &ValidateArgs, global: &GlobalArgs) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
    let expanded = if args.expand {
        Some(expanded(&topology)?)
    } else {
        None
    };
    let counts = [
        (topology.exchanges.len(), "exchanges"),
        (topology.queues.len(), "queues"),
        (topology.bindings.len(), "bindings"),
    ];
    match global.output {
        OutputFormat::Table if expanded.is_some() => {
            output::data(&expanded.unwrap_or_default())?;
        }
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
            let expanded = expanded.map(|text| ("expanded".to_owned(), Json::from(text)));
            let json: Map<String, Json> = std::iter::once(valid)
                .chain(counts)
                .chain(expanded)
                .collect();
            output::data(&Json::Object(json).to_string())?;
        }
    }
    Ok(Exit::Done)
}

/// The file without short forms.
fn expanded(topology: &Topology) -> Result<String> {
    let exported = topologyfile::expanded(topology).map_err(|why| {
        Error::new(
            ErrorKind::Internal,
            format!("the topology cannot be written: {why}"),
        )
    })?;
    for left_out in &exported.left_out {
        output::talk(&format!("mq: left out: {}", output::printable(left_out)));
    }
    Ok(exported.text)
}
