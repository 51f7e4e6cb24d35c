//! The server's log: nats-server's lines or JSON, to stderr, a file, or syslog.
//!
//! Test harnesses parse the lines, so the format must not change. One small `tracing` subscriber writes the
//! events. A library with filters, spans, and layers would add a dozen dependencies for two line formats.

mod file;
mod line;
mod repeats;
mod syslog;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use fanline_server::config::LogOptions;
use fanline_server::os_error_text;
use jiff::Zoned;
use tracing::callsite::Identifier;
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::terminal::is_colourful;
use file::LogFile;
pub(crate) use line::LogFormat;
use line::{Entry, LineWriter, Tag};
use repeats::Repeats;
use syslog::Syslog;

/// Settings of the log. The destination is the first of these that is set: file, remote syslog, local syslog.
/// Otherwise it is stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// File to log to.
    pub(crate) file: Option<PathBuf>,
    /// Size in bytes at which the file is rotated; 0 means never.
    pub(crate) file_bytes_max: u64,
    /// Largest number of log files, including the current one; 0 means no limit.
    pub(crate) files_max: usize,
    /// Address of a remote syslog: `udp://host:514`, `tcp://host:514`, or `unix:///path`.
    pub(crate) remote_syslog: Option<String>,
    /// Whether to log to the local syslog.
    pub(crate) syslog: bool,
    /// Text or JSON.
    pub(crate) format: LogFormat,
    /// Whether text lines have a time.
    pub(crate) time: bool,
    /// Whether the time in text lines is UTC.
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
            files_max: 0,
            remote_syslog: None,
            syslog: false,
            format: LogFormat::default(),
            time: true,
            utc: false,
            debug: false,
            trace: false,
        }
    }
}

impl From<&LogOptions> for LogSettings {
    fn from(options: &LogOptions) -> Self {
        LogSettings {
            file: options.file.clone(),
            file_bytes_max: options.file_bytes_max,
            files_max: options.files_max,
            remote_syslog: options.remote_syslog.clone(),
            syslog: options.syslog,
            format: if options.json {
                LogFormat::Json
            } else {
                LogFormat::Text
            },
            time: options.time,
            utc: options.utc,
            debug: options.debug,
            trace: options.trace,
        }
    }
}

/// The log of this process.
static LOG: RwLock<Option<Arc<Log>>> = RwLock::new(None);

struct Log {
    settings: LogSettings,
    lines: LineWriter,
    state: Mutex<State>,
    started: Instant,
}

struct State {
    sink: Sink,
    repeats: Repeats<Identifier>,
}

enum Sink {
    Stderr,
    File(LogFile),
    Syslog(Syslog),
}

/// Starts logging, or applies new settings. On an error the old settings stay in effect.
///
/// # Errors
///
/// Fails if a destination cannot be opened. The error is a message for the operator.
pub(crate) fn install(settings: &LogSettings) -> Result<(), String> {
    let known = current();
    if known.as_ref().is_some_and(|log| log.settings == *settings) {
        return Ok(());
    }
    let sink = Sink::open(settings)?;
    let colourful = matches!(sink, Sink::Stderr) && is_colourful(&io::stderr());
    let log = Log {
        settings: settings.clone(),
        lines: LineWriter::new(settings, colourful),
        state: Mutex::new(State {
            sink,
            repeats: Repeats::new(),
        }),
        started: Instant::now(),
    };
    *LOG.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(log));
    match known {
        // Never fails, because this is the first subscriber.
        None => drop(tracing::subscriber::set_global_default(Writer)),
        Some(_) => tracing::callsite::rebuild_interest_cache(),
    }
    Ok(())
}

/// Logs the reason why the server stops or does not start.
pub(crate) fn fatal(text: &str) {
    match current() {
        Some(log) => log.write(&mut log.state(), Tag::Fatal, &Entry::text(text)),
        None => eprintln!("{text}"),
    }
}

/// Like [`fatal`], for a panicking thread: never waits for a lock.
pub(crate) fn fatal_without_wait(text: &str) {
    let log = LOG.try_read().ok().and_then(|log| log.clone());
    if let Some(log) = log
        && let Ok(mut state) = log.state.try_lock()
    {
        log.write(&mut state, Tag::Fatal, &Entry::text(text));
    }
}

/// Opens the file again, after it was moved away.
pub(crate) fn reopen() {
    let Some(log) = current() else { return };
    let outcome = match &mut log.state().sink {
        Sink::File(file) => Some(file.reopen()),
        Sink::Stderr | Sink::Syslog(_) => None,
    };
    match outcome {
        None => tracing::info!("File log re-open ignored, not a file logger"),
        Some(Ok(())) => tracing::info!("File log re-opened"),
        // The old file stays in use.
        Some(Err(error)) => tracing::error!("Cannot re-open the log file: {error}"),
    }
}

fn current() -> Option<Arc<Log>> {
    LOG.read().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Sink {
    fn open(settings: &LogSettings) -> Result<Self, String> {
        if let Some(path) = &settings.file {
            return LogFile::open(path, settings.file_bytes_max, settings.files_max)
                .map(Sink::File)
                .map_err(|error| {
                    format!(
                        "error opening file: open {}: {}",
                        path.display(),
                        os_error_text(&error)
                    )
                });
        }
        let syslog = match &settings.remote_syslog {
            Some(address) => Syslog::remote(address),
            None if settings.syslog => Syslog::local(),
            None => return Ok(Sink::Stderr),
        };
        syslog
            .map(Sink::Syslog)
            .map_err(|error| format!("error connecting to syslog: {}", os_error_text(&error)))
    }
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, event: &Event<'_>) {
        let tag = Tag::of(*event.metadata().level());
        let entry = Entry::of(event);
        let now = self.started.elapsed();
        let mut state = self.state();
        for withheld in state.repeats.due(now) {
            let text = format!("{} more like this: {}", withheld.count, withheld.example);
            self.write(&mut state, withheld.tag, &Entry::text(&text));
        }
        let callsite = event.metadata().callsite();
        let is_written = !matches!(tag, Tag::Warning | Tag::Error)
            || state.repeats.admits(callsite, tag, &entry.message, now);
        if is_written {
            self.write(&mut state, tag, &entry);
        }
    }

    fn write(&self, state: &mut State, tag: Tag, entry: &Entry) {
        let now = Zoned::now();
        // Errors are ignored, because an error of the log cannot be logged.
        match &mut state.sink {
            Sink::Stderr => {
                let line = self.lines.line(&now, tag, entry);
                let _ = io::stderr().lock().write_all(line.as_bytes());
            }
            Sink::File(file) => {
                let line = |tag, entry| self.lines.line(&now, tag, entry);
                let _ = file.write(line(tag, entry).as_bytes());
                if let Some(backup) = file.rotate_when_full() {
                    let text = format!("Rotated log, backup saved as \"{}\"", backup.display());
                    let _ = file.write(line(Tag::Info, &Entry::text(&text)).as_bytes());
                }
            }
            Sink::Syslog(syslog) => {
                let text = self.lines.bare(&now, tag, entry);
                syslog.write(&now, tag, &text);
            }
        }
    }
}

/// The subscriber of `tracing` events.
struct Writer;

impl Subscriber for Writer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let Some(log) = current() else { return false };
        match *metadata.level() {
            // Each level has its own switch: `-V` alone does not show `[DBG]` lines.
            Level::TRACE => log.settings.trace,
            Level::DEBUG => log.settings.debug,
            _ => true,
        }
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(log) = current() {
            log.event(event);
        }
    }

    // Spans are not part of this format.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
