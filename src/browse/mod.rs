//! The screen of `mq dlq browse`: what keys and answers do to it, and how it looks.
//!
//! [`Browser::update`] turns an [`Event`] into [`Effect`]s, [`draw`] turns the
//! state into cells; neither waits, reads a clock or writes. What the broker and
//! its messages say goes into cells only through `output::one_line`, `unbroken`
//! and `printable`. Nothing is told by colour: there is none.

mod action;
mod draw;
mod event;
mod filter;
mod help;
mod letters;
mod list;
mod message;
mod opened;
mod page;
mod queues;
mod state;
mod wrap;

pub use draw::{MOST_SMALL, draw};
pub use event::{Doing, Effect, Event, Job, Key, Listed, Loaded, Outcome, Trouble};
pub use letters::BrowsedLetter;
pub use state::{Browser, Start};

#[cfg(test)]
mod tests;
