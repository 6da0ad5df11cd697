//! How things look: the same colours in every format, said once.

use crate::graph::{EdgeKind, Node, NodeKind, Role, State};

/// The looks of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Look {
    Exchange,
    Queue,
    Work,
    Wait,
    DeadLetter,
    Alarm,
    Elsewhere,
    Missing,
}

/// Colours of a node: inside, outline, text.
#[derive(Clone, Copy)]
pub(super) struct Colours {
    pub(super) fill: &'static str,
    pub(super) stroke: &'static str,
    pub(super) text: &'static str,
}

impl Look {
    pub(super) const ALL: [Self; 8] = [
        Self::Exchange,
        Self::Queue,
        Self::Work,
        Self::Wait,
        Self::DeadLetter,
        Self::Alarm,
        Self::Elsewhere,
        Self::Missing,
    ];

    pub(super) fn of(node: &Node) -> Self {
        match (node.state, node.kind, node.role) {
            (State::Missing, _, _) => Self::Missing,
            (State::Elsewhere, _, _) => Self::Elsewhere,
            (State::Declared, NodeKind::Exchange, _) => Self::Exchange,
            (State::Declared, NodeKind::Queue, _) if node.alarms() => Self::Alarm,
            (State::Declared, NodeKind::Queue, Some(Role::Work)) => Self::Work,
            (State::Declared, NodeKind::Queue, Some(Role::Wait)) => Self::Wait,
            (State::Declared, NodeKind::Queue, Some(Role::DeadLetter)) => Self::DeadLetter,
            (State::Declared, NodeKind::Queue, None) => Self::Queue,
        }
    }

    /// As a class name in mermaid and SVG.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Queue => "queue",
            Self::Work => "work",
            Self::Wait => "wait",
            Self::DeadLetter => "dead",
            Self::Alarm => "alarm",
            Self::Elsewhere => "elsewhere",
            Self::Missing => "missing",
        }
    }

    /// In a legend.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Queue => "queue",
            Self::Work => "work queue with retries",
            Self::Wait => "wait queue",
            Self::DeadLetter => "dead-letter queue",
            Self::Alarm => "holds dead letters",
            Self::Elsewhere => "declared elsewhere",
            Self::Missing => "not declared",
        }
    }

    /// On a light ground.
    pub(super) const fn light(self) -> Colours {
        let (fill, stroke, text) = match self {
            Self::Exchange => ("#e3edfb", "#2f6fbf", "#12305a"),
            Self::Queue => ("#eef0f2", "#6b7682", "#22282e"),
            Self::Work => ("#e2f3e6", "#2e8b4a", "#123d20"),
            Self::Wait => ("#fdf0d8", "#c47f0a", "#4f3300"),
            Self::DeadLetter => ("#fbe6e6", "#b54848", "#551818"),
            Self::Alarm => ("#c62828", "#7f0000", "#ffffff"),
            Self::Elsewhere => ("#ffffff", "#6b7682", "#3d454d"),
            Self::Missing => ("#ffffff", "#d32f2f", "#b71c1c"),
        };
        Colours { fill, stroke, text }
    }

    /// On a dark ground.
    pub(super) const fn dark(self) -> Colours {
        let (fill, stroke, text) = match self {
            Self::Exchange => ("#16283f", "#5b9be6", "#d6e6fb"),
            Self::Queue => ("#22272e", "#8b96a2", "#e2e6ea"),
            Self::Work => ("#15301d", "#4fb872", "#d3f2dc"),
            Self::Wait => ("#3a2a0c", "#e0a030", "#fbe8c4"),
            Self::DeadLetter => ("#3a1a1a", "#e07070", "#fbd9d9"),
            Self::Alarm => ("#d03232", "#ffb3b3", "#ffffff"),
            Self::Elsewhere => ("#0d1117", "#8b96a2", "#c3cad1"),
            Self::Missing => ("#0d1117", "#ff6b6b", "#ff9d9d"),
        };
        Colours { fill, stroke, text }
    }

    /// Whether its outline is broken.
    pub(super) const fn is_dashed(self) -> bool {
        matches!(self, Self::Elsewhere | Self::Missing)
    }
}

impl EdgeKind {
    pub(super) const ALL: [Self; 5] = [
        Self::Binding,
        Self::Alternate,
        Self::DeadLetter,
        Self::Worker,
        Self::Retry,
    ];

    /// In a legend.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Binding => "binding",
            Self::Alternate => "alternate exchange",
            Self::DeadLetter => "dead letters",
            Self::Worker => "copies of the worker",
            Self::Retry => "retry after a wait",
        }
    }

    /// On a light ground.
    pub(super) const fn light(self) -> &'static str {
        match self {
            Self::Binding => "#4a5560",
            Self::Alternate => "#8a949e",
            Self::DeadLetter => "#d32f2f",
            Self::Worker | Self::Retry => "#d9820a",
        }
    }

    /// On a dark ground.
    pub(super) const fn dark(self) -> &'static str {
        match self {
            Self::Binding => "#b3bdc7",
            Self::Alternate => "#7d8791",
            Self::DeadLetter => "#ff6b6b",
            Self::Worker | Self::Retry => "#f0a63a",
        }
    }

    /// Lengths of dashes and gaps; `None`: an unbroken line.
    pub(super) const fn dashes(self) -> Option<&'static str> {
        match self {
            Self::Binding => None,
            Self::Alternate | Self::DeadLetter => Some("7 4"),
            Self::Worker => Some("8 3 2 3"),
            Self::Retry => Some("2 4"),
        }
    }
}
