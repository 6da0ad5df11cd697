//! A topology as a picture: what leads where, which queues wait, where dead
//! letters rest.
//!
//! [`draw`] finds nodes and edges; [`mermaid`], [`dot`] and [`svg`] write them
//! down. The same topology is the same text on every machine.

mod build;
mod depth;
mod dot;
mod facts;
mod label;
mod layout;
mod mermaid;
mod model;
mod role;
mod style;
mod svg;

pub use build::draw;
pub use depth::{Depth, Depths};
pub use dot::dot;
pub use mermaid::{MERMAID_EDGES, mermaid};
pub use model::{Edge, EdgeKind, Graph, Node, NodeKind, State};
pub use role::Role;
pub use svg::{MAX_EDGES, MAX_NODES, TooLarge, svg};
