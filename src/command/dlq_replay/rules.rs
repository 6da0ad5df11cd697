//! What is to be done with each message.

use super::edit::Editor;
use crate::command::dlq_chosen::Chosen;
use crate::deadletter::Aiming;
use crate::query::Transform;

/// What is to be done with each message.
pub(super) struct Rules<'a> {
    pub(super) aiming: Aiming<'a>,
    pub(super) chosen: Chosen,
    pub(super) repair: Repair,
    /// Who we are.
    pub(super) user: &'a str,
    /// What this run is called.
    pub(super) run: String,
    pub(super) dry_run: bool,
    /// Most messages to send.
    pub(super) limit: u64,
    /// Most messages a second.
    pub(super) rate: Option<u32>,
    pub(super) max_replays: u64,
    pub(super) restore_expiration: bool,
}

/// How bodies are changed.
pub(in crate::command) enum Repair {
    None,
    By(Transform),
    InEditor(Editor),
}
