//! The patterns of one topic exchange as a tree of words, so that a key is
//! compared with all of them at once.

use std::collections::HashMap;

use crate::routing::topic::words_of;

/// Patterns, each with the number its owner gave it.
#[derive(Debug)]
pub(super) struct TopicTrie<'t> {
    nodes: Vec<Node<'t>>,
}

#[derive(Debug, Default)]
struct Node<'t> {
    words: HashMap<&'t str, usize>,
    star: Option<usize>,
    hash: Option<usize>,
    /// Reached by `#`: takes any further word and stays.
    is_hash: bool,
    patterns: Vec<usize>,
}

impl Default for TopicTrie<'_> {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
        }
    }
}

impl<'t> TopicTrie<'t> {
    pub(super) fn insert(&mut self, pattern: &'t str, number: usize) {
        let mut at = 0;
        for word in words_of(pattern) {
            at = self.child(at, word);
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.patterns.push(number);
        }
    }

    fn child(&mut self, at: usize, word: &'t str) -> usize {
        let next = self.nodes.len();
        let Some(node) = self.nodes.get_mut(at) else {
            return at;
        };
        let child = match word {
            "*" => *node.star.get_or_insert(next),
            "#" => *node.hash.get_or_insert(next),
            word => *node.words.entry(word).or_insert(next),
        };
        if child == next {
            self.nodes.push(Node {
                is_hash: word == "#",
                ..Node::default()
            });
        }
        child
    }

    /// The numbers of all patterns that take the key, each once.
    pub(super) fn matches(&self, key: &str) -> Vec<usize> {
        let mut active = Vec::new();
        let mut next = Vec::new();
        self.enter(0, &mut active);
        for word in words_of(key) {
            for at in &active {
                let Some(node) = self.nodes.get(*at) else {
                    continue;
                };
                if node.is_hash {
                    self.enter(*at, &mut next);
                }
                for child in node.words.get(word).into_iter().chain(&node.star) {
                    self.enter(*child, &mut next);
                }
            }
            std::mem::swap(&mut active, &mut next);
            next.clear();
            if active.is_empty() {
                break;
            }
        }
        active
            .iter()
            .filter_map(|at| self.nodes.get(*at))
            .flat_map(|node| node.patterns.iter().copied())
            .collect()
    }

    /// Makes a node active, and those behind a `#` that takes no word.
    ///
    /// Only a `#` can be entered twice for one word, by staying and from the
    /// node before it; every other node has one way in.
    fn enter(&self, at: usize, active: &mut Vec<usize>) {
        let mut next = Some(at);
        while let Some((at, node)) = next.and_then(|at| Some((at, self.nodes.get(at)?))) {
            if node.is_hash && active.contains(&at) {
                return;
            }
            active.push(at);
            next = node.hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::topic_matches;

    proptest::proptest! {
        #[test]
        fn finds_what_each_pattern_alone_takes(
            patterns in proptest::collection::vec("([ab*#]|)(\\.([ab*#]|)){0,4}", 0..12),
            key in "([ab]|)(\\.([ab]|)){0,5}",
        ) {
            let mut trie = TopicTrie::default();
            for (number, pattern) in patterns.iter().enumerate() {
                trie.insert(pattern, number);
            }
            let mut found = trie.matches(&key);
            found.sort_unstable();
            let expected: Vec<usize> = patterns
                .iter()
                .enumerate()
                .filter(|(_, pattern)| topic_matches(pattern, &key))
                .map(|(number, _)| number)
                .collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn many_hashes_and_empty_words_end_quickly() {
        let pattern = ["#"; 128].join(".");
        let mut trie = TopicTrie::default();
        trie.insert(&pattern, 7);
        assert_eq!(trie.matches(&".".repeat(255)), [7]);
    }
}
