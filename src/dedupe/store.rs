//! Where it is remembered what is done, opened.

use std::sync::Arc;
use std::time::Duration;

use crate::dedupe::file::FileStore;
use crate::dedupe::redis::RedisStore;
use crate::dedupe::{DedupeBy, Desk, Scope, StoreAddress};
use crate::error::Result;

/// What is done before, and by what it is known. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) by: DedupeBy,
    pub(super) scope: Scope,
    pub(super) kept: Kept,
}

#[derive(Clone)]
pub(super) enum Kept {
    File(Arc<FileStore>),
    Redis(Arc<RedisStore>),
}

impl Store {
    /// Opens it. `patience` is how long a server that went away is waited for.
    ///
    /// # Errors
    /// When it cannot be used: see its kind of store.
    pub async fn open(
        address: &StoreAddress,
        by: DedupeBy,
        scope: Scope,
        time_to_live: Duration,
        patience: Duration,
    ) -> Result<Self> {
        let kept = match address {
            StoreAddress::File(path) => Kept::File(Arc::new(FileStore::open(path, time_to_live)?)),
            StoreAddress::Redis(endpoint) => Kept::Redis(Arc::new(
                RedisStore::open(endpoint.clone(), &scope, time_to_live, patience).await?,
            )),
        };
        Ok(Self { by, scope, kept })
    }

    /// A desk for one session of the worker.
    #[must_use]
    pub fn desk(&self) -> Desk {
        Desk::open(self.clone())
    }
}
