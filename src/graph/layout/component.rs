//! The parts of a graph that nothing connects.

use super::{Link, Size, at};

/// One part: its nodes and links by their places in the whole, and the same
/// with places of its own.
pub(super) struct Component {
    pub(super) nodes: Vec<usize>,
    pub(super) links: Vec<usize>,
    pub(super) sizes: Vec<Size>,
    pub(super) own_links: Vec<Link>,
}

/// The parts, by their first nodes.
pub(super) fn split(nodes: &[Size], links: &[Link]) -> Vec<Component> {
    let mut leaders: Vec<usize> = (0..nodes.len()).collect();
    for link in links {
        let (a, b) = (
            leader(&mut leaders, link.from),
            leader(&mut leaders, link.to),
        );
        if let Some(slot) = leaders.get_mut(a.max(b)) {
            *slot = a.min(b);
        }
    }
    let mut parts: Vec<Component> = Vec::new();
    // Where each node is: which part, which place in it.
    let mut homes: Vec<(usize, usize)> = Vec::with_capacity(nodes.len());
    for (node, size) in nodes.iter().enumerate() {
        let first = leader(&mut leaders, node);
        let part = if first == node {
            parts.push(Component {
                nodes: Vec::new(),
                links: Vec::new(),
                sizes: Vec::new(),
                own_links: Vec::new(),
            });
            parts.len() - 1
        } else {
            at(&homes, first).0
        };
        if let Some(component) = parts.get_mut(part) {
            homes.push((part, component.nodes.len()));
            component.nodes.push(node);
            component.sizes.push(*size);
        }
    }
    for (place, link) in links.iter().enumerate() {
        let (part, from) = at(&homes, link.from);
        let (_, to) = at(&homes, link.to);
        if let Some(component) = parts.get_mut(part) {
            component.links.push(place);
            component.own_links.push(Link { from, to, ..*link });
        }
    }
    parts
}

/// The smallest node known to be connected; the way there is halved each time.
fn leader(leaders: &mut [usize], mut node: usize) -> usize {
    loop {
        let next = at(leaders, node);
        if next == node {
            return node;
        }
        let further = at(leaders, next);
        if let Some(slot) = leaders.get_mut(node) {
            *slot = further;
        }
        node = further;
    }
}
