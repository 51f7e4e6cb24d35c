//! Typed values of options.

use std::path::PathBuf;
use std::time::Duration;

use fanline_engine::time::{DurationError, Nanos};

use super::error::{Fault, Place};
use super::table::Kind;
use super::value::{Entry, Map, Node, Value};
use crate::client::url::split_host_port;

/// A value, or the error in it.
pub(super) type Read<T> = Result<T, Fault>;

/// A key with its value, as an option's reader receives it.
pub(super) struct Given<'a> {
    /// The key, as written.
    pub(super) key: &'a str,
    /// The key's position.
    pub(super) place: &'a Place,
    pub(super) node: &'a Node,
    /// Whether the key defines a variable, so it need not be an option.
    pub(super) is_variable: bool,
}

impl<'a> Given<'a> {
    /// Returns an entry of a block.
    pub(super) fn of(written: &'a Entry) -> Self {
        Given {
            key: &written.key,
            place: &written.place,
            node: &written.node,
            is_variable: written.is_variable,
        }
    }

    /// Returns an error at the value's position.
    pub(super) fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault {
            place: Some(self.node.place.clone()),
            reason: reason.into(),
        }
    }

    fn expected(&self, what: &str) -> Fault {
        let kind = self.node.value.kind();
        self.fault(format!("{}: expected {what}, got {kind}", self.key))
    }

    /// Checks the kind of a value. For options without a reader.
    pub(super) fn is_of(&self, kind: Kind) -> Read<()> {
        match kind {
            Kind::Bool => self.boolean().map(drop),
            Kind::Integer | Kind::Port => self.integer().map(drop),
            Kind::Size => self.storage().map(drop),
            Kind::Duration => self.duration().map(drop),
            Kind::Text => self.text().map(drop),
            Kind::Block => self.map().map(drop),
            _ => Ok(()),
        }
    }

    pub(super) fn boolean(&self) -> Read<bool> {
        match self.node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(super) fn integer(&self) -> Read<i64> {
        match self.node.value {
            Value::Integer(value) => Ok(value),
            _ => Err(self.expected("a number")),
        }
    }

    pub(super) fn text(&self) -> Read<&'a str> {
        match &self.node.value {
            Value::Text(value) => Ok(value),
            Value::Integer(_) | Value::Float(_) => {
                Err(self.expected("text (put it in quotes if it is meant)"))
            }
            _ => Err(self.expected("text")),
        }
    }

    /// Reads a text; an empty one counts as missing.
    pub(super) fn some_text(&self) -> Read<Option<String>> {
        let text = self.text()?;
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    pub(super) fn path(&self) -> Read<Option<PathBuf>> {
        Ok(self.some_text()?.map(PathBuf::from))
    }

    /// Reads a text or a list of texts.
    pub(super) fn texts(&self) -> Read<Vec<String>> {
        match &self.node.value {
            Value::Text(text) => Ok(vec![text.clone()]),
            Value::List(_) => self
                .items()?
                .iter()
                .map(|item| item.text().map(str::to_owned))
                .collect(),
            _ => Err(self.expected("text or a list of texts")),
        }
    }

    /// Returns the values of a list, each with the list's key.
    pub(super) fn items(&self) -> Read<Vec<Given<'a>>> {
        match &self.node.value {
            Value::List(nodes) => Ok(nodes
                .iter()
                .map(|node| Given {
                    key: self.key,
                    place: &node.place,
                    node,
                    is_variable: false,
                })
                .collect()),
            _ => Err(self.expected("a list")),
        }
    }

    pub(super) fn map(&self) -> Read<&'a Map> {
        match &self.node.value {
            Value::Map(map) => Ok(map),
            _ => Err(self.expected("a block")),
        }
    }

    /// Returns the keys of a block with their values.
    pub(super) fn fields(&self) -> Read<Vec<Given<'a>>> {
        Ok(self.map()?.entries().iter().map(Given::of).collect())
    }

    /// Reads a non-negative number.
    pub(super) fn count<T: TryFrom<i64>>(&self) -> Read<T> {
        let number = self.integer()?;
        T::try_from(number).map_err(|_| {
            self.fault(format!(
                "{}: {number} is not in the range of this option",
                self.key
            ))
        })
    }

    /// Reads a port. Returns `None` for 0, which means the default, and 0 for -1, for which the system chooses.
    pub(super) fn port(&self) -> Read<Option<u16>> {
        let number = self.integer()?;
        port(number).ok_or_else(|| self.not_a_port(&number.to_string()))
    }

    fn not_a_port(&self, text: &str) -> Fault {
        let key = self.key;
        self.fault(format!(
            "{key}: {text} is not a port: 1 to 65535, or -1 for any"
        ))
    }

    /// Reads a number, or a text that ends in `%`. Returns `None` if the number is out of range.
    pub(super) fn percent(&self) -> Read<Option<u8>> {
        Ok(match &self.node.value {
            Value::Text(text) => text.trim_end_matches('%').parse().ok(),
            _ => u8::try_from(self.integer()?).ok(),
        })
    }

    /// Reads `host:port` or a port.
    pub(super) fn address(&self) -> Read<(Option<String>, Option<u16>)> {
        let text = match &self.node.value {
            Value::Integer(_) => return Ok((None, self.port()?)),
            Value::Text(text) => text,
            _ => return Err(self.expected("a port or host:port")),
        };
        let unreadable = || self.fault(format!("could not parse address string \"{text}\""));
        let (host, number) = match split_host_port(text) {
            Ok((host, Some(number))) if !host.contains(']') => (host, number),
            _ => return Err(unreadable()),
        };
        let number: i64 = number
            .parse()
            .map_err(|_| self.fault(format!("could not parse port \"{number}\"")))?;
        let port = port(number).ok_or_else(|| self.not_a_port(&number.to_string()))?;
        Ok(((!host.is_empty()).then(|| host.to_owned()), port))
    }

    /// Reads a listening address. `host` stays unchanged if the address contains none.
    pub(super) fn listen(&self, host: &mut String, port: &mut Option<u16>) -> Read<()> {
        let (name, number) = self.address()?;
        if let Some(name) = name {
            *host = name;
        }
        *port = number;
        Ok(())
    }

    /// Replaces a text, unless the new one is empty.
    pub(super) fn overwrite(&self, place: &mut String) -> Read<()> {
        if let Some(text) = self.some_text()? {
            *place = text;
        }
        Ok(())
    }

    /// Reads a duration as a text, or a number of seconds.
    pub(super) fn duration(&self) -> Read<Duration> {
        match &self.node.value {
            Value::Text(text) => {
                let parsed = go_duration(text);
                parsed.map_err(|why| self.fault(format!("error parsing {}: {why}", self.key)))
            }
            Value::Integer(seconds) => self.seconds(*seconds),
            _ => Err(self.expected("a duration such as \"10s\"")),
        }
    }

    /// Reads a duration that cannot be a bare number.
    pub(super) fn text_duration(&self) -> Read<Duration> {
        self.text().and_then(|_| self.duration())
    }

    /// Returns whether the duration is a bare number.
    pub(super) fn is_number(&self) -> bool {
        matches!(self.node.value, Value::Integer(_))
    }

    fn seconds(&self, seconds: i64) -> Read<Duration> {
        let seconds = u64::try_from(seconds);
        seconds
            .map(Duration::from_secs)
            .map_err(|_| self.fault(format!("{}: a duration must not be negative", self.key)))
    }

    /// Reads a size: a number with a unit, or a text that ends in K, M, G, or T. Returns `None` for -1.
    pub(super) fn storage(&self) -> Read<Option<u64>> {
        let wrong = || {
            self.fault(format!(
                "{}: sizes defined as strings must end in K, M, G, T",
                self.key
            ))
        };
        let number = match &self.node.value {
            Value::Integer(number) => *number,
            Value::Text(text) if text.is_empty() => return Ok(None),
            Value::Text(text) => {
                let (digits, unit) = text.split_at(text.len() - last_char_bytes(text));
                let shift = match unit.to_ascii_uppercase().as_str() {
                    "K" => 10,
                    "M" => 20,
                    "G" => 30,
                    "T" => 40,
                    _ => return Err(wrong()),
                };
                let number: i64 = digits.parse().map_err(|_| wrong())?;
                number.checked_mul(1 << shift).ok_or_else(wrong)?
            }
            _ => return Err(self.expected("a size")),
        };
        match number {
            -1 => Ok(None),
            _ => u64::try_from(number)
                .map(Some)
                .map_err(|_| self.fault(format!("{}: {number} is not a size", self.key))),
        }
    }
}

fn last_char_bytes(text: &str) -> usize {
    text.chars().next_back().map_or(0, char::len_utf8)
}

#[expect(clippy::option_option, reason = "not a port, no port, a port")]
fn port(number: i64) -> Option<Option<u16>> {
    match number {
        0 => Some(None),
        -1 => Some(Some(0)),
        _ => u16::try_from(number).ok().map(Some),
    }
}

/// Parses a non-negative duration in Go's notation. The error has the wording of Go's parser.
pub(super) fn go_duration(text: &str) -> Result<Duration, String> {
    let nanos: Nanos = text.parse().map_err(|e: DurationError| e.to_string())?;
    match u64::try_from(nanos.0) {
        Ok(nanos) => Ok(Duration::from_nanos(nanos)),
        Err(_) => Err(format!("\"{text}\": a duration must not be negative")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, millis) in [
            ("0", 0),
            ("1s", 1_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("1h30m", 5_400_000),
            ("+2m0s", 120_000),
            ("100ms", 100),
            ("1000us", 1),
            ("-0s", 0),
        ] {
            assert_eq!(
                go_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for (text, why) in [
            ("", "time: invalid duration \"\""),
            ("x", "time: invalid duration \"x\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("1s 2s", "time: unknown unit \"s \" in duration \"1s 2s\""),
            ("1.2.3s", "time: invalid duration \"1.2.3s\""),
            ("9999999999h", "time: invalid duration \"9999999999h\""),
            ("-1s", "\"-1s\": a duration must not be negative"),
        ] {
            assert_eq!(go_duration(text), Err(why.into()), "{text}");
        }
    }
}
