//! `mq topology graph`: files, or a broker, as a picture.

use super::session::Session;
use super::topology_files;
use crate::cli::{GlobalArgs, GraphArgs, OutputFormat, Picture};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::graph::{self, Depths, Graph, MERMAID_EDGES};
use crate::output;
use crate::topology::{Topology, VhostName};

pub(super) async fn run(
    args: &GraphArgs,
    global: &GlobalArgs,
    broker: Option<Session>,
) -> anyhow::Result<Exit> {
    let files = args.files();
    let declared = files.as_ref().map(topology_files::load_named).transpose()?;
    let (topology, depths, vhost) = match broker {
        None => {
            let topology = declared.unwrap_or_default();
            let vhost = topology.vhost.clone();
            (topology, None, vhost)
        }
        Some(mut session) => {
            let (topology, depths) = look(&mut session, declared).await?;
            (topology, Some(depths), Some(session.vhost()?.clone()))
        }
    };
    let graph = graph::draw(&topology, depths.as_ref());
    output::data(&drawn(args.picture, global.output, &graph, vhost.as_ref())?)?;
    Ok(Exit::Done)
}

/// What is drawn of a broker: the files, or else everything in its vhost; and
/// how full all its queues are.
async fn look(session: &mut Session, declared: Option<Topology>) -> Result<(Topology, Depths)> {
    session.prefer_vhost(declared.as_ref().and_then(|files| files.vhost.as_ref()));
    let vhost = session.vhost()?;
    let management = session.management()?;
    let topology = match declared {
        Some(files) => files,
        None => {
            let facts = management.facts().await?;
            match management.policies(vhost).await {
                Ok(policies) => Topology {
                    policies,
                    ..management.declared(vhost, &facts).await?
                },
                // Only a policymaker may read policies, but everybody what they
                // come to, a few seconds late.
                Err(error) if error.kind() == ErrorKind::AccessRefused => {
                    management.topology(vhost, &facts).await?
                }
                Err(error) => return Err(error),
            }
        }
    };
    let depths = management.depths(vhost).await?;
    Ok((topology, depths))
}

/// `--as` is asked for by name, so it wins over a format that may come from the
/// environment.
fn drawn(
    picture: Option<Picture>,
    format: OutputFormat,
    graph: &Graph,
    vhost: Option<&VhostName>,
) -> Result<String> {
    Ok(match (picture, format) {
        (None, OutputFormat::Json) => output::json_pretty(&output::graph_json(graph, vhost)),
        (None, OutputFormat::Jsonl) => output::json_line(&output::graph_json(graph, vhost)),
        (None, OutputFormat::Table) | (Some(Picture::Mermaid), _) => {
            if graph.edges.len() > MERMAID_EDGES {
                output::talk(&format!(
                    "mq: {} edges are more than the {MERMAID_EDGES} that mermaid draws; use `--as dot`, or give fewer files",
                    graph.edges.len()
                ));
            }
            graph::mermaid(graph)
        }
        (Some(Picture::Dot), _) => graph::dot(graph),
        (Some(Picture::Svg), _) => graph::svg(graph).map_err(|too_large| {
            Error::new(ErrorKind::InvalidInput, too_large.to_string())
                .hint("use `--as dot` with Graphviz, or narrow it down: give fewer files")
        })?,
    })
}
