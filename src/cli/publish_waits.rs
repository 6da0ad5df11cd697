//! `mq publish`, how long it waits for the broker.

use std::time::Duration;

use clap::Args;

use crate::cli::global::duration;

/// How long it waits for the broker.
#[derive(Clone, Debug, Args)]
pub struct WaitArgs {
    /// Longest wait for the confirm
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, help_heading = "Waiting")]
    pub confirm_timeout: Duration,

    /// Longest wait while the broker blocks publishers (a memory or disk alarm); it
    /// is no part of the wait for a confirm
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, help_heading = "Waiting")]
    pub blocked_timeout: Duration,

    /// Send a message that is refused (a full queue) again, until the broker has
    /// refused for so long without taking any
    ///
    /// With pauses that grow from 0.1 s to 5 s, the same message with the same
    /// message id. Of many, those that follow are not sent before it is taken;
    /// what was under way with it already may overtake it. Once the time is over
    /// nothing more is sent, and it ends with 75. Where a message goes to several
    /// queues, each try reaches those that have room: give it a message id
    /// (--generate-message-id), so that their consumers can tell.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Waiting")]
    pub retry_refused: Option<Duration>,
}
