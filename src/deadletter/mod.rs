//! Dead letters as people ask about them: what, why, and whether looking is safe.

mod aim;
mod json;
mod letter;
mod peek;
mod refusal;
mod replay;
mod summary;

pub use aim::{Aim, Aiming, Astray, ComingBack, ReplayTo};
pub use json::letter_json;
pub use letter::Letter;
pub use peek::{EffectiveLimit, PeekRisk, peek_risk};
pub use refusal::{Asked, refusal};
pub use replay::{ReplayReport, Stay};
pub use summary::{Group, summarise};
