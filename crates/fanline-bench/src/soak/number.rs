//! Payloads that say which message they are.

/// Bytes of every payload.
const PAYLOAD_BYTES: usize = 128;

/// A payload with two numbers in front: which connection it was sent on, and which message of it this is.
pub(super) fn payload(epoch: u64, number: u64) -> Vec<u8> {
    let mut payload = vec![b'.'; PAYLOAD_BYTES];
    payload[..8].copy_from_slice(&epoch.to_be_bytes());
    payload[8..16].copy_from_slice(&number.to_be_bytes());
    payload
}

/// The numbers of a payload; none when it is another one.
pub(super) fn read(payload: &[u8]) -> Option<(u64, u64)> {
    let (epoch, rest) = payload.split_first_chunk()?;
    let (number, _) = rest.split_first_chunk()?;
    let numbers = (u64::from_be_bytes(*epoch), u64::from_be_bytes(*number));
    (payload == self::payload(numbers.0, numbers.1)).then_some(numbers)
}

/// Which numbers have come, from 1 on, when they may come more than once and with gaps that are filled later.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// All up to this one.
    whole: u64,
    beyond: std::collections::BTreeSet<u64>,
}

impl Seen {
    /// Whether it is the first time.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number <= self.whole || !self.beyond.insert(number) {
            return false;
        }
        while self.beyond.remove(&(self.whole + 1)) {
            self.whole += 1;
        }
        true
    }

    /// All up to this one have come.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_read_as_they_are_written() {
        assert_eq!(read(&payload(3, 1 << 40)), Some((3, 1 << 40)));
        let mut wrong = payload(3, 4);
        wrong[100] = b'!';
        assert_eq!(read(&wrong), None);
        assert_eq!(read(b"short"), None);
    }

    #[test]
    fn gaps_are_filled_later() {
        let mut seen = Seen::default();
        for (number, is_new, whole) in [
            (1, true, 1),
            (3, true, 1),
            (3, false, 1),
            (1, false, 1),
            (2, true, 3),
            (4, true, 4),
        ] {
            assert_eq!(seen.insert(number), is_new);
            assert_eq!(seen.whole(), whole);
        }
    }
}
