//! What is done, in one file: redb, whose commits are on disk when they return
//! and which opens whole after a crash at any moment.
//!
//! Keys are kept in generations, a table each: a new one begins after a quarter
//! of the time to live, and a whole table is dropped once its youngest key is
//! too old. So a key is kept at least as long as it must be and at most a
//! quarter longer, and forgetting costs nothing for each key.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::{
    Database, DatabaseError, ReadOnlyTable, ReadableDatabase as _, StorageError, TableDefinition,
    TableError, TableHandle as _,
};

use crate::dedupe::DedupeKey;
use crate::error::{Error, ErrorKind, Result};

/// Memory for pages of the file, in bytes.
const CACHE: usize = 32 * 1024 * 1024;

const PREFIX: &str = "done-since-";

type Generation<'n> = TableDefinition<'n, &'static [u8; 16], u64>;

/// A file of one worker.
pub(super) struct FileStore {
    database: Database,
    path: PathBuf,
    /// Seconds.
    time_to_live: u64,
    view: Mutex<View>,
}

/// The generations as they were last committed, the oldest first, with the
/// second in which each began.
#[derive(Default)]
struct View(Vec<(u64, ReadOnlyTable<&'static [u8; 16], u64>)>);

impl FileStore {
    /// Opens the file, or begins it. Reads it whole to prove it sound.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when another process has it,
    /// [`ErrorKind::InvalidInput`] when it is no such file or is damaged,
    /// [`ErrorKind::InputOutput`] when it cannot be read or written.
    pub(super) fn open(path: &Path, time_to_live: Duration) -> Result<Self> {
        let mut builder = Database::builder();
        // A damaged file would end us with a panic otherwise.
        builder
            .set_cache_size(CACHE)
            .set_check_integrity_on_open(true);
        let database = builder
            .create(path)
            .map_err(|error| not_opened(path, &error))?;
        let store = Self {
            database,
            path: path.to_owned(),
            time_to_live: time_to_live.as_secs().max(1),
            view: Mutex::default(),
        };
        let view = store
            .committed()
            .map_err(|error| store.failed("read", &error))?;
        *store.locked() = view;
        Ok(store)
    }

    /// Whether this was recorded within the time to live before `now` (seconds
    /// since 1970).
    ///
    /// # Errors
    /// [`ErrorKind::InputOutput`] when the file cannot be read.
    pub(super) fn is_done(&self, key: &DedupeKey, now: u64) -> Result<bool> {
        for (_, table) in self.locked().0.iter().rev() {
            let at = table
                .get(key.bytes())
                .map_err(|error| self.failed("read", &error.into()))?;
            // A clock that went back makes nothing undone.
            if at.is_some_and(|at| now.saturating_sub(at.value()) < self.time_to_live) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Records keys as done at `now` (seconds since 1970); on disk when it returns.
    ///
    /// # Errors
    /// [`ErrorKind::InputOutput`] when the file cannot be written; then none is recorded.
    pub(super) fn record(&self, keys: &[DedupeKey], now: u64) -> Result<()> {
        let begun: Vec<u64> = self.locked().0.iter().map(|(begun, _)| *begun).collect();
        self.commit(keys, now, &begun)
            .and_then(|()| self.committed())
            .map(|view| *self.locked() = view)
            .map_err(|error| self.failed("write", &error))
    }

    fn commit(
        &self,
        keys: &[DedupeKey],
        now: u64,
        begun: &[u64],
    ) -> std::result::Result<(), redb::Error> {
        let quarter = (self.time_to_live / 4).max(1);
        let current = match begun.last() {
            Some(begun) if now < begun.saturating_add(quarter) => *begun,
            Some(_) | None => now,
        };
        let mut sorted = keys.to_vec();
        // Neighbours share pages.
        sorted.sort_unstable();
        let writing = self.database.begin_write()?;
        {
            let name = name(current);
            let mut table = writing.open_table(Generation::new(&name))?;
            for key in &sorted {
                table.insert(key.bytes(), now)?;
            }
        }
        // The last key of a generation is no younger than the next one.
        for pair in begun.windows(2) {
            if let [old, next] = pair
                && next.saturating_add(self.time_to_live) < now
            {
                writing.delete_table(Generation::new(&name(*old)))?;
            }
        }
        writing.commit()?;
        Ok(())
    }

    fn committed(&self) -> std::result::Result<View, redb::Error> {
        let reading = self.database.begin_read()?;
        let mut generations = Vec::new();
        for table in reading.list_tables()? {
            let Some(begun) =
                (table.name().strip_prefix(PREFIX)).and_then(|text| text.parse().ok())
            else {
                continue;
            };
            match reading.open_table(Generation::new(table.name())) {
                Ok(table) => generations.push((begun, table)),
                Err(TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        generations.sort_unstable_by_key(|(begun, _)| *begun);
        Ok(View(generations))
    }

    /// A panic elsewhere leaves the last view in place, which is still true.
    fn locked(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, doing: &str, error: &redb::Error) -> Error {
        Error::new(
            ErrorKind::InputOutput,
            format!(
                "cannot {doing} the dedupe store {}: {error}",
                self.path.display()
            ),
        )
        .hint("check free space and the disk, then start the worker again")
    }
}

fn name(begun: u64) -> String {
    // Of one width, so that they are in order whoever looks at them.
    format!("{PREFIX}{begun:012}")
}

fn not_opened(path: &Path, error: &DatabaseError) -> Error {
    let file = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Error::new(
            ErrorKind::Unavailable,
            format!("the dedupe store {file} is in use by another process"),
        )
        .hint("one file serves one worker: give it more --jobs, or let several workers share a Redis server (--dedupe-store redis://HOST:6379/0)"),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() != std::io::ErrorKind::InvalidData => Error::new(
            ErrorKind::InputOutput,
            format!("cannot open the dedupe store {file}: {error}"),
        )
        .hint("name a file in a directory that exists and can be written, with --dedupe-store"),
        error => Error::new(
            ErrorKind::InvalidInput,
            format!("{file} is no dedupe store, or is damaged: {error}"),
        )
        .hint("name another file with --dedupe-store, or move this one away: then what was done before is forgotten, and copies of it are handled again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedupe::key::of_body as key;

    fn open(path: &Path, seconds: u64) -> FileStore {
        FileStore::open(path, Duration::from_secs(seconds)).expect("open")
    }

    #[test]
    fn what_is_recorded_is_done_until_it_is_too_old_and_after_a_restart() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("done.redb");
        let store = open(&path, 100);
        assert!(!store.is_done(&key("a"), 1000).expect("read"));
        store.record(&[key("a"), key("b")], 1000).expect("write");
        drop(store);
        let store = open(&path, 100);
        for (now, done) in [(1000, true), (1099, true), (1100, false), (900, true)] {
            assert_eq!(store.is_done(&key("a"), now).expect("read"), done, "{now}");
        }
        assert!(!store.is_done(&key("c"), 1000).expect("read"));
    }

    #[test]
    fn what_is_too_old_leaves_the_file() {
        let folder = tempfile::tempdir().expect("folder");
        let store = open(&folder.path().join("done.redb"), 100);
        for now in 1000..2000 {
            store.record(&[key(&now.to_string())], now).expect("write");
            assert!(store.locked().0.len() <= 7, "{}", store.locked().0.len());
            for (age, done) in [(0, true), (99, true), (100, false), (200, false)] {
                let then = key(&(now - age).to_string());
                let expected = done && now - age >= 1000;
                assert_eq!(
                    store.is_done(&then, now).expect("read"),
                    expected,
                    "{now} {age}"
                );
            }
        }
        let kept: u64 = (store.locked().0.iter())
            .map(|(_, table)| redb::ReadableTableMetadata::len(table).expect("count"))
            .sum();
        assert!(kept <= 151, "{kept}");
    }

    #[test]
    fn done_again_counts_from_then() {
        let folder = tempfile::tempdir().expect("folder");
        let store = open(&folder.path().join("done.redb"), 100);
        store.record(&[key("a")], 1000).expect("write");
        store.record(&[key("a")], 1090).expect("write");
        assert!(store.is_done(&key("a"), 1189).expect("read"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test that damages files")]
    fn a_file_in_use_a_foreign_and_a_damaged_one_are_told_apart() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("done.redb");
        let kind = |path: &Path| {
            let opened = FileStore::open(path, Duration::from_secs(9));
            opened.map(|_| ()).map_err(|error| error.kind())
        };
        let store = open(&path, 9);
        assert_eq!(kind(&path), Err(ErrorKind::Unavailable));
        store.record(&[key("a")], 1000).expect("write");
        drop(store);
        assert_eq!(kind(folder.path()), Err(ErrorKind::InputOutput));
        assert_eq!(
            kind(&folder.path().join("no/such")),
            Err(ErrorKind::InputOutput)
        );
        let foreign = folder.path().join("foreign");
        std::fs::write(&foreign, "not a database, whatever else it is".repeat(99)).expect("write");
        assert_eq!(kind(&foreign), Err(ErrorKind::InvalidInput));
        let mut bytes = std::fs::read(&path).expect("read");
        let whole = bytes.clone();
        for at in (0..bytes.len()).step_by(997) {
            bytes.clone_from(&whole);
            for byte in bytes.iter_mut().skip(at).take(64) {
                *byte ^= 0x5a;
            }
            std::fs::write(&path, &bytes).expect("write");
            // Whatever it is: no panic, and never another file's word.
            let _ = FileStore::open(&path, Duration::from_secs(9))
                .map(|store| store.is_done(&key("a"), 1000));
        }
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("write");
        assert_eq!(kind(&path), Err(ErrorKind::InvalidInput));
    }
}
