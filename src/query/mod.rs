//! jq programs about messages: which ones are meant, and how a body is repaired.
//!
//! The only user of jaq. A program gets its input and nothing else: no files, no
//! environment, no further inputs, no way to end the process; `now` alone reads
//! a clock, for filters by age. It runs on a thread of its own, and who asked
//! waits for it [`ANSWER_LIMIT`] at most. What is not bounded is its memory: a
//! program that collects without end, or calls itself without end outside of
//! tail position, ends the process as it would end jq.

mod filter;
mod place;
mod program;
mod transform;
mod value;

pub use filter::Filter;
pub use program::ANSWER_LIMIT;
pub use transform::Transform;
