//! Where a reader of a stream starts, how far it came, and where that is kept; and
//! how far many messages to be published were settled.
//!
//! A broker forgets how far a consumer came as soon as it is gone: the position
//! is the reader's own affair. It is that of the first message that is not done.

mod file;
mod keeper;
mod progress;
mod sent;
mod small_file;
mod start;

pub use file::OffsetFile;
pub use keeper::{Keeper, Positions};
pub use progress::Progress;
pub use sent::{Marks, Sent, SentFile, uuid};
pub use start::StartAt;
