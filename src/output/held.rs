//! What is said while a screen belongs to somebody else is kept: shown there, or
//! written to standard error afterwards.

use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So much is kept, in bytes; what is older goes.
const MOST: usize = 256 * 1024;

static HELD: Mutex<Option<Kept>> = Mutex::new(None);

#[derive(Default)]
struct Kept {
    /// Words for the person.
    said: Vec<u8>,
    /// Lines of the log.
    log: Vec<u8>,
}

/// As long as this lives nothing goes to standard error.
#[derive(Debug)]
#[must_use]
pub struct Held(());

/// Keeps from now on what is said.
pub fn hold() -> Held {
    *held() = Some(Kept::default());
    Held(())
}

impl Held {
    /// The lines that were said since the last call, without those of the log.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        let said = match &mut *held() {
            Some(kept) => std::mem::take(&mut kept.said),
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&said).into_owned();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(kept) = held().take() {
            let mut stderr = io::stderr().lock();
            let _ = stderr.write_all(&kept.log);
            let _ = stderr.write_all(&kept.said);
        }
    }
}

/// Whether these words are kept.
pub(super) fn keeps(bytes: &[u8]) -> bool {
    held()
        .as_mut()
        .is_some_and(|kept| add(&mut kept.said, bytes))
}

/// Whether this line of the log is kept.
pub(super) fn keeps_log(line: &[u8]) -> bool {
    held().as_mut().is_some_and(|kept| add(&mut kept.log, line))
}

fn add(kept: &mut Vec<u8>, bytes: &[u8]) -> bool {
    kept.extend_from_slice(bytes);
    let too_much = kept.len().saturating_sub(MOST);
    kept.drain(..too_much);
    true
}

fn held() -> MutexGuard<'static, Option<Kept>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
