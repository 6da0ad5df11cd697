//! What is to become of each message, decided by the seed before it is published.

use fastrand::Rng;

/// Attempts for each message.
pub(crate) const MAX_ATTEMPTS: usize = 3;

/// Exit codes of the handler, one for each attempt up to the last.
#[derive(Clone, Debug)]
pub(crate) struct Fate(pub(crate) Vec<u8>);

impl Fate {
    fn drawn(random: &mut Rng) -> Self {
        let mut codes = Vec::new();
        while codes.len() < MAX_ATTEMPTS {
            let code = match random.u8(0..10) {
                0..5 => 0,
                5..9 => 1,
                _ => 65,
            };
            codes.push(code);
            if code != 1 {
                break;
            }
        }
        Self(codes)
    }

    /// Whether it is handled in the end; else it belongs in the dead-letter queue.
    pub(crate) fn ends_well(&self) -> bool {
        self.0.last() == Some(&0)
    }
}

/// The fates of so many messages; their ids are their places.
pub(crate) fn fates(random: &mut Rng, count: usize) -> Vec<Fate> {
    (0..count).map(|_| Fate::drawn(random)).collect()
}

/// A body that carries its id, and its fate for the handler to act out.
pub(crate) fn body(id: usize, fate: &Fate) -> Vec<u8> {
    let codes: Vec<String> = fate.0.iter().map(u8::to_string).collect();
    format!("{id} {}\n", codes.join(" ")).into_bytes()
}

/// The id in a body.
pub(crate) fn id_of(body: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(body).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
