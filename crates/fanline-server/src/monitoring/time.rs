//! Times and durations in nats-server's formats.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Formats a time in UTC with up to nine digits, as in RFC 3339.
pub(super) fn rfc3339(time: SystemTime) -> String {
    // If the clock is wrong by ten thousand years, the request should still succeed.
    Timestamp::try_from(time)
        .unwrap_or(Timestamp::MAX)
        .to_string()
}

/// Formats whole seconds in up to five units: `1y2d3h4m5s`. Leading zero units are left out.
pub(super) fn uptime(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(365 * 86_400, "y"), (86_400, "d"), (3600, "h"), (60, "m")];
    let mut seconds = duration.as_secs();
    let mut text = String::new();
    for (unit, name) in UNITS {
        if seconds >= unit || !text.is_empty() {
            text += &format!("{}{name}", seconds / unit);
            seconds %= unit;
        }
    }
    text + &format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        for (nanos, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
            (1_795_255_200_100_000_000, "2026-11-21T10:00:00.1Z"),
            (1_795_255_200_000_000_042, "2026-11-21T10:00:00.000000042Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
            assert_eq!(rfc3339(time), expected);
        }
    }

    #[test]
    fn uptimes() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (62, "1m2s"),
            (3600, "1h0m0s"),
            (90_061, "1d1h1m1s"),
            (366 * 86_400, "1y1d0h0m0s"),
        ] {
            assert_eq!(uptime(Duration::from_secs(seconds)), expected);
        }
    }
}
