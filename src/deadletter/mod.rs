//! Dead letters as people ask about them: what, why, and whether looking is safe.

mod json;
mod letter;
mod look;
mod peek;
mod refusal;
mod resting;
mod summary;
mod survival;
mod tool;

pub use json::letter_json;
pub use letter::Letter;
pub use look::most_to_look_at;
pub use peek::{EffectiveLimit, PeekRisk, peek_risk};
pub use refusal::{Asked, refusal};
pub use resting::{RestingPlaces, resting_places};
pub use summary::{Group, Summary, first_line, summarise};
pub use survival::{replacement, survives_return};
pub use tool::ToolTrace;
