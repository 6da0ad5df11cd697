//! A graph as JSON.

use serde_json::{Value as Json, json};

use crate::graph::{Edge, EdgeKind, Graph, Node, NodeKind};
use crate::topology::VhostName;

/// The graph as JSON: `vhost`, `nodes` and `edges`, which name their ends by the
/// `id` of nodes.
#[must_use]
pub fn graph_json(graph: &Graph, vhost: Option<&VhostName>) -> Json {
    let nodes: Vec<Json> = graph.nodes.iter().map(node_json).collect();
    let edges: Vec<Json> = graph
        .edges
        .iter()
        .map(|edge| edge_json(graph, edge))
        .collect();
    json!({
        "vhost": vhost.map(VhostName::as_str),
        "nodes": nodes,
        "edges": edges,
    })
}

fn node_json(node: &Node) -> Json {
    let depth = node.depth.map(|depth| {
        json!({
            "ready": depth.ready,
            "unacknowledged": depth.unacknowledged,
            "consumers": depth.consumers,
        })
    });
    json!({
        "id": id(node),
        "kind": node.kind.word(),
        "name": node.name,
        "type": node.type_name,
        "state": node.state.word(),
        "role": node.role.map(crate::graph::Role::word),
        "facts": node.facts,
        "depth": depth,
        "alarm": node.alarms(),
    })
}

fn edge_json(graph: &Graph, edge: &Edge) -> Json {
    let end = |place: usize| graph.nodes.get(place).map(id);
    json!({
        "from": end(edge.from),
        "to": end(edge.to),
        "kind": EdgeKind::word(edge.kind),
        "labels": edge.labels,
    })
}

/// An exchange and a queue may have the same name.
fn id(node: &Node) -> String {
    format!("{}:{}", NodeKind::word(node.kind), node.name)
}
