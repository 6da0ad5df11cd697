//! What a worker did with its messages.

/// What was done with messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deliveries taken.
    pub received: u64,
    /// Done and acked.
    pub acked: u64,
    /// Failed attempts that will be, or were at once, followed by another.
    pub retried: u64,
    /// Dead-lettered because no attempt can help.
    pub poison: u64,
    /// Dead-lettered because attempts ran out.
    pub exhausted: u64,
    /// Dead-lettered because they came back too often without an outcome.
    pub returned: u64,
    /// Acked without being handled, because the same had been done before.
    pub deduplicated: u64,
    /// Given back untouched.
    pub released: u64,
    /// In work when the connection broke; the broker hands them out again.
    pub unsettled: u64,
}

impl Counts {
    /// Messages settled for good.
    #[must_use]
    pub const fn settled(&self) -> u64 {
        self.acked + self.deduplicated + self.dead_lettered()
    }

    /// Dead-lettered, for whatever reason.
    #[must_use]
    pub const fn dead_lettered(&self) -> u64 {
        self.poison + self.exhausted + self.returned
    }
}
