//! SIGTERM, SIGINT and SIGHUP as messages: whoever drains decides what they mean.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the process learns which signals it was started without"
)]

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

const HANGUP: u8 = 1;

/// Listens from now on; each signal arrives as its number.
pub(super) fn listen() -> std::io::Result<mpsc::UnboundedReceiver<u8>> {
    let (send, receive) = mpsc::unbounded_channel();
    let mut kinds = vec![(SignalKind::interrupt(), 2), (SignalKind::terminate(), 15)];
    // `nohup` means it.
    if !is_ignored(HANGUP) {
        kinds.push((SignalKind::hangup(), HANGUP));
    }
    for (kind, number) in kinds {
        let mut signals = signal(kind)?;
        let send = send.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                // A terminal that closes tells so more than once, by its shell
                // and by itself: that is no second wish.
                if send.send(number).is_err() || number == HANGUP {
                    break;
                }
            }
        });
    }
    Ok(receive)
}

/// Whether the process was started with this signal ignored; where nothing
/// tells, it was not.
fn is_ignored(number: u8) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, number))
}

/// The same, by what the kernel tells of the process.
fn ignores(status: &str, number: u8) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_is_ignored() {
        let status = "Name:\tmq\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, HANGUP));
        assert!(ignores(status, 13));
        assert!(!ignores(status, 15));
        assert!(!ignores("", HANGUP));
    }
}
