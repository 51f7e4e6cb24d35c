//! What is a terminal, and what may be coloured.

use std::io::{IsTerminal, stdout};

/// Returns whether stdout takes colors.
pub(crate) fn stdout_is_colourful() -> bool {
    is_colourful(&stdout())
}

/// Returns whether a stream is a terminal that takes colors.
pub(crate) fn is_colourful(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && colour_is_welcome()
}

/// `NO_COLOR`, when it is not empty, and `TERM=dumb` ask for none.
fn colour_is_welcome() -> bool {
    let asks_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !asks_for_none && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// An ANSI colour, applied when it is welcome.
#[derive(Clone, Copy)]
pub(crate) enum Colour {
    /// Something is wrong.
    Red,
    /// All is well.
    Green,
    /// Attention.
    Yellow,
    /// Names.
    Cyan,
    /// Less important.
    Dim,
}

impl Colour {
    /// The text, coloured when `colourful`.
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
