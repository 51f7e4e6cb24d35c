//! Times of day at which users may be connected.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use crate::auth::jwt::TimeRangeClaims;

const DAY_SECONDS: i64 = 24 * 3600;

/// Returns how long a user may stay connected from `now`, in seconds since 1970. `Some(None)` means without a
/// limit, and `None` means that the user may not connect. Uses local time, and ignores changes to or from
/// daylight saving time in between.
#[expect(clippy::option_option, reason = "refused, unlimited, or a duration")]
pub(super) fn open_for(
    ranges: &[TimeRangeClaims],
    location: &str,
    now: i64,
) -> Option<Option<Duration>> {
    if ranges.is_empty() {
        return Some(None);
    }
    let zone = match location {
        "" => TimeZone::UTC,
        name => TimeZone::get(name).ok()?,
    };
    let local = Timestamp::from_second(now).ok()?.to_zoned(zone);
    let clock = seconds(local.datetime().time());
    let left = ranges.iter().filter_map(|range| left(range, clock));
    left.max().map(Some)
}

/// Returns the remaining time of a range, or `None` outside of the range. A range whose end is earlier than
/// its start continues past midnight.
fn left(range: &TimeRangeClaims, clock: i64) -> Option<Duration> {
    let (start, end) = (time(&range.start)?, time(&range.end)?);
    let left = match start <= end {
        true if clock < start => return None,
        true => end - clock,
        false if clock >= start => end + DAY_SECONDS - clock,
        false => end - clock,
    };
    u64::try_from(left)
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_secs)
}

/// Parses `hh:mm:ss`. Returns seconds since midnight.
fn time(text: &str) -> Option<i64> {
    Time::strptime("%H:%M:%S", text).ok().map(seconds)
}

fn seconds(time: Time) -> i64 {
    i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14, 22:13:20 in UTC and 17:13:20 in New York.
    const NOW: i64 = 1_700_000_000;

    #[test]
    fn ranges_limit_the_connection_time() {
        let check = |start: &str, end: &str, location: &str, expected: Option<u64>| {
            let range = TimeRangeClaims {
                start: start.into(),
                end: end.into(),
            };
            let open = open_for(&[range], location, NOW);
            let expected = expected.map(|seconds| Some(Duration::from_secs(seconds)));
            assert_eq!(open, expected, "{start} to {end} in {location:?}");
        };
        check("22:00:00", "22:13:30", "", Some(10));
        check("22:00:00", "22:13:20", "", None);
        check("22:13:21", "23:00:00", "", None);
        check("22:00:00", "01:00:00", "", Some(10_000));
        check("23:00:00", "22:13:21", "", Some(1));
        check("23:00:00", "22:00:00", "", None);
        check("17:00:00", "17:13:21", "America/New_York", Some(1));
        check("22:00:00", "22:13:30", "America/New_York", None);
        check("22:00:00", "23:00:00", "Nowhere/Land", None);
        check("x", "23:00:00", "", None);
        check("25:00:00", "23:00:00", "", None);
        assert_eq!(open_for(&[], "Nowhere/Land", NOW), Some(None));
    }
}
