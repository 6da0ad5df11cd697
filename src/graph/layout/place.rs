//! How high everything stands, and how far to the right each layer begins.

use super::at;
use super::items::{Item, Items, Kind};

/// Heights of items, and the left and right ends of layers.
pub(super) struct Places {
    pub(super) heights: Vec<f64>,
    pub(super) layers: Vec<(f64, f64)>,
}

/// Rounds of drawing everything towards its neighbours.
const ROUNDS: usize = 24;

/// Further rounds in which edges follow one neighbour instead of the mean.
const STRAIGHT: usize = 16;

/// From this many items on, a few rounds have to do.
const MANY: usize = 10_000;

/// Between two edges at a node, if there is room.
const PORT: f64 = 14.0;

/// A node does not grow beyond this height for its edges.
const HIGHEST: f64 = 600.0;

/// Decides on heights so that edges are as straight as the order allows.
pub(super) fn place(items: &mut Items) -> Places {
    ports(items);
    let mut heights = vec![0.0_f64; items.list.len()];
    for layer in &items.layers {
        settle(items, layer, &mut heights, &[]);
    }
    let (rounds, straight) = if items.list.len() > MANY {
        (2, 1)
    } else {
        (ROUNDS, STRAIGHT)
    };
    for round in 0..rounds + straight {
        // At first one side counts, later both, and in the end edges bend no
        // more often than they must.
        let both = round >= rounds / 2;
        let straight = round >= rounds;
        for layer in &items.layers {
            let wishes = wishes(
                items,
                layer,
                &heights,
                Sides {
                    before: true,
                    after: both,
                    straight,
                },
            );
            settle(items, layer, &mut heights, &wishes);
        }
        for layer in items.layers.iter().rev() {
            let wishes = wishes(
                items,
                layer,
                &heights,
                Sides {
                    before: both,
                    after: true,
                    straight,
                },
            );
            settle(items, layer, &mut heights, &wishes);
        }
    }
    let tops = items.list.iter().zip(&heights);
    let top = tops
        .map(|(item, height)| height - item.above)
        .fold(f64::INFINITY, f64::min);
    for height in &mut heights {
        *height -= top;
    }
    let layers = columns(items, &heights);
    Places { heights, layers }
}

/// Where the neighbours want an item, and how much that matters.
type Wish = Option<(f64, f64)>;

/// Which neighbours count, and how.
#[derive(Clone, Copy)]
struct Sides {
    before: bool,
    after: bool,
    straight: bool,
}

fn wishes(items: &Items, layer: &[usize], heights: &[f64], sides: Sides) -> Vec<Wish> {
    let wish = |item: &usize| wish(items, *item, heights, sides);
    layer.iter().map(wish).collect()
}

fn wish(items: &Items, item: usize, heights: &[f64], sides: Sides) -> Wish {
    let own = items.item(item).kind;
    let mut wanted: Vec<(f64, f64)> = Vec::new();
    // Long edges should be straight: they are what the eye follows. At a node
    // with many edges there are many ways to bend.
    let weight = |other: usize, edges: usize| match (own, items.item(other).kind) {
        (Kind::Node, Kind::Node) => 1.0,
        (Kind::Node, _) => 2.0,
        (_, Kind::Node) if sides.straight => 2.0 / small(edges),
        (_, Kind::Node) => 2.0,
        (_, _) => 8.0,
    };
    let count = |lists: &[Vec<usize>], item: usize| lists.get(item).map_or(1, Vec::len);
    if sides.before {
        for piece in items.arriving.get(item).into_iter().flatten() {
            let piece = at(&items.pieces, *piece);
            let height = at(heights, piece.from) + piece.leaves - piece.arrives;
            wanted.push((
                height,
                weight(piece.from, count(&items.leaving, piece.from)),
            ));
        }
    }
    if sides.after {
        for piece in items.leaving.get(item).into_iter().flatten() {
            let piece = at(&items.pieces, *piece);
            let height = at(heights, piece.to) + piece.arrives - piece.leaves;
            wanted.push((height, weight(piece.to, count(&items.arriving, piece.to))));
        }
    }
    let sum: f64 = wanted.iter().map(|(_, weight)| weight).sum();
    if sides.straight
        && own != Kind::Node
        && let [before, after] = wanted.as_slice()
        && before.1.total_cmp(&after.1).is_ne()
    {
        let heavier = if before.1 > after.1 { before } else { after };
        return Some((heavier.0, sum));
    }
    let mean = wanted
        .iter()
        .map(|(height, weight)| height * weight / sum)
        .sum();
    (sum > 0.0).then_some((mean, sum))
}

/// A number of edges, which is small.
#[expect(clippy::cast_precision_loss, reason = "edges of a node are few")]
fn small(count: usize) -> f64 {
    count as f64
}

/// Puts the items of a layer as near to their wishes as their order and sizes
/// allow: the least sum of weighted squares, found by joining neighbours that
/// would overlap into blocks (pool adjacent violators).
fn settle(items: &Items, layer: &[usize], heights: &mut [f64], wishes: &[Wish]) {
    // Each block: the mean wish of its members less their offsets, weight, members.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let mut offsets = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    let mut above: Option<Item> = None;
    for (place, name) in layer.iter().enumerate() {
        let item = items.item(*name);
        offset += above.map_or(0.0, |above| distance(above, item));
        above = Some(item);
        offsets.push(offset);
        // Who has no wish stays, and gives way to everybody.
        let (wanted, weight) = at(wishes, place).unwrap_or((at(heights, *name), 0.01));
        let mut block = (wanted - offset, weight, 1);
        while let Some(&(mean, others, members)) = blocks.last() {
            if mean < block.0 {
                break;
            }
            blocks.pop();
            let sum = others + block.1;
            block = (
                (mean * others + block.0 * block.1) / sum,
                sum,
                members + block.2,
            );
        }
        blocks.push(block);
    }
    let settled = blocks
        .iter()
        .flat_map(|(mean, _, members)| std::iter::repeat_n(*mean, *members));
    for ((name, offset), mean) in layer.iter().zip(offsets).zip(settled) {
        if let Some(height) = heights.get_mut(*name) {
            *height = mean + offset;
        }
    }
}

/// From the line of an item to the line of the next one below.
fn distance(above: Item, below: Item) -> f64 {
    let room = match (above.kind, below.kind) {
        (Kind::Node, Kind::Node) => 22.0,
        (Kind::Node, _) | (_, Kind::Node) => 12.0,
        (_, _) => 7.0,
    };
    above.below + room + below.above
}

/// Gives every edge of a node a place of its own on its side, in the order of
/// where they go, and lets nodes grow that have many.
fn ports(items: &mut Items) {
    let mut places = vec![0_usize; items.list.len()];
    for layer in &items.layers {
        for (place, item) in layer.iter().enumerate() {
            if let Some(slot) = places.get_mut(*item) {
                *slot = place;
            }
        }
    }
    for item in 0..items.list.len() {
        if items.item(item).kind != Kind::Node {
            continue;
        }
        let mut arriving = items.arriving.get(item).cloned().unwrap_or_default();
        arriving.sort_by_key(|piece| at(&places, at(&items.pieces, *piece).from));
        let mut leaving = items.leaving.get(item).cloned().unwrap_or_default();
        leaving.sort_by_key(|piece| at(&places, at(&items.pieces, *piece).to));
        let most = arriving.len().max(leaving.len());
        let wanted = (small(most) * PORT + 8.0).min(HIGHEST) / 2.0;
        let mut half = 0.0;
        if let Some(item) = items.list.get_mut(item) {
            item.below += (wanted - item.above).max(0.0);
            item.above = item.above.max(wanted);
            half = item.above;
        }
        for (pieces, leaves) in [(arriving, false), (leaving, true)] {
            let count = small(pieces.len());
            let step = PORT.min((2.0 * half - 8.0) / count);
            for (place, piece) in pieces.iter().enumerate() {
                let port = (small(place) - (count - 1.0) / 2.0) * step;
                if let Some(piece) = items.pieces.get_mut(*piece) {
                    if leaves {
                        piece.leaves = port;
                    } else {
                        piece.arrives = port;
                    }
                }
            }
        }
    }
}

/// Layers are as wide as what stands in them, and further apart where edges
/// climb much between them.
fn columns(items: &Items, heights: &[f64]) -> Vec<(f64, f64)> {
    let mut climbs = vec![0.0_f64; items.layers.len()];
    for piece in &items.pieces {
        let from = at(heights, piece.from) + piece.leaves;
        let to = at(heights, piece.to) + piece.arrives;
        if let Some(climb) = climbs.get_mut(items.item(piece.from).layer) {
            *climb = climb.max((from - to).abs());
        }
    }
    let mut left = 0.0;
    let mut columns = Vec::with_capacity(items.layers.len());
    for (layer, climb) in items.layers.iter().zip(climbs) {
        let widths = layer.iter().map(|item| items.item(*item).width);
        let right = left + widths.fold(0.0, f64::max);
        columns.push((left, right));
        left = right + (20.0 + climb * 0.3).clamp(26.0, 110.0);
    }
    columns
}
