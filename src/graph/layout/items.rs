//! Everything that takes room in a layer: nodes, labels, and edges that pass.

use super::ranks::Ranks;
use super::{Link, Size, at};

/// What takes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A node: the first items are the nodes in their order.
    #[default]
    Node,
    /// The label of an edge; the edge passes below it.
    Label,
    /// An edge that only passes.
    Passing,
}

/// One of them, with its room above and below the line that it stands on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) layer: usize,
    pub(super) width: f64,
    pub(super) above: f64,
    pub(super) below: f64,
}

/// A piece of an edge from one layer to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
    /// How far from the middle of a node it leaves and arrives.
    pub(super) leaves: f64,
    pub(super) arrives: f64,
}

/// Items, pieces, and who stands where.
pub(super) struct Items {
    pub(super) list: Vec<Item>,
    pub(super) pieces: Vec<Piece>,
    /// The pieces that arrive at an item, and those that leave it.
    pub(super) arriving: Vec<Vec<usize>>,
    pub(super) leaving: Vec<Vec<usize>>,
    /// Items of each layer from top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    /// The items of each link from its lower layer to its higher one; none for a loop.
    pub(super) chains: Vec<Vec<usize>>,
    pub(super) reversed: Vec<bool>,
}

/// Room for a loop below its node.
pub(super) const LOOP: f64 = 20.0;

impl Items {
    /// Nodes stand in the even layers; between them is room for labels.
    pub(super) fn of(sizes: &[Size], links: &[Link], ranks: &Ranks) -> Self {
        let items = sizes.iter().enumerate().map(|(node, size)| Item {
            kind: Kind::Node,
            layer: 2 * at(&ranks.layers, node),
            width: size.width,
            above: size.height / 2.0,
            below: size.height / 2.0,
        });
        let mut all = Self {
            list: items.collect(),
            pieces: Vec::new(),
            arriving: vec![Vec::new(); sizes.len()],
            leaving: vec![Vec::new(); sizes.len()],
            layers: Vec::new(),
            chains: Vec::with_capacity(links.len()),
            reversed: ranks.reversed.clone(),
        };
        for (link, reversed) in links.iter().zip(&ranks.reversed) {
            let chain = if *reversed {
                all.chain(link.to, link.from, link.label)
            } else {
                all.chain(link.from, link.to, link.label)
            };
            all.chains.push(chain);
        }
        all
    }

    /// The items of one link.
    fn chain(&mut self, low: usize, high: usize, label: Size) -> Vec<usize> {
        if low == high {
            if let Some(item) = self.list.get_mut(low) {
                // Further loops pass beside the label.
                item.width = item.width.max(label.width + 28.0);
                item.below += LOOP + label.height;
            }
            return Vec::new();
        }
        let first = self.item(low).layer;
        let last = self.item(high).layer;
        // The middle one of the layers for labels, which are the odd ones.
        let middle = usize::midpoint(first, last);
        let labelled = middle - usize::from(middle.is_multiple_of(2));
        let mut chain = vec![low];
        for layer in first + 1..last {
            let item = if layer == labelled && label.height > 0.0 {
                Item {
                    kind: Kind::Label,
                    layer,
                    width: label.width,
                    above: label.height + 3.0,
                    below: 4.0,
                }
            } else {
                Item {
                    kind: Kind::Passing,
                    layer,
                    width: 0.0,
                    above: 3.0,
                    below: 3.0,
                }
            };
            chain.push(self.list.len());
            self.list.push(item);
            self.arriving.push(Vec::new());
            self.leaving.push(Vec::new());
        }
        chain.push(high);
        for (from, to) in chain.iter().zip(chain.iter().skip(1)) {
            let piece = self.pieces.len();
            if let Some(leaving) = self.leaving.get_mut(*from) {
                leaving.push(piece);
            }
            if let Some(arriving) = self.arriving.get_mut(*to) {
                arriving.push(piece);
            }
            self.pieces.push(Piece {
                from: *from,
                to: *to,
                ..Piece::default()
            });
        }
        chain
    }

    pub(super) fn item(&self, item: usize) -> Item {
        at(&self.list, item)
    }

    /// The items that lead to this one.
    pub(super) fn before(&self, item: usize) -> impl Iterator<Item = usize> {
        let arriving = self.arriving.get(item).into_iter().flatten();
        arriving.map(|piece| at(&self.pieces, *piece).from)
    }

    /// The items that this one leads to.
    pub(super) fn after(&self, item: usize) -> impl Iterator<Item = usize> {
        let leaving = self.leaving.get(item).into_iter().flatten();
        leaving.map(|piece| at(&self.pieces, *piece).to)
    }
}
