//! The time of day, and durations as texts.

use std::time::{Duration, SystemTime};

use fanline_engine::time::Nanos;

/// Returns the seconds since 1970, to check the validity of tokens.
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// Returns a duration as Go writes it: `2h0m0s`, `1m2.5s`, `100ms`.
pub(crate) fn go_text(duration: Duration) -> String {
    Nanos::from(duration).to_string()
}
