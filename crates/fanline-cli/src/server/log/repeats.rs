//! Limits repeated warnings, for example from a thousand clients that make the same mistake.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use super::line::Tag;

/// Period over which the lines of one call site are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Largest number of different lines that one call site writes in a period. Further lines are only counted.
const LINES_MAX: u32 = 20;

/// Recent lines by call site, written or withheld. Bounded by the number of call sites in the program.
pub(super) struct Repeats<K> {
    windows: HashMap<K, Window>,
    /// Number of call sites with withheld lines.
    withholding: usize,
}

struct Window {
    since: Duration,
    written: u32,
    withheld: u64,
    tag: Tag,
    last: String,
    example: String,
}

/// Lines that were not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Withheld {
    pub(super) tag: Tag,
    pub(super) count: u64,
    /// The text of one withheld line.
    pub(super) example: String,
}

impl<K: Eq + Hash> Repeats<K> {
    pub(super) fn new() -> Self {
        Repeats {
            windows: HashMap::new(),
            withholding: 0,
        }
    }

    /// Returns whether to write a line. Repetitions of the last line of the same call site, and lines beyond
    /// the limit, are withheld.
    pub(super) fn admits(&mut self, site: K, tag: Tag, text: &str, now: Duration) -> bool {
        let window = self.windows.entry(site).or_insert_with(|| Window {
            since: now,
            written: 0,
            withheld: 0,
            tag,
            last: String::new(),
            example: String::new(),
        });
        if window.withheld == 0 && now.saturating_sub(window.since) >= WINDOW {
            window.since = now;
            window.written = 0;
        }
        let says_the_same = window.written > 0 && window.last == text;
        if says_the_same || window.written >= LINES_MAX {
            self.withholding += usize::from(window.withheld == 0);
            window.withheld += 1;
            window.example = text.to_owned();
            return false;
        }
        window.written += 1;
        window.last = text.to_owned();
        true
    }

    /// Takes the withheld lines of periods that have ended.
    pub(super) fn due(&mut self, now: Duration) -> Vec<Withheld> {
        if self.withholding == 0 {
            return Vec::new();
        }
        let mut due = Vec::new();
        for window in self.windows.values_mut() {
            if window.withheld > 0 && now.saturating_sub(window.since) >= WINDOW {
                due.push(Withheld {
                    tag: window.tag,
                    count: std::mem::take(&mut window.withheld),
                    example: std::mem::take(&mut window.example),
                });
                window.since = now;
                window.written = 0;
            }
        }
        self.withholding -= due.len();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_line_is_written_once_per_period() {
        let at = Duration::from_secs;
        let mut repeats = Repeats::new();
        let mut admits = |site, text, now| repeats.admits(site, Tag::Warning, text, at(now));
        assert!(admits(1, "a", 0));
        assert!(!admits(1, "a", 1));
        assert!(admits(1, "b", 1), "another line");
        assert!(admits(2, "a", 1), "another site");
        assert!(!admits(2, "a", 2));
        assert_eq!(repeats.due(at(9)), []);
        let withheld = Withheld {
            tag: Tag::Warning,
            count: 1,
            example: "a".into(),
        };
        assert_eq!(repeats.due(at(10)), [withheld]);
        assert_eq!(
            repeats.due(at(12)).len(),
            1,
            "the second call site's period began later"
        );
        assert_eq!(repeats.due(at(30)), []);
        assert!(repeats.admits(1, Tag::Warning, "b", at(30)));
    }

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let mut repeats = Repeats::new();
        let written = (0..1000)
            .filter(|nth| repeats.admits((), Tag::Error, &nth.to_string(), Duration::ZERO))
            .count();
        assert_eq!(written, 20);
        let due = repeats.due(WINDOW);
        assert_eq!((due[0].count, due[0].example.as_str()), (980, "999"));
    }
}
