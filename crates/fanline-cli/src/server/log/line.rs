//! The forms of a line: nats-server's text, and JSON.

use std::fmt::{self, Write as _};
use std::process;

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::LogSettings;
use crate::terminal::Colour;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `[pid] 2026/01/31 08:30:00.000000 [INF] text`, as nats-server does
    #[default]
    Text,
    /// An object on each line, with what is told as fields
    Json,
}

/// How much a line matters.
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

/// What is told: words for people, and the same taken apart for programs.
#[derive(Default)]
pub(super) struct Told {
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

impl Told {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut told = Told::default();
        event.record(&mut told);
        told
    }

    pub(super) fn words(text: &str) -> Self {
        Told {
            message: text.to_owned(),
            fields: Map::new(),
        }
    }

    fn add(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Told {
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

/// Writes lines of one form.
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

    /// A whole line with its end.
    pub(super) fn line(&self, now: &Zoned, tag: Tag, told: &Told) -> String {
        match self.format {
            LogFormat::Text => self.text(now, tag, told),
            LogFormat::Json => Self::json(now, tag, told) + "\n",
        }
    }

    /// The line for a log that notes time, process and importance by itself.
    pub(super) fn bare(&self, now: &Zoned, tag: Tag, told: &Told) -> String {
        match self.format {
            LogFormat::Text => one_line(&told.message),
            LogFormat::Json => Self::json(now, tag, told),
        }
    }

    fn text(&self, now: &Zoned, tag: Tag, told: &Told) -> String {
        let mut line = format!("[{}] ", process::id());
        if self.time {
            let now = now.with_time_zone(self.time_zone.clone());
            // Writing to a String does not fail.
            let _ = write!(line, "{} ", now.strftime("%Y/%m/%d %H:%M:%S%.6f"));
        }
        let (name, colour) = tag.text();
        let _ = write!(line, "[{}] ", colour.paint(name, self.colourful));
        line += &one_line(&told.message);
        line.push('\n');
        line
    }

    /// Time is always there, and UTC: programs do not care for the time zone of a machine.
    fn json(now: &Zoned, tag: Tag, told: &Told) -> String {
        let mut object = Map::new();
        object.insert("time".into(), now.timestamp().to_string().into());
        object.insert("level".into(), tag.word().into());
        object.insert("pid".into(), process::id().into());
        object.insert("message".into(), told.message.trim_end().into());
        for (name, value) in &told.fields {
            object.entry(name).or_insert_with(|| value.clone());
        }
        Value::Object(object).to_string()
    }
}

/// One event is one line: a client can neither forge another line nor send commands to the terminal that shows it.
fn one_line(text: &str) -> String {
    let text = text.trim_end();
    if !text.contains(commands_terminal) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' => line.push(' '),
            c if commands_terminal(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// Control characters except the tab, Unicode line ends, and marks that change the order of characters.
fn commands_terminal(c: char) -> bool {
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
            assert_eq!(plain.line(&now(), tag, &Told::words(text)), expected);
        }
        let untimed = writer(LogSettings {
            time: false,
            ..Default::default()
        });
        assert_eq!(
            untimed.line(&now(), Tag::Warning, &Told::words("x")),
            format!("[{pid}] [WRN] x\n")
        );
    }

    #[test]
    fn json_lines_are_objects() {
        let json = writer(LogSettings {
            format: LogFormat::Json,
            ..Default::default()
        });
        let mut told = Told::words("two\nlines \"quoted\"");
        told.fields.insert("cid".into(), 7.into());
        told.fields.insert("level".into(), "forged".into());
        let line = json.line(&now(), Tag::Warning, &told);
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
