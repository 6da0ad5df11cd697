//! AMQP 0-9-1: the only module that knows the client library (lapin 4).
//!
//! What lapin does wrong is closed here and nowhere else:
//! a confirm channel belongs to exactly one owner with one message outstanding,
//! or with copies that count only all together, or that tells returns by their
//! content (lapin hands returns of pipelined publishes to the wrong message); every wait has a limit (connecting to a silent peer, publishing and
//! closing on a blocked connection never end by themselves); names are checked
//! before lapin sees them (it panics over 255 bytes); and there is no automatic
//! recovery, because it replays stale declarations.

mod acks;
mod alarm;
mod connect;
mod consume;
mod convert;
mod copy;
mod declare;
mod delete;
mod failover;
mod failure;
mod get;
mod intake;
mod lock;
mod pipeline;
mod publish;
mod returned;
mod socket;
mod stream;
mod walk;

pub use alarm::{Alarm, AlarmWatch};
pub use connect::{Connection, Frames, OpenChannel};
pub use consume::{Incoming, Subscription};
pub use copy::{Copier, WINDOW};
pub use declare::{Declared, QueueStatus};
pub use delete::QueueGuard;
pub use failure::max_message_size;
pub use get::Getter;
pub use intake::{Hold, Intake, Taken};
pub use pipeline::Pipeline;
pub use publish::{Publisher, Receipt};
pub use walk::Walk;
