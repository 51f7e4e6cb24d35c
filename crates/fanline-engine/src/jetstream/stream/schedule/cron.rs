//! Cron expressions of six fields: second, minute, hour, day of the month, month, day of the week.

use jiff::civil::{Date, DateTime, time};
use jiff::{Timestamp, ToSpan, tz::TimeZone};

/// Maximum number of days to search for the next match. Two leap days are at most eight years apart.
const DAYS_SEARCHED_MAX: usize = 8 * 366 + 1;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Allowed values of each field. Bit n stands for the value n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::jetstream::stream) struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: Field,
    months: u64,
    weekdays: Field,
}

/// A field that may allow all values, as `*` or `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    allowed: u64,
    open: bool,
}

impl Cron {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let mut field = |from, to, names: &[&str], first_name| {
            parse_field(fields.next()?, from, to, names, first_name)
        };
        let cron = Cron {
            seconds: field(0, 59, &[], 0)?.allowed,
            minutes: field(0, 59, &[], 0)?.allowed,
            hours: field(0, 23, &[], 0)?.allowed,
            days: field(1, 31, &[], 0)?,
            months: field(1, 12, &MONTHS, 1)?.allowed,
            weekdays: field(0, 6, &WEEKDAYS, 0)?,
        };
        fields.next().is_none().then_some(cron)
    }

    /// Returns the first matching time after `after_unix_nanos` in a time zone.
    pub(super) fn next(&self, after_unix_nanos: i64, zone: &TimeZone) -> Option<i64> {
        let after = Timestamp::from_nanosecond(i128::from(after_unix_nanos)).ok()?;
        let mut local = zone.to_datetime(after);
        // The loop is needed when clocks are set back: the first matches may then be before `after`.
        loop {
            local = self.next_local(local)?;
            let at = zone.to_timestamp(local).ok()?;
            if at > after {
                return i64::try_from(at.as_nanosecond()).ok();
            }
        }
    }

    fn next_local(&self, after: DateTime) -> Option<DateTime> {
        let start = after.with().subsec_nanosecond(0).build().ok()?;
        let start = start.checked_add(1.second()).ok()?;
        let mut date = start.date();
        for _ in 0..DAYS_SEARCHED_MAX {
            if self.allows_day(date) {
                let from = if date == start.date() {
                    (start.hour(), start.minute(), start.second())
                } else {
                    (0, 0, 0)
                };
                if let Some((hour, minute, second)) = self.next_in_day(from) {
                    return Some(date.to_datetime(time(hour, minute, second, 0)));
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// Returns whether a date matches. If both days of the month and days of the week are set, one of them
    /// suffices.
    fn allows_day(&self, date: Date) -> bool {
        let day = has(self.days.allowed, date.day());
        let weekday = has(
            self.weekdays.allowed,
            date.weekday().to_sunday_zero_offset(),
        );
        let either = !self.days.open && !self.weekdays.open;
        has(self.months, date.month())
            && if either {
                day || weekday
            } else {
                day && weekday
            }
    }

    fn next_in_day(&self, (hour, minute, second): (i8, i8, i8)) -> Option<(i8, i8, i8)> {
        let mut from = (minute, second);
        for h in hour..24 {
            if has(self.hours, h)
                && let Some((minute, second)) = self.next_in_hour(from)
            {
                return Some((h, minute, second));
            }
            from = (0, 0);
        }
        None
    }

    fn next_in_hour(&self, (minute, second): (i8, i8)) -> Option<(i8, i8)> {
        let mut from = second;
        for m in minute..60 {
            if has(self.minutes, m)
                && let Some(s) = (from..60).find(|s| has(self.seconds, *s))
            {
                return Some((m, s));
            }
            from = 0;
        }
        None
    }
}

fn has(allowed: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| allowed & (1 << value) != 0)
}

/// Parses a field: `*`, `?`, `5`, `1-5`, or `mon-fri`, each with an optional `/step`; several are separated
/// by commas.
fn parse_field(text: &str, from: u32, to: u32, names: &[&str], first_name: u32) -> Option<Field> {
    let mut field = Field {
        allowed: 0,
        open: false,
    };
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(parse_number(step).filter(|s| *s > 0)?)),
            None => (part, None),
        };
        let value = |text: &str| {
            let named = names
                .iter()
                .position(|name| text.eq_ignore_ascii_case(name));
            match named {
                Some(at) => Some(first_name + u32::try_from(at).ok()?),
                None => parse_number(text),
            }
        };
        let (low, high) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => {
                field.open |= step.is_none_or(|step| step == 1);
                (from, to)
            }
            Some((low, high)) => (value(low)?, value(high)?),
            // `5/10` means `5-59/10`.
            None => (
                value(range)?,
                if step.is_some() { to } else { value(range)? },
            ),
        };
        if low < from || high > to || low > high {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        for at in (low..=high).step_by(step) {
            field.allowed |= 1 << at;
        }
    }
    Some(field)
}

fn parse_number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
