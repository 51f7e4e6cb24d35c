//! The last steps of a run, as text.

use std::collections::VecDeque;

/// Lines that are stored at most.
const LINES_MAX: usize = 10_000;

/// The last steps of a run. A run without a trace formats nothing.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    is_on: bool,
    lines: VecDeque<String>,
}

impl Trace {
    pub(crate) fn new(is_on: bool) -> Self {
        Trace {
            is_on,
            lines: VecDeque::new(),
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, step: u64, line: impl FnOnce() -> String) {
        if !self.is_on {
            return;
        }
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{step:6} {}", line()));
    }

    /// Takes all lines, the oldest first.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}
