//! Dead letters as people ask about them: what, why, and whether looking is safe.

mod json;
mod letter;
mod peek;
mod refusal;
mod summary;

pub use json::letter_json;
pub use letter::Letter;
pub use peek::{EffectiveLimit, PeekRisk, peek_risk};
pub use refusal::{Asked, refusal};
pub use summary::{Group, summarise};
