//! Durations in Go's words.

/// A duration as Go prints it: `5s`, `1.5s`, `2m0s`, `250ms`.
pub(super) fn go_duration(nanos: i64) -> String {
    let (unit, per_unit) = match nanos {
        0 => return "0s".to_owned(),
        n if n < 1_000 => ("ns", 1),
        n if n < 1_000_000 => ("µs", 1_000),
        n if n < 1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let minutes = nanos / 60_000_000_000;
    let rest = if unit == "s" {
        nanos % 60_000_000_000
    } else {
        nanos
    };
    let whole = rest / per_unit;
    let places = per_unit.ilog10() as usize;
    let fraction = format!("{:0places$}", rest % per_unit);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let seconds = format!("{whole}{point}{fraction}{unit}");
    match (minutes / 60, minutes % 60) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

/// Reads one number with its unit, such as `300ms`, `5s` or `1.5m`, in nanoseconds.
pub(super) fn parse_go_duration(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
    let (number, unit) = text.split_at(digits);
    let nanos_per_unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok().filter(|number: &f64| *number >= 0.0)?;
    let duration = std::time::Duration::try_from_secs_f64(number * nanos_per_unit / 1e9).ok()?;
    u64::try_from(duration.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (nanos, text) in [
            (5_000_000_000, "5s"),
            (6_500_000_000, "6.5s"),
            (120_000_000_000, "2m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (250_000_000, "250ms"),
            (1_500, "1.5µs"),
            (0, "0s"),
        ] {
            assert_eq!(go_duration(nanos), text);
        }
    }

    #[test]
    fn read() {
        for (text, nanos) in [
            ("300ms", Some(300_000_000)),
            ("5s", Some(5_000_000_000)),
            ("1.5m", Some(90_000_000_000)),
            ("500", None),
            ("-1s", None),
            ("s", None),
            ("5y", None),
        ] {
            assert_eq!(parse_go_duration(text), nanos, "{text}");
        }
    }
}
