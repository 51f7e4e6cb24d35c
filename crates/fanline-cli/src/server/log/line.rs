//! Formats of log lines: nats-server's text, and JSON.

use std::fmt::{self, Write as _};
use std::process;

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::LogSettings;
use crate::terminal::Colour;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `[pid] 2026/01/31 08:30:00.000000 [INF] text`, as in nats-server
    #[default]
    Text,
    /// One JSON object per line, with the event's fields
    Json,
}

/// Severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Fatal,
    Error,
    Warning,
    Info,
    Debug,
    Trace,
}

impl Tag {
    pub(super) fn of(level: Level) -> Tag {
        match level {
            Level::ERROR => Tag::Error,
            Level::WARN => Tag::Warning,
            Level::INFO => Tag::Info,
            Level::DEBUG => Tag::Debug,
            _ => Tag::Trace,
        }
    }

    fn text(self) -> (&'static str, Colour) {
        match self {
            Tag::Fatal => ("FTL", Colour::Red),
            Tag::Error => ("ERR", Colour::Red),
            Tag::Warning => ("WRN", Colour::Yellow),
            Tag::Info => ("INF", Colour::Green),
            Tag::Debug => ("DBG", Colour::Cyan),
            Tag::Trace => ("TRC", Colour::Dim),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Tag::Fatal => "fatal",
            Tag::Error => "error",
            Tag::Warning => "warn",
            Tag::Info => "info",
            Tag::Debug => "debug",
            Tag::Trace => "trace",
        }
    }
}

/// A log event: its message, and its fields.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

impl Entry {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut entry = Entry::default();
        event.record(&mut entry);
        entry
    }

    pub(super) fn text(text: &str) -> Self {
        Entry {
            message: text.to_owned(),
            fields: Map::new(),
        }
    }

    fn add(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message += value,
            _ => self.add(field, value.into()),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A writer of lines in one format.
pub(super) struct LineWriter {
    format: LogFormat,
    time: bool,
    time_zone: TimeZone,
    colourful: bool,
}

impl LineWriter {
    pub(super) fn new(settings: &LogSettings, colourful: bool) -> Self {
        LineWriter {
            format: settings.format,
            time: settings.time,
            time_zone: match settings.utc {
                true => TimeZone::UTC,
                false => TimeZone::system(),
            },
            colourful,
        }
    }

    /// Returns a whole line with its end.
    pub(super) fn line(&self, now: &Zoned, tag: Tag, entry: &Entry) -> String {
        match self.format {
            LogFormat::Text => self.text(now, tag, entry),
            LogFormat::Json => Self::json(now, tag, entry) + "\n",
        }
    }

    /// Returns the line for a destination that adds time, process, and severity itself, such as syslog.
    pub(super) fn bare(&self, now: &Zoned, tag: Tag, entry: &Entry) -> String {
        match self.format {
            LogFormat::Text => one_line(&entry.message),
            LogFormat::Json => Self::json(now, tag, entry),
        }
    }

    fn text(&self, now: &Zoned, tag: Tag, entry: &Entry) -> String {
        let mut line = format!("[{}] ", process::id());
        if self.time {
            let now = now.with_time_zone(self.time_zone.clone());
            // Writing to a string cannot fail.
            let _ = write!(line, "{} ", now.strftime("%Y/%m/%d %H:%M:%S%.6f"));
        }
        let (name, colour) = tag.text();
        let _ = write!(line, "[{}] ", colour.paint(name, self.colourful));
        line += &one_line(&entry.message);
        line.push('\n');
        line
    }

    /// Formats JSON. It always includes the time, in UTC, because programs read it.
    fn json(now: &Zoned, tag: Tag, entry: &Entry) -> String {
        let mut object = Map::new();
        object.insert("time".into(), now.timestamp().to_string().into());
        object.insert("level".into(), tag.word().into());
        object.insert("pid".into(), process::id().into());
        object.insert("message".into(), entry.message.trim_end().into());
        for (name, value) in &entry.fields {
            object.entry(name).or_insert_with(|| value.clone());
        }
        Value::Object(object).to_string()
    }
}

/// Formats an event on one line. A text from a client must neither look like a line of its own nor control
/// the terminal.
fn one_line(text: &str) -> String {
    let text = text.trim_end();
    if !text.contains(needs_escape) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' => line.push(' '),
            c if needs_escape(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// Returns whether a character is a Unicode line end, a mark that changes the order of characters, or a
/// control character other than the tab.
fn needs_escape(c: char) -> bool {
    c.is_control() && c != '\t' || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-01-31T08:30:00.000042[UTC]".parse().expect("a time")
    }

    fn writer(settings: LogSettings) -> LineWriter {
        LineWriter {
            time_zone: TimeZone::UTC,
            ..LineWriter::new(&settings, false)
        }
    }

    #[test]
    fn lines_have_nats_servers_format() {
        let pid = process::id();
        let plain = writer(LogSettings::default());
        for (tag, text, expected) in [
            (Tag::Info, "Server is ready", "[INF] Server is ready\n"),
            (Tag::Fatal, "no\n", "[FTL] no\n"),
            (Tag::Trace, "a\r\n[INF] forged", "[TRC] a  [INF] forged\n"),
            (Tag::Error, "\u{1b}[2Ja\tä", "[ERR] \\u{1b}[2Ja\tä\n"),
            (Tag::Error, "\u{9b}2J", "[ERR] \\u{9b}2J\n"),
            (Tag::Error, "a\u{202e}b\u{7f}", "[ERR] a\\u{202e}b\\u{7f}\n"),
        ] {
            let expected = format!("[{pid}] 2026/01/31 08:30:00.000042 {expected}");
            assert_eq!(plain.line(&now(), tag, &Entry::text(text)), expected);
        }
        let untimed = writer(LogSettings {
            time: false,
            ..Default::default()
        });
        assert_eq!(
            untimed.line(&now(), Tag::Warning, &Entry::text("x")),
            format!("[{pid}] [WRN] x\n")
        );
    }

    #[test]
    fn json_lines_are_objects() {
        let json = writer(LogSettings {
            format: LogFormat::Json,
            ..Default::default()
        });
        let mut entry = Entry::text("two\nlines \"quoted\"");
        entry.fields.insert("cid".into(), 7.into());
        entry.fields.insert("level".into(), "forged".into());
        let line = json.line(&now(), Tag::Warning, &entry);
        assert_eq!(line.matches('\n').count(), 1);
        let expected = serde_json::json!({
            "time": "2026-01-31T08:30:00.000042Z",
            "level": "warn",
            "pid": process::id(),
            "message": "two\nlines \"quoted\"",
            "cid": 7,
        });
        assert_eq!(
            serde_json::from_str::<Value>(&line).expect("JSON"),
            expected
        );
    }
}
