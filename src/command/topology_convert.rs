//! `mq topology convert`: RabbitMQ's definitions and topology files, one into the other.

use serde_json::Value as Json;

use super::topology_files;
use crate::broker::BrokerFacts;
use crate::cli::ConvertArgs;
use crate::definitions;
use crate::diagnostic::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output;
use crate::topology::VhostName;
use crate::topologyfile::export;

pub(super) fn run(args: &ConvertArgs, vhost: Option<String>) -> anyhow::Result<Exit> {
    let vhost = vhost.map(VhostName::new).transpose()?;
    let sources = topology_files::load_sources(&args.files)?;
    let definitions: Vec<Json> = sources.iter().filter_map(as_definitions).collect();
    let left_out = match (definitions.as_slice(), sources.as_slice()) {
        ([json], [source]) => to_file(json, source, vhost.as_ref())?,
        ([], _) => to_definitions(&sources, vhost, &args.for_version)?,
        _ => {
            return Err(Error::new(
                ErrorKind::Usage,
                "definitions are converted one file at a time, without topology files",
            )
            .hint("give one definitions file, or topology files only")
            .into());
        }
    };
    for left_out in &left_out {
        output::talk(&format!("mq: left out: {}", output::printable(left_out)));
    }
    Ok(if left_out.is_empty() {
        Exit::Done
    } else {
        Exit::Partial
    })
}

/// Definitions are JSON; a topology file that happens to be JSON has a `version`.
fn as_definitions(source: &Source) -> Option<Json> {
    let text = source.text.trim_start_matches('\u{feff}');
    let json: Json = serde_json::from_str(text).ok()?;
    (json.is_object() && json.get("version").is_none()).then_some(json)
}

fn to_file(json: &Json, source: &Source, vhost: Option<&VhostName>) -> Result<Vec<String>> {
    let read = definitions::read(json, vhost).map_err(|error| error.during(&source.name))?;
    let exported = export(&read.topology).map_err(|why| {
        Error::new(
            ErrorKind::Internal,
            format!("the topology of {} cannot be written: {why}", source.name),
        )
    })?;
    output::data(&exported.text)?;
    if !read.other_vhosts.is_empty() {
        output::talk(&format!(
            "mq: the file also holds vhosts that were not asked for: {}",
            output::printable(&read.other_vhosts.join(", "))
        ));
    }
    Ok(read.left_out.into_iter().chain(exported.left_out).collect())
}

fn to_definitions(
    sources: &[Source],
    vhost: Option<VhostName>,
    version: &str,
) -> Result<Vec<String>> {
    let topology = topology_files::parse(sources)?;
    let vhost = vhost.or_else(|| topology.vhost.clone());
    let facts = BrokerFacts::new("RabbitMQ", version);
    let written = definitions::write(&topology, vhost.as_ref(), &facts);
    output::data(&output::json_pretty(&written.json))?;
    Ok(written.left_out)
}
