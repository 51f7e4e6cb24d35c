//! The server's log, in nats-server's line format: `[pid] 2026/01/31 08:30:00.000000 [INF] text`.
//!
//! Harnesses read these lines, so the format is fixed. Events come through `tracing`; one small
//! subscriber writes them, since filters, spans and layers would be a dozen dependencies for one
//! line format.

mod file;

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Zoned;
use jiff::tz::TimeZone;
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::terminal::{Colour, stderr_is_colourful};
use file::LogFile;

/// How the server logs.
#[derive(Clone, Debug)]
pub(crate) struct LogSettings {
    /// A file in place of stderr.
    pub(crate) file: Option<PathBuf>,
    /// Bytes after which the file is put aside; 0 is never.
    pub(crate) file_bytes_max: u64,
    /// Whether lines have a time.
    pub(crate) time: bool,
    /// Whether that time is UTC.
    pub(crate) utc: bool,
    /// Whether `[DBG]` lines are written.
    pub(crate) debug: bool,
    /// Whether `[TRC]` lines are written.
    pub(crate) trace: bool,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            file: None,
            file_bytes_max: 0,
            time: true,
            utc: false,
            debug: false,
            trace: false,
        }
    }
}

/// The log of this process.
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    settings: LogSettings,
    time_zone: TimeZone,
    colourful: bool,
    /// `None` is stderr.
    file: Option<Mutex<LogFile>>,
}

/// Starts logging, once per process.
pub(crate) fn install(settings: &LogSettings) -> io::Result<()> {
    let file = match &settings.file {
        Some(path) => Some(Mutex::new(LogFile::open(path, settings.file_bytes_max)?)),
        None => None,
    };
    let log = Log {
        time_zone: if settings.utc {
            TimeZone::UTC
        } else {
            TimeZone::system()
        },
        colourful: file.is_none() && stderr_is_colourful(),
        settings: settings.clone(),
        file,
    };
    // Both fail only the second time, when a log is there already.
    let _ = LOG.set(log);
    let _ = tracing::subscriber::set_global_default(Writer);
    Ok(())
}

/// Writes the line that says why the server stops or does not start.
pub(crate) fn fatal(text: &str) {
    match LOG.get() {
        Some(log) => log.write(Tag::Fatal, text),
        None => eprintln!("{text}"),
    }
}

/// Opens the file again, after it was moved away.
pub(crate) fn reopen() {
    let Some(log) = LOG.get() else { return };
    let Some(file) = &log.file else {
        tracing::info!("File log re-open ignored, not a file logger");
        return;
    };
    let outcome = file.lock().unwrap_or_else(PoisonError::into_inner).reopen();
    match outcome {
        Ok(()) => tracing::info!("File log re-opened"),
        // The old file is still written to.
        Err(error) => tracing::error!("Cannot re-open the log file: {error}"),
    }
}

#[derive(Clone, Copy)]
enum Tag {
    Fatal,
    Error,
    Warning,
    Info,
    Debug,
    Trace,
}

impl Tag {
    fn of(level: Level) -> Tag {
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
}

impl Log {
    fn write(&self, tag: Tag, text: &str) {
        let line = self.line(&Zoned::now(), tag, text);
        // A log that cannot be written has nowhere left to complain.
        match &self.file {
            None => {
                let _ = io::stderr().lock().write_all(line.as_bytes());
            }
            Some(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = file.write(line.as_bytes());
                if let Some(backup) = file.rotate_when_full() {
                    let text = format!("Rotated log, backup saved as \"{}\"", backup.display());
                    let _ = file.write(self.line(&Zoned::now(), Tag::Info, &text).as_bytes());
                }
            }
        }
    }

    fn line(&self, now: &Zoned, tag: Tag, text: &str) -> String {
        let mut line = format!("[{}] ", process::id());
        if self.settings.time {
            let now = now.with_time_zone(self.time_zone.clone());
            // Writing to a String does not fail.
            let _ = write!(line, "{} ", now.strftime("%Y/%m/%d %H:%M:%S%.6f"));
        }
        let (name, colour) = tag.text();
        let _ = write!(line, "[{}] ", colour.paint(name, self.colourful));
        // One event is one line: what a client sends cannot forge another.
        line.extend(
            text.trim_end()
                .chars()
                .map(|c| if c == '\n' || c == '\r' { ' ' } else { c }),
        );
        line.push('\n');
        line
    }
}

/// Where `tracing` hands its events.
struct Writer;

impl Subscriber for Writer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let Some(log) = LOG.get() else { return false };
        match *metadata.level() {
            // Each has its own switch: `-V` alone does not show `[DBG]` lines.
            Level::TRACE => log.settings.trace,
            Level::DEBUG => log.settings.debug,
            _ => true,
        }
    }

    fn event(&self, event: &Event<'_>) {
        let Some(log) = LOG.get() else { return };
        let mut text = Text::default();
        event.record(&mut text);
        log.write(
            Tag::of(*event.metadata().level()),
            &(text.message + &text.fields),
        );
    }

    // Spans say nothing in this format.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The message of an event, and its other fields as ` name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(settings: LogSettings) -> Log {
        Log {
            settings,
            time_zone: TimeZone::UTC,
            colourful: false,
            file: None,
        }
    }

    #[test]
    fn lines_have_nats_servers_format() {
        let now: Zoned = "2026-01-31T08:30:00.000042[UTC]".parse().expect("a time");
        let pid = process::id();
        let plain = log(LogSettings::default());
        for (tag, text, expected) in [
            (Tag::Info, "Server is ready", "[INF] Server is ready\n"),
            (Tag::Fatal, "no\n", "[FTL] no\n"),
            (Tag::Trace, "a\r\n[INF] forged", "[TRC] a  [INF] forged\n"),
        ] {
            let expected = format!("[{pid}] 2026/01/31 08:30:00.000042 {expected}");
            assert_eq!(plain.line(&now, tag, text), expected);
        }
        let untimed = log(LogSettings {
            time: false,
            ..Default::default()
        });
        assert_eq!(
            untimed.line(&now, Tag::Warning, "x"),
            format!("[{pid}] [WRN] x\n")
        );
    }
}
