//! Rings in a graph of numbered nodes: every set of nodes that lead to each
//! other. Without recursion, because a chain may be as long as the file.

/// The rings of a graph, each with its nodes in ascending order; a node that
/// leads to itself is one too. Nodes and edges outside the graph are left out.
pub(super) fn rings(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        order: vec![None; edges.len()],
        lowest: vec![0; edges.len()],
        on_stack: vec![false; edges.len()],
        stack: Vec::new(),
        count: 0,
        found: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.order.get(node).is_some_and(Option::is_none) {
            search.from(node, edges);
        }
    }
    search.found.retain(|ring| match ring.as_slice() {
        [only] => edges.get(*only).is_some_and(|next| next.contains(only)),
        _ => true,
    });
    search.found.sort();
    search.found
}

/// Tarjan's search for strongly connected components.
struct Search {
    order: Vec<Option<usize>>,
    lowest: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    count: usize,
    found: Vec<Vec<usize>>,
}

impl Search {
    fn from(&mut self, start: usize, edges: &[Vec<usize>]) {
        // Each node with how many of its edges have been followed.
        let mut path = vec![(start, 0)];
        self.enter(start);
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            let next = edges.get(node).and_then(|next| next.get(*followed));
            *followed += 1;
            let Some(next) = next.copied() else {
                path.pop();
                let lowest = self.lowest.get(node).copied().unwrap_or_default();
                if let Some((parent, _)) = path.last() {
                    self.lower(*parent, lowest);
                }
                if self.order.get(node).copied().flatten() == Some(lowest) {
                    self.close(node);
                }
                continue;
            };
            match self.order.get(next).copied() {
                Some(None) => {
                    self.enter(next);
                    path.push((next, 0));
                }
                Some(Some(order)) if self.on_stack.get(next).copied().unwrap_or(false) => {
                    self.lower(node, order);
                }
                None | Some(Some(_)) => {}
            }
        }
    }

    fn enter(&mut self, node: usize) {
        if let Some(order) = self.order.get_mut(node) {
            *order = Some(self.count);
        }
        if let Some(lowest) = self.lowest.get_mut(node) {
            *lowest = self.count;
        }
        if let Some(on_stack) = self.on_stack.get_mut(node) {
            *on_stack = true;
        }
        self.stack.push(node);
        self.count += 1;
    }

    fn lower(&mut self, node: usize, to: usize) {
        if let Some(lowest) = self.lowest.get_mut(node) {
            *lowest = (*lowest).min(to);
        }
    }

    fn close(&mut self, node: usize) {
        let mut ring = Vec::new();
        while let Some(top) = self.stack.pop() {
            if let Some(on_stack) = self.on_stack.get_mut(top) {
                *on_stack = false;
            }
            ring.push(top);
            if top == node {
                break;
            }
        }
        ring.sort_unstable();
        self.found.push(ring);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_ring_and_nothing_else() {
        for (edges, expected) in [
            (vec![vec![]], vec![]),
            (vec![vec![0]], vec![vec![0]]),
            (vec![vec![1], vec![0]], vec![vec![0, 1]]),
            (vec![vec![1], vec![2], vec![]], vec![]),
            (
                vec![vec![1], vec![2], vec![0, 3], vec![4], vec![3], vec![9]],
                vec![vec![0, 1, 2], vec![3, 4]],
            ),
        ] {
            assert_eq!(rings(&edges), expected);
        }
    }

    #[test]
    fn a_chain_of_many_is_no_trouble() {
        let count = 200_000;
        let mut edges: Vec<Vec<usize>> = (1..=count).map(|next| vec![next]).collect();
        edges.push(Vec::new());
        assert!(rings(&edges).is_empty());
        edges[count].push(0);
        assert_eq!(rings(&edges).len(), 1);
    }
}
