//! Payloads that contain numbers.

/// Number of bytes of every payload.
const PAYLOAD_BYTES: usize = 128;

/// Returns a payload that starts with two numbers: the number of its connection, and the number of the
/// message on that connection.
pub(super) fn payload(epoch: u64, number: u64) -> Vec<u8> {
    let mut payload = vec![b'.'; PAYLOAD_BYTES];
    payload[..8].copy_from_slice(&epoch.to_be_bytes());
    payload[8..16].copy_from_slice(&number.to_be_bytes());
    payload
}

/// Returns the two numbers of a payload, or `None` if this program has not created the payload.
pub(super) fn read(payload: &[u8]) -> Option<(u64, u64)> {
    let (epoch, rest) = payload.split_first_chunk()?;
    let (number, _) = rest.split_first_chunk()?;
    let numbers = (u64::from_be_bytes(*epoch), u64::from_be_bytes(*number));
    (payload == self::payload(numbers.0, numbers.1)).then_some(numbers)
}

/// The message numbers that have arrived. The first message has number 1. Numbers may repeat, and gaps may be
/// filled later.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// All numbers up to this one have arrived.
    whole: u64,
    beyond: std::collections::BTreeSet<u64>,
}

impl Seen {
    /// Adds a number. Returns whether it is new.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number <= self.whole || !self.beyond.insert(number) {
            return false;
        }
        while self.beyond.remove(&(self.whole + 1)) {
            self.whole += 1;
        }
        true
    }

    /// Returns the number up to which all numbers have arrived.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_round_trips() {
        assert_eq!(read(&payload(3, 1 << 40)), Some((3, 1 << 40)));
        let mut wrong = payload(3, 4);
        wrong[100] = b'!';
        assert_eq!(read(&wrong), None);
        assert_eq!(read(b"short"), None);
    }

    #[test]
    fn gaps_can_be_filled_later() {
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
