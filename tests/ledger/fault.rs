//! What is done to a worker and when, decided by the seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// `kill -9` of the worker; its handlers live on.
    WorkerKilled,
    /// Both of its connections, without a goodbye.
    ConnectionCut,
    /// The connection of its copies, when the broker has one and says so.
    CutAtConfirm,
    /// `kill -9` of the node.
    BrokerKilled,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::WorkerKilled => "worker killed",
            Self::ConnectionCut => "connection cut",
            Self::CutAtConfirm => "connection cut at a confirm",
            Self::BrokerKilled => "broker killed",
        })
    }
}

/// A fault, and how long after the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) pause: Duration,
    pub(crate) fault: Fault,
}

/// A fault that happened: from when to when it could do harm, in seconds since
/// the machine started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Struck {
    pub(crate) fault: Fault,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// The faults of one worker.
pub(crate) fn planned(random: &mut Rng, count: usize) -> Vec<Planned> {
    (0..count)
        .map(|_| Planned {
            pause: Duration::from_millis(random.u64(300..3000)),
            fault: match random.u8(0..3) {
                0 => Fault::WorkerKilled,
                1 => Fault::ConnectionCut,
                _ => Fault::CutAtConfirm,
            },
        })
        .collect()
}
