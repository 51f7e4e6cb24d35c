//! The time of day.

use std::time::SystemTime;

/// What the clock says, in seconds since 1970: tokens hold for a while.
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
