//! Duplicates: a message whose like was done before is not worked again.
//!
//! `key` says what makes two messages the same, `claims` (pure) who of them may
//! be worked now, and a store remembers what is done: `file` for one worker,
//! `redis` for many. A key is remembered only after the work is done, so a
//! worker that dies in between leaves a message that is worked once more: the
//! one window in which a duplicate is possible.

mod address;
mod claims;
mod desk;
mod file;
mod key;
mod redis;
mod store;

pub use address::StoreAddress;
pub use claims::{Claim, Claims};
pub use desk::{Answer, Desk};
pub use key::{DedupeBy, DedupeKey, Scope};
pub use store::Store;
