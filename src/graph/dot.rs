//! A graph in the language of Graphviz.

use crate::graph::style::Look;
use crate::graph::{EdgeKind, Graph, NodeKind, label};
use crate::printable::unbroken;

/// The digraph.
#[must_use]
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from(
        "digraph topology {\n  rankdir=LR\n  node [fontname=\"Helvetica\", fontsize=11]\n  edge [fontname=\"Helvetica\", fontsize=10]\n",
    );
    for (place, node) in graph.nodes.iter().enumerate() {
        let lines: Vec<String> = std::iter::once(node.name.clone())
            .chain(node.lines())
            .map(|line| escaped(&line))
            .collect();
        let look = Look::of(node);
        let colours = look.light();
        let shape = match node.kind {
            NodeKind::Exchange => "box",
            NodeKind::Queue => "cylinder",
        };
        let mut style = vec!["filled"];
        style.extend((node.kind == NodeKind::Exchange).then_some("rounded"));
        style.extend(look.is_dashed().then_some("dashed"));
        text.push_str(&format!(
            "  n{place} [label=\"{}\", shape={shape}, style=\"{}\", fillcolor=\"{}\", color=\"{}\", fontcolor=\"{}\"]\n",
            lines.join("\\n"),
            style.join(","),
            colours.fill,
            colours.stroke,
            colours.text
        ));
    }
    for edge in &graph.edges {
        let colour = edge.kind.light();
        let style = match edge.kind {
            EdgeKind::Binding => "solid",
            EdgeKind::Alternate | EdgeKind::DeadLetter => "dashed",
            EdgeKind::Worker | EdgeKind::Retry => "dotted",
        };
        let labels = label::bounded(&edge.labels);
        let labels: Vec<String> = labels.iter().map(|label| escaped(label)).collect();
        text.push_str(&format!(
            "  n{} -> n{} [label=\"{}\", style={style}, color=\"{colour}\", fontcolor=\"{colour}\"]\n",
            edge.from,
            edge.to,
            labels.join("\\n")
        ));
    }
    text.push_str("}\n");
    text
}

/// Text in a quoted label: Graphviz reads backslashes and, in every label, the
/// entities of HTML.
fn escaped(text: &str) -> String {
    unbroken(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_syntax() {
        for (name, label) in [
            ("orders.queue", "orders.queue"),
            ("a\"b", "a\\\"b"),
            ("\\N\\", "\\\\N\\\\"),
            ("&lt;<b>", "&amp;lt;<b>"),
            ("a\nb", "a\\\\nb"),
            ("日本 🐇", "日本 🐇"),
        ] {
            assert_eq!(escaped(name), label, "{name}");
        }
    }
}
