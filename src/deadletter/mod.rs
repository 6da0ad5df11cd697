//! Dead letters as people ask about them: what, why, and whether looking is safe.

mod aim;
mod check;
mod inflow;
mod json;
mod letter;
mod look;
mod marked;
mod max_rate;
mod peek;
mod refusal;
mod replay;
mod resting;
mod set_policy;
mod summary;
mod tool;
mod watch;

pub use aim::{Aim, Aiming, Astray, ComingBack, ReplayTo};
pub use check::{Coming, Excess, Gap, LimitKind, Limits, Oldest, Reading, Status, Verdict, age_at};
pub use inflow::{Blind, History, Inflow, Sample};
pub use json::letter_json;
pub use letter::Letter;
pub use look::most_to_look_at;
pub use marked::Marked;
pub use max_rate::MaxRate;
pub use peek::{EffectiveLimit, PeekRisk, peek_risk};
pub use refusal::{Asked, refusal};
pub use replay::{ReplayReport, Stay};
pub use resting::{RestingPlaces, resting_places};
pub use set_policy::{InForce, SetPolicy, set_policy};
pub use summary::{Group, Summary, first_line, summarise};
pub use tool::ToolTrace;
pub use watch::{Place, Seen, Watch, WatchRow};
