//! A graph as a picture: one SVG without scripts, fonts or images of others,
//! for light and dark grounds.

mod legend;
mod sheet;
mod text;

use std::fmt;

use crate::graph::layout::{Layout, Link, Point, Rect, Route, Size, lay_out};
use crate::graph::style::Look;
use crate::graph::{EdgeKind, Graph, Node, NodeKind, label};
use text::{escaped, shortened, width, width_of_name};

/// Most nodes of a picture that a person can still read.
pub const MAX_NODES: usize = 500;

/// Most edges of one.
pub const MAX_EDGES: usize = 1000;

/// Why there is no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Nodes it would have.
    pub nodes: usize,
    /// Edges it would have.
    pub edges: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a picture of {} nodes and {} edges cannot be read; at most {MAX_NODES} and {MAX_EDGES} are drawn",
            self.nodes, self.edges
        )
    }
}

/// Around everything.
const MARGIN: f64 = 20.0;

/// Letters of a name or of a label before it is cut.
const NAME: usize = 44;
const LABEL: usize = 34;

/// Heights of lines.
const NAME_LINE: f64 = 18.0;
const LINE: f64 = 15.0;
const LABEL_LINE: f64 = 13.0;

/// The picture.
///
/// # Errors
/// When it would be too large to be read.
pub fn svg(graph: &Graph) -> Result<String, TooLarge> {
    if graph.nodes.len() > MAX_NODES || graph.edges.len() > MAX_EDGES {
        return Err(TooLarge {
            nodes: graph.nodes.len(),
            edges: graph.edges.len(),
        });
    }
    let sizes: Vec<Size> = graph.nodes.iter().map(node_size).collect();
    let links: Vec<Link> = graph
        .edges
        .iter()
        .map(|edge| Link {
            from: edge.from,
            to: edge.to,
            label: label_size(&edge_words(&edge.labels)),
            comes_back: edge.kind == EdgeKind::Retry,
        })
        .collect();
    let layout = lay_out(&sizes, &links);
    let legend = legend::legend(graph, layout.size.width);
    Ok(page(graph, &layout, &legend))
}

fn page(graph: &Graph, layout: &Layout, legend: &legend::Legend) -> String {
    let width = layout.size.width.max(legend.size.width) + 2.0 * MARGIN;
    let height = layout.size.height + legend.size.height + 3.0 * MARGIN;
    let title = title(graph);
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<style>{}</style>\n<defs>\n{}</defs>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">\n",
        sheet::sheet(),
        arrows()
    );
    for (edge, route) in graph.edges.iter().zip(&layout.routes) {
        let from = graph.nodes.get(edge.from);
        let to = graph.nodes.get(edge.to);
        let names = [from, to].map(|node| node.map_or("", |node| node.name.as_str()));
        page.push_str(&edge_picture(edge.kind, route, &edge.labels, names));
    }
    for (node, rect) in graph.nodes.iter().zip(&layout.nodes) {
        page.push_str(&node_picture(node, *rect));
    }
    page.push_str(&format!(
        "</g>\n<g transform=\"translate({MARGIN} {:.1})\">\n{}</g>\n</svg>\n",
        layout.size.height + 2.0 * MARGIN,
        legend.picture
    ));
    page
}

fn title(graph: &Graph) -> String {
    let count = |kind: NodeKind| {
        let count = graph.nodes.iter().filter(|node| node.kind == kind).count();
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", kind.word())
    };
    format!(
        "Topology: {}, {}",
        count(NodeKind::Exchange),
        count(NodeKind::Queue)
    )
}

fn arrows() -> String {
    let arrow = |kind: EdgeKind| {
        format!(
            "<marker id=\"to-{0}\" class=\"{0}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" \
             markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" \
             orient=\"auto\"><path class=\"head\" d=\"M0 0L8 4L0 8Z\"/></marker>\n",
            kind.word()
        )
    };
    EdgeKind::ALL.into_iter().map(arrow).collect()
}

/// Room on the left of a queue for its two bars.
const BARS: f64 = 10.0;

fn node_size(node: &Node) -> Size {
    let name = width_of_name(&shortened(&node.name, NAME), 13.0);
    let lines = node.lines();
    let widest = lines
        .iter()
        .map(|line| width(&shortened(line, NAME), 11.0))
        .fold(name, f64::max);
    let bars = match node.kind {
        NodeKind::Exchange => 6.0,
        NodeKind::Queue => BARS,
    };
    Size {
        width: widest + 24.0 + bars,
        height: NAME_LINE + LINE * text::count(lines.len()) + 14.0,
    }
}

fn node_picture(node: &Node, rect: Rect) -> String {
    let Rect {
        at: Point { x, y },
        size: Size { width, height },
    } = rect;
    let class = Look::of(node).class();
    let (round, bars, shift) = match node.kind {
        NodeKind::Exchange => (18.0, String::new(), 0.0),
        NodeKind::Queue => (
            4.0,
            format!(
                "<path class=\"bars\" d=\"M{:.1} {:.1}v{2:.1}M{3:.1} {1:.1}v{2:.1}\"/>",
                x + 6.0,
                y + 7.0,
                height - 14.0,
                x + 11.0
            ),
            BARS / 2.0,
        ),
    };
    let middle = x + width / 2.0 + shift;
    let lines = node.lines();
    let words = NAME_LINE + LINE * text::count(lines.len());
    let mut line_at = y + (height - words) / 2.0 + 13.0;
    let mut picture = format!(
        "<g class=\"node {class}\"><title>{} {}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" \
         width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{round}\"/>{bars}\
         <text class=\"name\" x=\"{middle:.1}\" y=\"{line_at:.1}\">{}</text>",
        node.kind.word(),
        escaped(&node.name),
        escaped(&shortened(&node.name, NAME))
    );
    line_at += 1.0;
    for line in lines {
        line_at += LINE;
        picture.push_str(&format!(
            "<text class=\"fact\" x=\"{middle:.1}\" y=\"{line_at:.1}\">{}</text>",
            escaped(&shortened(&line, NAME))
        ));
    }
    picture.push_str("</g>\n");
    picture
}

/// The lines along an edge.
fn edge_words(labels: &[String]) -> Vec<String> {
    label::bounded(labels)
        .iter()
        .map(|label| shortened(label, LABEL))
        .collect()
}

fn label_size(words: &[String]) -> Size {
    let widest = words.iter().map(|line| width_of_name(line, 11.0));
    let widest = widest.fold(0.0, f64::max);
    Size {
        width: if words.is_empty() { 0.0 } else { widest + 12.0 },
        height: LABEL_LINE * text::count(words.len()),
    }
}

fn edge_picture(kind: EdgeKind, route: &Route, labels: &[String], names: [&str; 2]) -> String {
    let class = kind.word();
    let [from, to] = names.map(escaped);
    let all = labels.iter().map(|label| escaped(label));
    let all: Vec<String> = all.collect();
    let mut picture = format!(
        "<g class=\"edge {class}\"><title>{from} → {to} ({}){}{}</title>\
         <path class=\"line\" d=\"{}\" marker-end=\"url(#to-{class})\"/>",
        kind.words(),
        if all.is_empty() { "" } else { ": " },
        all.join("; "),
        path(route)
    );
    let middle = route.label.at.x + route.label.size.width / 2.0;
    let mut line_at = route.label.at.y - 3.0;
    for line in edge_words(labels) {
        line_at += LABEL_LINE;
        picture.push_str(&format!(
            "<text class=\"label\" x=\"{middle:.1}\" y=\"{line_at:.1}\">{}</text>",
            escaped(&line)
        ));
    }
    picture.push_str("</g>\n");
    picture
}

/// Straight within a layer, curved between two.
fn path(route: &Route) -> String {
    let mut path = String::new();
    if let (true, [start, first, second, end]) = (route.is_loop, route.points.as_slice()) {
        return format!(
            "M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            start.x, start.y, first.x, first.y, second.x, second.y, end.x, end.y
        );
    }
    let mut before: Option<Point> = None;
    for (place, point) in route.points.iter().enumerate() {
        let Point { x, y } = *point;
        match before {
            None => path.push_str(&format!("M{x:.1} {y:.1}")),
            Some(last) if place % 2 == 0 && (last.y - y).abs() > 0.05 => {
                let middle = f64::midpoint(last.x, x);
                path.push_str(&format!(
                    "C{middle:.1} {:.1} {middle:.1} {y:.1} {x:.1} {y:.1}",
                    last.y
                ));
            }
            Some(last) if (last.x - x).abs() > 0.05 => path.push_str(&format!("L{x:.1} {y:.1}")),
            Some(_) => {}
        }
        before = Some(*point);
    }
    path
}

#[cfg(test)]
mod tests;
