//! What a handler's exit status means; handlers speak sysexits like mq itself.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::retry::Outcome;

/// The end itself, in a word or two.
pub(super) fn end_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "ended without a status".to_owned(),
    }
}

/// 0 done; 65 poison; 69 downstream is down; 75 and everything else a failed
/// attempt. `said` is the last line the handler wrote to its standard error.
pub(super) fn outcome(status: ExitStatus, said: Option<&str>) -> Outcome {
    let end = match (status.code(), status.signal()) {
        (None, Some(signal)) => format!("killed by signal {signal}"),
        _ => end_of(status),
    };
    let why = match said {
        Some(said) => format!("{end}: {said}"),
        None => end,
    };
    match status.code() {
        Some(0) => Outcome::Done,
        Some(65) => Outcome::Poison { why },
        Some(69) => Outcome::DownstreamDown { why },
        _ => Outcome::Failed { why, wait: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_sysexits() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let why = |why: &str| why.to_owned();
        for (status, expected) in [
            (exited(0), Outcome::Done),
            (
                exited(65),
                Outcome::Poison {
                    why: why("exit 65: bad"),
                },
            ),
            (
                exited(69),
                Outcome::DownstreamDown {
                    why: why("exit 69: bad"),
                },
            ),
            (
                exited(75),
                Outcome::Failed {
                    why: why("exit 75: bad"),
                    wait: None,
                },
            ),
            (
                exited(1),
                Outcome::Failed {
                    why: why("exit 1: bad"),
                    wait: None,
                },
            ),
            (
                ExitStatus::from_raw(9),
                Outcome::Failed {
                    why: why("killed by signal 9: bad"),
                    wait: None,
                },
            ),
        ] {
            assert_eq!(outcome(status, Some("bad")), expected);
        }
        assert_eq!(
            outcome(exited(1), None),
            Outcome::Failed {
                why: why("exit 1"),
                wait: None
            }
        );
    }
}
