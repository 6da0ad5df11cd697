//! What a handler's exit status means; handlers speak sysexits like mq itself.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::retry::Outcome;

/// 0 done; 65 poison; 69 downstream is down; 75 and everything else a failed
/// attempt. `said` is the last line the handler wrote to its standard error.
pub(super) fn outcome(status: ExitStatus, said: Option<&str>) -> Outcome {
    let with_words = |what: String| match said {
        Some(said) => format!("{what}: {said}"),
        None => what,
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Done,
        (Some(65), _) => Outcome::Poison {
            why: with_words("exit 65".to_owned()),
        },
        (Some(69), _) => Outcome::DownstreamDown {
            why: with_words("exit 69".to_owned()),
        },
        (Some(code), _) => Outcome::Failed {
            why: with_words(format!("exit {code}")),
        },
        (None, Some(signal)) => Outcome::Failed {
            why: with_words(format!("killed by signal {signal}")),
        },
        (None, None) => Outcome::Failed {
            why: with_words("ended without a status".to_owned()),
        },
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
                },
            ),
            (
                exited(1),
                Outcome::Failed {
                    why: why("exit 1: bad"),
                },
            ),
            (
                ExitStatus::from_raw(9),
                Outcome::Failed {
                    why: why("killed by signal 9: bad"),
                },
            ),
        ] {
            assert_eq!(outcome(status, Some("bad")), expected);
        }
        assert_eq!(
            outcome(exited(1), None),
            Outcome::Failed { why: why("exit 1") }
        );
    }
}
