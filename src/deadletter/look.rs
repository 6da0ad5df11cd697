//! How much may be asked for at once: brokers and we hold every whole message of
//! a look in memory.

/// Bytes of bodies in one look, at most.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// How many of `wanted` messages one look may ask for, at least one.
///
/// `body_bytes` of each body are asked for; `messages` in the queue have
/// `message_bytes` of bodies together, as far as that is counted. The broker
/// reads bodies whole before it cuts them.
#[must_use]
pub fn most_to_look_at(
    wanted: u32,
    body_bytes: usize,
    messages: Option<u64>,
    message_bytes: Option<u64>,
) -> u32 {
    let by_average = match (messages, message_bytes) {
        (Some(messages), Some(bytes)) if messages > 0 => {
            let average = bytes.div_ceil(messages).max(1);
            MOST_BYTES / average
        }
        // Then only what is asked for is known.
        _ => MOST_BYTES / (body_bytes as u64).max(1),
    };
    wanted.min(u32::try_from(by_average.max(1)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_are_asked_for_few_at_a_time() {
        const MIB: u64 = 1024 * 1024;
        for (wanted, body_bytes, messages, bytes, expected) in [
            (1000, 256, None, None, 1000),
            (1000, 256, Some(5), Some(500), 1000),
            (1000, 256, Some(0), Some(0), 1000),
            (1000, 256, Some(100), Some(1000 * MIB), 6),
            (1000, 256, Some(1), Some(500 * MIB), 1),
            (1000, 10 * 1024 * 1024, None, None, 6),
            // Small ones may be asked for whole.
            (1000, 10 * 1024 * 1024, Some(1000), Some(MIB), 1000),
            (1, 0, None, None, 1),
        ] {
            assert_eq!(
                most_to_look_at(wanted, body_bytes, messages, bytes),
                expected,
                "{wanted} {body_bytes} {messages:?} {bytes:?}"
            );
        }
    }
}
