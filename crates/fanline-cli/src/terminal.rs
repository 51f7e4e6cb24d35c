//! Detection of terminals, and colors.

use std::io::{IsTerminal, stdout};

/// Returns whether colors are written to stdout.
pub(crate) fn stdout_is_colourful() -> bool {
    is_colourful(&stdout())
}

/// Returns whether a stream is a terminal on which colors are allowed.
pub(crate) fn is_colourful(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && colour_is_welcome()
}

/// Returns whether colors are allowed: a non-empty `NO_COLOR`, or `TERM=dumb`, forbids them.
fn colour_is_welcome() -> bool {
    let is_forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_forbidden && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// An ANSI color.
#[derive(Clone, Copy)]
pub(crate) enum Colour {
    /// For errors.
    Red,
    /// For good states.
    Green,
    /// For warnings.
    Yellow,
    /// For names.
    Cyan,
    /// For less important text.
    Dim,
}

impl Colour {
    /// Returns the text, colored if `colourful`.
    pub(crate) fn paint(self, text: &str, colourful: bool) -> String {
        if !colourful {
            return text.to_owned();
        }
        let code = match self {
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Cyan => 36,
            Colour::Dim => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
