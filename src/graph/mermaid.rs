//! A graph as a mermaid flowchart, which GitHub and many others draw.

use crate::graph::style::Look;
use crate::graph::{EdgeKind, Graph, Node, NodeKind, label};
use crate::printable::unbroken;

/// Most edges that mermaid draws unless it is told otherwise (`maxEdges`).
pub const MERMAID_EDGES: usize = 500;

/// The flowchart.
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::from("flowchart LR\n");
    for (place, node) in graph.nodes.iter().enumerate() {
        let (open, close) = match node.kind {
            NodeKind::Exchange => ("([", "])"),
            NodeKind::Queue => ("[(", ")]"),
        };
        let words = node_words(node);
        let class = Look::of(node).class();
        text.push_str(&format!("  n{place}{open}\"{words}\"{close}:::{class}\n"));
    }
    for edge in &graph.edges {
        let arrow = match edge.kind {
            EdgeKind::Binding => "-->",
            _ => "-.->",
        };
        let labels = label::bounded(&edge.labels);
        let labels: Vec<String> = labels.iter().map(|label| escaped(label)).collect();
        let words = if labels.is_empty() {
            String::new()
        } else {
            format!("|\"{}\"|", labels.join("<br/>"))
        };
        text.push_str(&format!("  n{} {arrow}{words} n{}\n", edge.from, edge.to));
    }
    text.push_str(&styles(graph));
    text
}

fn node_words(node: &Node) -> String {
    let name = if node.name.is_empty() {
        "#32;".to_owned()
    } else {
        escaped(&node.name)
    };
    let lines = node.lines();
    let lines = lines.iter().map(|line| escaped(line));
    std::iter::once(name)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("<br/>")
}

/// Only what the graph has, and no line ends with a semicolon: mermaid would
/// take a colour for the beginning of an escaped character.
fn styles(graph: &Graph) -> String {
    let mut text = String::new();
    for kind in EdgeKind::ALL {
        let places: Vec<String> = graph
            .edges
            .iter()
            .enumerate()
            .filter(|(_, edge)| edge.kind == kind)
            .map(|(place, _)| place.to_string())
            .collect();
        if !places.is_empty() && kind != EdgeKind::Binding {
            let dashes = kind.dashes().unwrap_or("0");
            text.push_str(&format!(
                "  linkStyle {} stroke:{},stroke-width:2px,stroke-dasharray:{dashes}\n",
                places.join(","),
                kind.light()
            ));
        }
    }
    for look in Look::ALL {
        if graph.nodes.iter().any(|node| Look::of(node) == look) {
            let colours = look.light();
            let dashes = if look.is_dashed() {
                ",stroke-dasharray:5 4"
            } else {
                ""
            };
            text.push_str(&format!(
                "  classDef {} fill:{},stroke:{},color:{}{dashes}\n",
                look.class(),
                colours.fill,
                colours.stroke,
                colours.text
            ));
        }
    }
    text
}

/// Text in a quoted label. Letters and digits of any script stay, and the
/// punctuation of ordinary names between them; whatever could end the label, or
/// mean something in HTML, in Markdown or as a link, becomes its number.
fn escaped(text: &str) -> String {
    let text = unbroken(text);
    let could_be_a_link = text.to_lowercase().contains("www.");
    let chars: Vec<char> = text.chars().collect();
    let mut label = String::with_capacity(text.len());
    let mut before = None;
    for (at, &c) in chars.iter().enumerate() {
        let after = chars.get(at + 1).copied();
        let inside = |is: fn(char) -> bool| before.is_some_and(is) && after.is_some_and(is);
        let is_plain = match c {
            ' ' => inside(|c| c != ' '),
            ',' => before.is_some_and(char::is_alphanumeric) && after == Some(' '),
            '-' | '_' => inside(char::is_alphanumeric),
            '.' => inside(char::is_alphanumeric) && !could_be_a_link,
            c => c.is_alphanumeric() || !(c.is_ascii() || c.is_whitespace()),
        };
        if is_plain {
            label.push(c);
        } else {
            label.push_str(&format!("#{};", u32::from(c)));
        }
        before = Some(c);
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_syntax() {
        for (name, label) in [
            ("orders.queue", "orders.queue"),
            ("a_b-c.d, e 1", "a_b-c.d, e 1"),
            ("ключ 日本 é 🐇", "ключ 日本 é 🐇"),
            ("order.*", "order#46;#42;"),
            ("#", "#35;"),
            ("a\"b];n1", "a#34;b#93;#59;n1"),
            ("<br/>&amp;", "#60;br#47;#62;#38;amp#59;"),
            ("`md`", "#96;md#96;"),
            ("1. list", "1#46; list"),
            ("- list", "#45; list"),
            ("_x_", "#95;x#95;"),
            ("www.x.org", "www#46;x#46;org"),
            ("a\nb\u{1b}", "a#92;nb#92;u#123;1b#125;"),
            (" a  b ", "#32;a#32;#32;b#32;"),
            ("%%{init}%%", "#37;#37;#123;init#125;#37;#37;"),
        ] {
            assert_eq!(escaped(name), label, "{name}");
        }
    }
}
