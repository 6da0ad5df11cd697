//! Nodes and edges, before anybody draws them.

use crate::graph::{Depth, Role};

/// Everything of a picture but its look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Exchanges by name, then queues by name.
    pub nodes: Vec<Node>,
    /// By source, destination and kind.
    pub edges: Vec<Edge>,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// An exchange.
    Exchange,
    /// A queue.
    Queue,
}

impl NodeKind {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Queue => "queue",
        }
    }
}

/// Who declares a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The topology, or every vhost from its start.
    Declared,
    /// Others, as the topology says.
    Elsewhere,
    /// Nobody: what is sent there vanishes.
    Missing,
}

impl State {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Elsewhere => "elsewhere",
            Self::Missing => "missing",
        }
    }
}

/// An exchange or a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Which of both.
    pub kind: NodeKind,
    /// Its name as it is, odd characters included.
    pub name: String,
    /// Its type; `None` where nobody says.
    pub type_name: Option<String>,
    /// Who declares it.
    pub state: State,
    /// What a queue is there for, where that can be seen.
    pub role: Option<Role>,
    /// What else is worth knowing, in a few words each.
    pub facts: Vec<String>,
    /// How full a queue is, if a broker was asked.
    pub depth: Option<Depth>,
}

impl Node {
    /// Whether somebody should look: dead letters are waiting.
    #[must_use]
    pub fn alarms(&self) -> bool {
        self.role == Some(Role::DeadLetter)
            && self.depth.is_some_and(|depth| depth.holds_messages())
    }

    /// What a picture says below the name.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut head: Vec<String> = self.type_name.iter().cloned().collect();
        match self.state {
            State::Declared => {}
            State::Elsewhere => head.push("declared elsewhere".to_owned()),
            State::Missing => head.push("not declared".to_owned()),
        }
        let mut lines: Vec<String> = Vec::new();
        for fact in head.iter().chain(&self.facts) {
            match lines.last_mut() {
                Some(line) if line.chars().count() + fact.chars().count() <= LINE => {
                    line.push_str(", ");
                    line.push_str(fact);
                }
                _ => lines.push(fact.clone()),
            }
        }
        lines.extend(self.depth.map(|depth| depth.words()));
        lines
    }
}

/// Characters of a line below a name that are not broken.
const LINE: usize = 32;

/// Why messages go along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// A binding.
    Binding,
    /// An alternate exchange: what no binding took.
    Alternate,
    /// Dead letters.
    DeadLetter,
    /// A worker's copy into the wait queue of a step.
    Worker,
    /// Dead letters of a queue in which messages wait until they expire.
    Retry,
}

impl EdgeKind {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Binding => "binding",
            Self::Alternate => "alternate",
            Self::DeadLetter => "dead_letter",
            Self::Worker => "worker",
            Self::Retry => "retry",
        }
    }
}

/// A way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Its source, by its place among the nodes.
    pub from: usize,
    /// Its destination.
    pub to: usize,
    /// Why messages go there.
    pub kind: EdgeKind,
    /// Keys and conditions: one for each of the bindings that the edge stands for.
    pub labels: Vec<String>,
}
