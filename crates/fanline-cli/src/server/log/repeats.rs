//! Warnings that would otherwise fill the log: a thousand clients that all make the same mistake.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use super::line::Tag;

/// Over this long the lines of one place in the program are counted together.
const WINDOW: Duration = Duration::from_secs(10);
/// So many different lines of one place are written in a window. What is beyond is counted.
const LINES_MAX: u32 = 20;

/// What was written lately, and what was not, by the place in the program that it came from. There are
/// as many as the program has places, so this does not grow.
pub(super) struct Repeats<K> {
    windows: HashMap<K, Window>,
    /// Places that have something withheld.
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
    /// One of them.
    pub(super) example: String,
}

impl<K: Eq + Hash> Repeats<K> {
    pub(super) fn new() -> Self {
        Repeats {
            windows: HashMap::new(),
            withholding: 0,
        }
    }

    /// Whether a line is to be written: not if it says what the last one of the same place has just
    /// said, nor if there were many of that place.
    pub(super) fn admits(&mut self, place: K, tag: Tag, text: &str, now: Duration) -> bool {
        let window = self.windows.entry(place).or_insert_with(|| Window {
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

    /// What was withheld in windows that are over.
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
    fn the_same_line_is_written_once_in_a_while() {
        let at = Duration::from_secs;
        let mut repeats = Repeats::new();
        let mut admits = |place, text, now| repeats.admits(place, Tag::Warning, text, at(now));
        assert!(admits(1, "a", 0));
        assert!(!admits(1, "a", 1));
        assert!(admits(1, "b", 1), "another line");
        assert!(admits(2, "a", 1), "another place");
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
            "the second place's window began later"
        );
        assert_eq!(repeats.due(at(30)), []);
        assert!(repeats.admits(1, Tag::Warning, "b", at(30)));
    }

    #[test]
    fn many_different_lines_are_counted() {
        let mut repeats = Repeats::new();
        let written = (0..1000)
            .filter(|nth| repeats.admits((), Tag::Error, &nth.to_string(), Duration::ZERO))
            .count();
        assert_eq!(written, 20);
        let due = repeats.due(WINDOW);
        assert_eq!((due[0].count, due[0].example.as_str()), (980, "999"));
    }
}
