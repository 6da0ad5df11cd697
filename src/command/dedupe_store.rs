//! Where `mq consume --dedupe` remembers what is done.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the environment tells where the store is"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::session::Session;
use crate::cli::ConsumeArgs;
use crate::dedupe::{Scope, Store, StoreAddress};
use crate::error::{Error, ErrorKind, Result};
use crate::topology::QueueName;

/// The longest name of a file on every file system, in bytes, less what is added.
const LONGEST_NAME: usize = 200;

/// Opens the store, if one is asked for.
pub(super) async fn dedupe_store(
    args: &ConsumeArgs,
    session: &Session,
    queue: &QueueName,
    patience: Duration,
) -> Result<Option<Store>> {
    let Some(by) = &args.dedupe else {
        return Ok(None);
    };
    let scope = Scope {
        vhost: session.vhost()?.clone(),
        queue: queue.clone(),
    };
    // A URL with a password does not belong on a command line.
    let from_environment = || std::env::var("MQ_DEDUPE_STORE").ok();
    let address = match args.dedupe_store.clone().or_else(from_environment) {
        Some(text) => StoreAddress::parse(&text)?,
        None => StoreAddress::File(default_file(&scope)?),
    };
    tracing::info!(store = %address, %by, "duplicates are recognised");
    let store = Store::open(&address, by.clone(), scope, args.dedupe_ttl, patience).await?;
    Ok(Some(store))
}

/// A file for each queue, for a file serves one worker.
fn default_file(scope: &Scope) -> Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let folder = state
        .filter(|state| state.is_absolute())
        .or_else(home)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Configuration,
                "there is no place for the dedupe store: neither XDG_STATE_HOME nor HOME is set",
            )
            .hint("name a file with --dedupe-store")
        })?
        .join("mq");
    std::fs::create_dir_all(&folder).map_err(|error| {
        Error::new(
            ErrorKind::InputOutput,
            format!(
                "cannot make the directory {} for the dedupe store: {error}",
                folder.display()
            ),
        )
        .hint("name a file elsewhere with --dedupe-store")
    })?;
    Ok(folder.join(file_name(scope)))
}

fn file_name(scope: &Scope) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let vhost = encoded(scope.vhost.as_str());
    let name = format!("{vhost}-{}", encoded(scope.queue.as_str()));
    if name.len() <= LONGEST_NAME {
        return format!("dedupe-{name}.redb");
    }
    let start: String = name.chars().take(LONGEST_NAME - 33).collect();
    format!("dedupe-{start}-{}.redb", scope.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::VhostName;

    #[test]
    fn every_queue_has_a_file_of_its_own_whose_name_fits() {
        let name = |vhost: &str, queue: &str| {
            file_name(&Scope {
                vhost: VhostName::new(vhost).expect("vhost"),
                queue: QueueName::new(queue).expect("queue"),
            })
        };
        assert_eq!(name("/", "orders"), "dedupe-%2F-orders.redb");
        assert_eq!(name("shop", "a/b.c"), "dedupe-shop-a%2Fb%2Ec.redb");
        assert_ne!(name("a-b", "c"), name("a", "b-c"));
        let long = "é".repeat(120);
        let one = name("/", &format!("{long}1"));
        assert!(one.len() <= 255, "{}", one.len());
        assert_ne!(one, name("/", &format!("{long}2")));
    }
}
