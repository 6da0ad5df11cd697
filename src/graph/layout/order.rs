//! Who stands above whom in a layer, so that few edges cross.

use super::at;
use super::items::Items;

/// Enough for every topology that a person can read.
const SWEEPS: usize = 16;

/// From this many items on, a few sweeps have to do.
const MANY: usize = 10_000;

/// Orders every layer: each item goes to the mean place of its neighbours in the
/// layer before, then in the layer after, and so on; the best order seen stays.
pub(super) fn order(items: &mut Items) {
    items.layers = as_reached(items);
    let mut places = vec![0_usize; items.list.len()];
    remember(&items.layers, &mut places);
    let mut best = (crossings(items, &places), items.layers.clone());
    let sweeps = if items.list.len() > MANY { 2 } else { SWEEPS };
    for sweep in 0..sweeps {
        if best.0 == 0 {
            break;
        }
        let forward = sweep % 2 == 0;
        let mut layers = std::mem::take(&mut items.layers);
        let swept: Vec<&mut Vec<usize>> = if forward {
            layers.iter_mut().collect()
        } else {
            layers.iter_mut().rev().collect()
        };
        for layer in swept {
            // Who has the same mean changes places each second round.
            if sweep % 4 >= 2 {
                layer.reverse();
            }
            sort(items, layer, &places, forward);
            for (place, item) in layer.iter().enumerate() {
                if let Some(slot) = places.get_mut(*item) {
                    *slot = place;
                }
            }
        }
        items.layers = layers;
        switch_neighbours(items, &mut places, sweep % 4 == 1);
        let found = crossings(items, &places);
        if found < best.0 {
            best = (found, items.layers.clone());
        }
    }
    items.layers = best.1;
}

/// The layers in the order in which their items are reached from the first one.
fn as_reached(items: &Items) -> Vec<Vec<usize>> {
    let count = items.list.iter().map(|item| item.layer + 1).max();
    let mut layers = vec![Vec::new(); count.unwrap_or(0)];
    let mut seen = vec![false; items.list.len()];
    let mut starts: Vec<usize> = (0..items.list.len()).collect();
    starts.sort_by_key(|item| items.item(*item).layer);
    let mut waiting = Vec::new();
    for start in starts {
        waiting.push(start);
        while let Some(item) = waiting.pop() {
            if std::mem::replace(seen.get_mut(item).unwrap_or(&mut true), true) {
                continue;
            }
            if let Some(layer) = layers.get_mut(items.item(item).layer) {
                layer.push(item);
            }
            let neighbours: Vec<usize> = items.before(item).chain(items.after(item)).collect();
            waiting.extend(neighbours.into_iter().rev());
        }
    }
    layers
}

fn remember(layers: &[Vec<usize>], places: &mut [usize]) {
    for layer in layers {
        for (place, item) in layer.iter().enumerate() {
            if let Some(slot) = places.get_mut(*item) {
                *slot = place;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "places are small numbers")]
fn sort(items: &Items, layer: &mut [usize], places: &[usize], forward: bool) {
    let mean = |item: usize| {
        let neighbours: Vec<usize> = if forward {
            items.before(item).collect()
        } else {
            items.after(item).collect()
        };
        if neighbours.is_empty() {
            return at(places, item) as f64;
        }
        let sum: usize = neighbours.iter().map(|item| at(places, *item)).sum();
        sum as f64 / neighbours.len() as f64
    };
    layer.sort_by_cached_key(|item| Ordered(mean(*item)));
}

/// A mean, which is always a number.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Changes places with the neighbour below wherever fewer edges cross then, or,
/// to get out of a dead end, as many.
fn switch_neighbours(items: &mut Items, places: &mut [usize], also_even: bool) {
    if items.list.len() > MANY {
        return;
    }
    let mut layers = std::mem::take(&mut items.layers);
    for layer in &mut layers {
        for upper in 0..layer.len().saturating_sub(1) {
            let (a, b) = (at(layer, upper), at(layer, upper + 1));
            let as_is = crossings_of(items, a, b, places);
            if as_is == 0 {
                continue;
            }
            let switched = crossings_of(items, b, a, places);
            if switched < as_is || (also_even && switched == as_is) {
                layer.swap(upper, upper + 1);
                for (item, place) in [(b, upper), (a, upper + 1)] {
                    if let Some(slot) = places.get_mut(item) {
                        *slot = place;
                    }
                }
            }
        }
    }
    items.layers = layers;
}

/// How often the edges of two neighbours cross if `upper` stands above `lower`.
fn crossings_of(items: &Items, upper: usize, lower: usize, places: &[usize]) -> usize {
    let crossed = |upper: Vec<usize>, lower: Vec<usize>| -> usize {
        let mut lower: Vec<usize> = lower.iter().map(|item| at(places, *item)).collect();
        lower.sort_unstable();
        upper
            .iter()
            .map(|item| lower.partition_point(|place| *place < at(places, *item)))
            .sum()
    };
    crossed(items.before(upper).collect(), items.before(lower).collect())
        + crossed(items.after(upper).collect(), items.after(lower).collect())
}

/// How often edges cross in all.
fn crossings(items: &Items, places: &[usize]) -> usize {
    let mut gaps: Vec<Vec<(usize, usize)>> = vec![Vec::new(); items.layers.len()];
    for piece in &items.pieces {
        if let Some(gap) = gaps.get_mut(items.item(piece.from).layer) {
            gap.push((at(places, piece.from), at(places, piece.to)));
        }
    }
    gaps.into_iter().map(inversions).sum()
}

/// Pairs whose ends are in the other order than their beginnings, counted with
/// a binary indexed tree.
fn inversions(mut pairs: Vec<(usize, usize)>) -> usize {
    pairs.sort_unstable();
    let width = pairs.iter().map(|(_, end)| end + 2).max().unwrap_or(0);
    let mut tree = vec![0_usize; width + 1];
    let mut count = 0;
    for (seen, (_, end)) in pairs.iter().enumerate() {
        let mut not_after = 0;
        let mut place = end + 1;
        while place > 0 {
            not_after += at(&tree, place);
            place &= place - 1;
        }
        count += seen - not_after;
        let mut place = end + 1;
        while let Some(slot) = tree.get_mut(place) {
            *slot += 1;
            place += place & place.wrapping_neg();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_counted() {
        for (pairs, count) in [
            (vec![], 0),
            (vec![(0, 0), (1, 1)], 0),
            (vec![(0, 1), (1, 0)], 1),
            (vec![(0, 2), (1, 1), (2, 0)], 3),
            (vec![(0, 0), (0, 5), (1, 0), (1, 5)], 1),
        ] {
            assert_eq!(inversions(pairs.clone()), count, "{pairs:?}");
        }
    }
}
