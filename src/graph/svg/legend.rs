//! What colours and lines mean: as much of it as the picture has.

use super::text::width;
use crate::graph::layout::Size;
use crate::graph::style::Look;
use crate::graph::{EdgeKind, Graph, NodeKind};

/// Rows of samples.
pub(super) struct Legend {
    pub(super) size: Size,
    pub(super) picture: String,
}

const SAMPLE: f64 = 34.0;
const ROW: f64 = 22.0;

/// Wide pictures have it in one row, narrow ones below each other.
pub(super) fn legend(graph: &Graph, wide: f64) -> Legend {
    let wide = wide.max(460.0);
    let mut legend = Legend {
        size: Size {
            width: 0.0,
            height: ROW,
        },
        picture: String::new(),
    };
    let mut right = 0.0;
    for (sample, words) in samples(graph) {
        let room = SAMPLE + 8.0 + width(words, 11.0) + 18.0;
        if right > 0.0 && right + room > wide {
            right = 0.0;
            legend.size.height += ROW;
        }
        let top = legend.size.height - ROW;
        legend.picture.push_str(&format!(
            "<g transform=\"translate({right:.1} {top:.1})\">{sample}\
             <text class=\"key\" x=\"{:.1}\" y=\"15\">{words}</text></g>\n",
            SAMPLE + 8.0
        ));
        right += room;
        legend.size.width = legend.size.width.max(right);
    }
    legend
}

fn samples(graph: &Graph) -> Vec<(String, &'static str)> {
    let looks = Look::ALL.into_iter().filter_map(|look| {
        let mut nodes = graph.nodes.iter();
        let node = nodes.find(|node| Look::of(node) == look)?;
        let round = match node.kind {
            NodeKind::Exchange => 8,
            NodeKind::Queue => 3,
        };
        let sample = format!(
            "<g class=\"node {}\"><rect x=\"4\" y=\"3\" width=\"26\" height=\"16\" rx=\"{round}\"/></g>",
            look.class()
        );
        Some((sample, look.words()))
    });
    let kinds = EdgeKind::ALL.into_iter().filter_map(|kind| {
        graph.edges.iter().find(|edge| edge.kind == kind)?;
        let class = kind.word();
        let sample = format!(
            "<g class=\"edge {class}\"><path class=\"line\" d=\"M2 11H{SAMPLE}\" marker-end=\"url(#to-{class})\"/></g>"
        );
        Some((sample, kind.words()))
    });
    looks.chain(kinds).collect()
}
