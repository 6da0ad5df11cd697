//! Routing without a broker: which queues a message reaches, by which way, and
//! where it goes when it dies there.
//!
//! Its answers are proved against real brokers on random topologies. Exchange
//! types of plugins are not simulated; what they lead to is named as unknown.

mod death;
mod headers;
mod journey;
mod message;
mod outlook;
mod path;
mod router;
mod topic;
mod topic_trie;
mod way;

pub use death::{Death, Departure, Held, Loss};
pub use headers::takes_everything;
pub use journey::{Journey, Step, waits};
pub use message::Message;
pub use outlook::{Outlook, Reached, unknown_because};
pub use path::path_words;
pub use router::{Hop, Routed, Router};
pub use topic::matches as topic_matches;
pub use way::{End, Way};
