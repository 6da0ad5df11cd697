//! Which links lead back, and which layer each node is in.

use super::{Link, at};

/// Layers of nodes, and which links count the other way round.
pub(super) struct Ranks {
    pub(super) layers: Vec<usize>,
    pub(super) reversed: Vec<bool>,
}

/// Every link that is not a loop leads to a higher layer, or is reversed.
pub(super) fn rank(nodes: usize, links: &[Link]) -> Ranks {
    let order = order(nodes, links);
    let mut places = vec![0_usize; nodes];
    for (place, node) in order.iter().enumerate() {
        if let Some(slot) = places.get_mut(*node) {
            *slot = place;
        }
    }
    let reversed: Vec<bool> = links
        .iter()
        .map(|link| at(&places, link.from) > at(&places, link.to))
        .collect();
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut has_before = vec![false; nodes];
    for (link, reversed) in links.iter().zip(&reversed) {
        let (low, high) = if *reversed {
            (link.to, link.from)
        } else {
            (link.from, link.to)
        };
        if low != high {
            if let Some(next) = next.get_mut(low) {
                next.push(high);
            }
            if let Some(slot) = has_before.get_mut(high) {
                *slot = true;
            }
        }
    }
    let mut layers = vec![0_usize; nodes];
    for node in &order {
        let beyond = at(&layers, *node) + 1;
        for high in next.get(*node).into_iter().flatten() {
            if let Some(layer) = layers.get_mut(*high) {
                *layer = (*layer).max(beyond);
            }
        }
    }
    // What nothing leads to moves next to what it leads to.
    for node in order.iter().rev() {
        let nearest = next
            .get(*node)
            .and_then(|next| next.iter().map(|high| at(&layers, *high)).min());
        if let (Some(nearest), false) = (nearest, at(&has_before, *node))
            && let Some(layer) = layers.get_mut(*node)
        {
            *layer = nearest.saturating_sub(1);
        }
    }
    let first = layers.iter().min().copied().unwrap_or(0);
    for layer in &mut layers {
        *layer -= first;
    }
    Ranks { layers, reversed }
}

/// The nodes in an order that as few links as possible lead against: those
/// that should come back are not asked.
fn order(nodes: usize, links: &[Link]) -> Vec<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut has_before = vec![false; nodes];
    for link in links.iter().filter(|link| !link.comes_back) {
        if let Some(next) = next.get_mut(link.from) {
            next.push(link.to);
        }
        if let Some(slot) = has_before.get_mut(link.to)
            && link.from != link.to
        {
            *slot = true;
        }
    }
    let starts = (0..nodes).filter(|node| !at(&has_before, *node));
    let mut seen = vec![false; nodes];
    let mut finished = Vec::with_capacity(nodes);
    for start in starts.chain(0..nodes) {
        if std::mem::replace(seen.get_mut(start).unwrap_or(&mut true), true) {
            continue;
        }
        // Each node on the way, and how many of its links are done.
        let mut way = vec![(start, 0_usize)];
        while let Some((node, done)) = way.last_mut() {
            match next.get(*node).and_then(|next| next.get(*done)) {
                Some(&further) => {
                    *done += 1;
                    if !std::mem::replace(seen.get_mut(further).unwrap_or(&mut true), true) {
                        way.push((further, 0));
                    }
                }
                None => {
                    finished.push(*node);
                    way.pop();
                }
            }
        }
    }
    finished.reverse();
    finished
}
