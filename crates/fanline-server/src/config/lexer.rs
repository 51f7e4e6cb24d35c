//! Reads the tokens of a configuration: keys, texts, numbers, and comments.
//!
//! Some rules of nats-server's grammar are surprising. A text without quotes ends at whitespace, at `'`, and
//! at any of `, ; ] }`. A token that begins with a digit and is not a number with a unit is a text (`5e7bcd`,
//! `1h30m`, `127.0.0.1`). A negative number or a fraction must not continue with other characters. The corpus
//! in `interop/config` checks both servers against these rules.

use std::sync::Arc;

use jiff::Timestamp;

use super::error::{ConfigError, Place};
use super::value::Value;

/// The reading position.
pub(super) struct Cursor<'a> {
    rest: &'a str,
    file: Arc<str>,
    line: u32,
    column: u32,
}

/// A scalar value, or the name of a variable.
pub(super) enum Scalar {
    Value(Value),
    Variable(String),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, file: Arc<str>) -> Self {
        Cursor {
            rest: text,
            file,
            line: 1,
            column: 1,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place {
            file: Arc::clone(&self.file),
            line: self.line,
            column: self.column,
        }
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> ConfigError {
        ConfigError::Syntax {
            place: self.place(),
            reason: reason.into(),
        }
    }

    /// Returns an error that contains the expected and the actual text.
    pub(super) fn expected(&self, what: &str) -> ConfigError {
        match self.peek() {
            None => self.error(format!("expected {what}, but the file ends here")),
            Some(c) if is_line_end(c) => {
                self.error(format!("expected {what}, but the line ends here"))
            }
            Some(c) => self.error(format!("expected {what}, but got '{}'", c.escape_debug())),
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        if c == '\n' {
            self.line = self.line.saturating_add(1);
            self.column = 1;
        } else {
            self.column = self.column.saturating_add(1);
        }
        Some(c)
    }

    /// Consumes a character if it is next.
    pub(super) fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.bump();
        }
        is_next
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let start = self.rest;
        while self.peek().is_some_and(&wanted) {
            self.bump();
        }
        &start[..start.len() - self.rest.len()]
    }

    /// Skips spaces and tabs.
    pub(super) fn skip_blanks(&mut self) {
        self.take_while(is_blank);
    }

    /// Skips whitespace, including ends of lines.
    pub(super) fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Skips a comment, if there is one.
    pub(super) fn skip_comment(&mut self) -> bool {
        let is_comment = self.starts_with("#") || self.starts_with("//");
        if is_comment {
            self.take_while(|c| !is_line_end(c));
        }
        is_comment
    }

    /// Reads a key. Returns also whether it was quoted.
    pub(super) fn key(&mut self) -> Result<(String, bool), ConfigError> {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.bump();
                let key = self.take_while(|c| c != quote).to_owned();
                if !self.take(quote) {
                    return Err(self.expected("the quote that ends a key"));
                }
                Ok((key, true))
            }
            Some(c @ (':' | '=')) => {
                Err(self.error(format!("expected a key before the separator '{c}'")))
            }
            Some('/') => Err(self.error("expected a key; a comment begins with //")),
            _ => {
                let key = self.take_while(|c| !c.is_whitespace() && c != ':' && c != '=');
                Ok((key.to_owned(), false))
            }
        }
    }

    /// Reads a value other than a list or block.
    pub(super) fn scalar(&mut self) -> Result<Scalar, ConfigError> {
        match self.peek() {
            Some('"') => self.quoted().map(Value::Text).map(Scalar::Value),
            Some('\'') => self.raw().map(Value::Text).map(Scalar::Value),
            Some('(') => self.block().map(Value::Text).map(Scalar::Value),
            Some('-') => self.negative().map(Scalar::Value),
            Some('.') => Err(self.error("a number must begin with a digit")),
            Some(c) if c.is_ascii_digit() => self.number().map(Scalar::Value),
            _ => self.bare(),
        }
    }

    /// Reads the name of an included file.
    pub(super) fn file_name(&mut self) -> Result<String, ConfigError> {
        self.skip_blanks();
        match self.peek() {
            Some('"') => self.quoted(),
            Some('\'') => self.raw(),
            None => Err(self.expected("the name of a file")),
            Some(c) if is_line_end(c) => Err(self.expected("the name of a file")),
            _ => Ok(self.take_while(|c| !is_end_of_value(c)).to_owned()),
        }
    }

    /// Reads a raw text: `'as it is'`.
    fn raw(&mut self) -> Result<String, ConfigError> {
        let opened = self.place();
        self.bump();
        let text = self.take_while(|c| c != '\'').to_owned();
        if self.take('\'') {
            return Ok(text);
        }
        Err(unclosed(opened, "this quote is never closed"))
    }

    /// Reads a text with escapes: `"with \t escapes"`.
    fn quoted(&mut self) -> Result<String, ConfigError> {
        let opened = self.place();
        self.bump();
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None => return Err(unclosed(opened, "this quote is never closed")),
                Some('"') => {
                    self.bump();
                    return utf8(bytes, opened);
                }
                Some('\\') => self.escape(&mut bytes)?,
                Some(_) => self.copy(&mut bytes),
            }
        }
    }

    /// Reads a text between `(` and a `)` at the beginning of its own line.
    fn block(&mut self) -> Result<String, ConfigError> {
        let opened = self.place();
        self.bump();
        let text = self.rest;
        loop {
            self.take_while(|c| c != '\n');
            if self.bump().is_none() {
                return Err(unclosed(
                    opened,
                    "this block of text is never closed: its end is a `)` alone on a line",
                ));
            }
            let after = self.rest.strip_prefix(')');
            if after.is_some_and(|after| after.is_empty() || after.starts_with('\n')) {
                let taken = text.len() - self.rest.len();
                self.bump();
                return Ok(text[..taken].to_owned());
            }
        }
    }

    /// Reads a text without quotes: a boolean, a variable, or a plain text.
    fn bare(&mut self) -> Result<Scalar, ConfigError> {
        let start = self.place();
        let mut bytes = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '\'' => {
                    self.bump();
                    break;
                }
                '\\' => self.escape(&mut bytes)?,
                c if is_end_of_value(c) => break,
                _ => self.copy(&mut bytes),
            }
        }
        let text = utf8(bytes, start)?;
        Ok(match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Scalar::Value(Value::Bool(true)),
            "false" | "no" | "off" => Scalar::Value(Value::Bool(false)),
            _ => match text.strip_prefix('$') {
                // `$2a$` begins a bcrypt hash, not a variable.
                Some(name) if !name.starts_with("2a$") => Scalar::Variable(name.to_owned()),
                _ => Scalar::Value(Value::Text(text)),
            },
        })
    }

    fn copy(&mut self, bytes: &mut Vec<u8>) {
        if let Some(c) = self.bump() {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), ConfigError> {
        let place = self.place();
        self.bump();
        let byte = match self.bump() {
            Some('t') => b'\t',
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('"') => b'"',
            Some('\\') => b'\\',
            Some('x') => {
                let digits = self.rest.get(..2).unwrap_or_default();
                // The conversion accepts a plus sign.
                let byte = match digits.starts_with('+') {
                    true => None,
                    false => u8::from_str_radix(digits, 16).ok(),
                };
                let Some(byte) = byte else {
                    return Err(self.expected("two hexadecimal digits after \\x"));
                };
                self.bump();
                self.bump();
                byte
            }
            _ => {
                return Err(ConfigError::Syntax {
                    place,
                    reason: "no such escape; there are \\t \\n \\r \\\" \\\\ and \\xHH".into(),
                });
            }
        };
        bytes.push(byte);
        Ok(())
    }

    /// Reads a token that begins with a digit: a number, a date, an address, or a text.
    fn number(&mut self) -> Result<Value, ConfigError> {
        let start = self.rest;
        let place = self.place();
        let digits = self.take_while(|c| c.is_ascii_digit());
        match self.peek() {
            Some('-') if digits.len() == 4 => return self.date(start, place),
            Some('-') => {
                return Err(self.error("a date must look like 2026-01-31T08:30:00Z"));
            }
            Some('.') => {
                self.fraction()?;
                if self.peek() != Some('.') {
                    return float(&start[..start.len() - self.rest.len()], place);
                }
                // A second point follows, so the token is an IP address.
            }
            _ => {
                let factor = self.unit();
                if self.is_at_end_of_value() {
                    return integer(digits, factor, place);
                }
            }
        }
        // Other characters follow, so the whole token is a text.
        self.take_while(|c| !is_end_of_value(c));
        Ok(Value::Text(start[..start.len() - self.rest.len()].into()))
    }

    fn negative(&mut self) -> Result<Value, ConfigError> {
        let start = self.rest;
        let place = self.place();
        self.bump();
        if self.take_while(|c| c.is_ascii_digit()).is_empty() {
            return Err(self.expected("a digit"));
        }
        if self.peek() == Some('.') {
            self.fraction()?;
            return float(&start[..start.len() - self.rest.len()], place);
        }
        let digits = &start[..start.len() - self.rest.len()];
        let factor = self.unit();
        integer(digits, factor, place)
    }

    /// Reads a point and the digits that must follow it.
    fn fraction(&mut self) -> Result<(), ConfigError> {
        self.bump();
        if self.take_while(|c| c.is_ascii_digit()).is_empty() {
            return Err(self.expected("a digit after the point"));
        }
        Ok(())
    }

    /// Reads a unit: `k` is 1000, `kb`, `ki`, and `kib` are 1024, and so on up to `e`.
    fn unit(&mut self) -> i64 {
        const UNITS: &str = "kmgtpe";
        let Some(c) = self.peek() else { return 1 };
        let Some(power) = UNITS.find(c.to_ascii_lowercase()) else {
            return 1;
        };
        self.bump();
        let is_i = self.take('i') || self.take('I');
        let is_b = self.take('b') || self.take('B');
        let base: i64 = if is_i || is_b { 1024 } else { 1000 };
        (0..=power).fold(1, |factor: i64, _| factor.saturating_mul(base))
    }

    fn date(&mut self, start: &str, place: Place) -> Result<Value, ConfigError> {
        self.take_while(|c| !is_end_of_value(c));
        let text = &start[..start.len() - self.rest.len()];
        let is_full = text.len() == "2026-01-31T08:30:00Z".len() && text.ends_with('Z');
        let date = text.parse().ok().filter(|_: &Timestamp| is_full);
        date.map(Value::Date).ok_or_else(|| ConfigError::Syntax {
            place,
            reason: format!("a date must look like 2026-01-31T08:30:00Z, not \"{text}\""),
        })
    }

    fn is_at_end_of_value(&self) -> bool {
        self.peek().is_none_or(is_end_of_value)
    }
}

/// Returns whether a character separates words.
fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// Returns whether a character ends a line.
pub(super) fn is_line_end(c: char) -> bool {
    c == '\n' || c == '\r'
}

/// Returns whether a character ends an unquoted value.
fn is_end_of_value(c: char) -> bool {
    is_blank(c) || is_line_end(c) || matches!(c, ',' | ';' | ']' | '}')
}

fn integer(digits: &str, factor: i64, place: Place) -> Result<Value, ConfigError> {
    let number: Option<i64> = digits.parse().ok();
    let number = number.and_then(|number| number.checked_mul(factor));
    number
        .map(Value::Integer)
        .ok_or_else(|| ConfigError::Syntax {
            place,
            reason: format!("integer '{digits}' is out of the range"),
        })
}

fn float(text: &str, place: Place) -> Result<Value, ConfigError> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.map(Value::Float).ok_or_else(|| ConfigError::Syntax {
        place,
        reason: format!("float '{text}' is out of the range"),
    })
}

fn utf8(bytes: Vec<u8>, place: Place) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|_| ConfigError::Syntax {
        place,
        reason: "the bytes of this text are not UTF-8".into(),
    })
}

fn unclosed(place: Place, reason: &str) -> ConfigError {
    ConfigError::Syntax {
        place,
        reason: reason.into(),
    }
}
