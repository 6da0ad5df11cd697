//! Keeps positions without holding up the work: one at a time, and after each
//! only the newest.

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::{Error, ErrorKind, Result};
use crate::offsets::OffsetFile;

/// Where positions are kept.
#[derive(Clone, Debug)]
pub enum Positions {
    /// In a file of the reader's own.
    File(OffsetFile),
}

impl Positions {
    /// The offset that is to be read next, if one is kept.
    ///
    /// # Errors
    /// When it cannot be read or is not this reader's.
    pub fn open(&self) -> Result<Option<u64>> {
        match self {
            Self::File(file) => file.open(),
        }
    }

    /// Keeps it in place of the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, next_offset: u64) -> Result<()> {
        match self {
            Self::File(file) => file.keep(next_offset),
        }
    }
}

/// Keeps positions in the background.
#[derive(Debug)]
pub struct Keeper {
    newest: watch::Sender<Option<u64>>,
    task: JoinHandle<Result<()>>,
}

impl Keeper {
    /// Starts it.
    #[must_use]
    pub fn start(positions: Positions) -> Self {
        let (newest, mut wanted) = watch::channel(None);
        let task = tokio::spawn(async move {
            while wanted.changed().await.is_ok() {
                let Some(next_offset) = *wanted.borrow_and_update() else {
                    continue;
                };
                let positions = positions.clone();
                tokio::task::spawn_blocking(move || positions.keep(next_offset))
                    .await
                    .map_err(|error| broke(&error))??;
            }
            Ok(())
        });
        Self { newest, task }
    }

    /// Keeps this position soon.
    pub fn keep(&self, next_offset: u64) {
        self.newest.send_if_modified(|newest| {
            let is_new = *newest != Some(next_offset);
            *newest = Some(next_offset);
            is_new
        });
    }

    /// Whether it gave up: [`Self::finish`] tells why.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until the newest position is kept.
    ///
    /// # Errors
    /// When one could not be kept.
    pub async fn finish(self) -> Result<()> {
        drop(self.newest);
        self.task.await.map_err(|error| broke(&error))?
    }
}

fn broke(error: &tokio::task::JoinError) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("keeping a position broke: {error}"),
    )
}
