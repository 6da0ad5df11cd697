//! RabbitMQ's own definitions file (`rabbitmqctl export_definitions`, `GET
//! /api/definitions`): read into a [`Topology`](crate::topology::Topology) and written from one.
//!
//! What one side cannot say of the other is told, never dropped in silence.

mod choose;
mod item;
mod read;
mod write;

pub use read::{Read, read};
pub use write::{Written, write};
