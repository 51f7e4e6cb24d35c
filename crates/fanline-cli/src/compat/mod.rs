//! The front end that stands in for nats-server: its flags, its words, its exit codes.

mod flags;
mod signal;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use fanline_server::{Auth, COMPATIBLE_VERSION, JetStreamOptions, Options, VERSION};

use flags::{Flag, Given};

use crate::log::{LogFormat, LogSettings};
use crate::serve::{self, Style};
use crate::values;

/// nats-server's name: started under it, the program speaks as nats-server does.
pub(crate) const NATS_SERVER: &str = "nats-server";
/// The port when none is given, or 0.
const PORT_DEFAULT: u16 = 4222;

/// What a command line asks for.
#[derive(Debug)]
enum Request {
    /// Print this and end well.
    Print(String),
    /// Send a signal to another process.
    Signal(String),
    Serve(Box<(Options, LogSettings, Vec<String>)>),
}

/// Why a command line is not obeyed.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// A flag that cannot be read: the help follows on stdout.
    Flag(String),
    /// Anything else: one line with the program's name.
    Other(String),
}

/// Runs with nats-server's command line.
pub(crate) fn run(program: &str, arguments: &[String]) -> ExitCode {
    match read(program, arguments) {
        Ok(Request::Print(text)) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Ok(Request::Signal(argument)) => match signal::send(program, &argument) {
            Ok(()) => ExitCode::SUCCESS,
            Err(text) => refuse(program, &text),
        },
        Ok(Request::Serve(request)) => {
            let (options, log, warnings) = *request;
            serve::run(options, &log, &warnings, Style::NatsServer)
        }
        Err(Refusal::Flag(text)) => {
            eprintln!("{text}");
            if program != NATS_SERVER {
                eprintln!(
                    "these are nats-server's flags; for {program}'s own: {program} serve --help"
                );
            }
            print(&usage::usage(program));
            // nats-server ends with 0 here, which lets a typing error pass for a success.
            ExitCode::FAILURE
        }
        Err(Refusal::Other(text)) => refuse(program, &text),
    }
}

/// The line that says which version this is.
pub(crate) fn version(program: &str) -> String {
    if program == NATS_SERVER {
        format!("{NATS_SERVER}: v{COMPATIBLE_VERSION}\n")
    } else {
        format!("{program}: v{VERSION} (compatible with {NATS_SERVER} v{COMPATIBLE_VERSION})\n")
    }
}

fn print(text: &str) {
    // Whoever closed stdout does not want it.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}

fn refuse(program: &str, text: &str) -> ExitCode {
    eprintln!("{program}: {text}");
    ExitCode::FAILURE
}

fn read(program: &str, arguments: &[String]) -> Result<Request, Refusal> {
    let (given, words) = flags::parse(arguments).map_err(Refusal::Flag)?;
    let is_on = |flag| {
        given
            .iter()
            .rfind(|given| given.flag == flag)
            .is_some_and(|given| given.value.is_on())
    };
    if is_on(Flag::Version) {
        return Ok(Request::Print(version(program)));
    }
    if is_on(Flag::Help) {
        return Ok(Request::Print(usage::usage(program)));
    }
    if let Some(word) = words.first() {
        return match word.to_lowercase().as_str() {
            "version" => Ok(Request::Print(version(program))),
            "help" => Ok(Request::Print(usage::usage(program))),
            _ => Err(Refusal::Other(format!("unrecognized command: \"{word}\""))),
        };
    }
    let signal = given.iter().rfind(|given| given.flag == Flag::Signal);
    if let Some(argument) = signal.and_then(|given| given.value.clone().text()) {
        return Ok(Request::Signal(argument));
    }
    refuse_unsupported(&given)?;
    let mut setup = Setup::default();
    for one in given {
        setup.apply(one)?;
    }
    let (options, log, warnings) = setup.finish()?;
    Ok(Request::Serve(Box::new((options, log, warnings))))
}

/// Refuses what would otherwise be silently missing.
fn refuse_unsupported(given: &[Given]) -> Result<(), Refusal> {
    let has_config = given.iter().any(|given| given.flag == Flag::Config);
    for Given { flag, name, value } in given {
        if *value == flags::Value::Switch(false) {
            continue;
        }
        let what = match flag {
            Flag::TestConfig if !has_config => {
                return Err(Refusal::Other(
                    "must specify [-c, --config] option to check configuration file syntax".into(),
                ));
            }
            Flag::Config | Flag::TestConfig => "a configuration file",
            Flag::Tls | Flag::HelpTls => "TLS",
            Flag::MonitorTlsPort => "monitoring over HTTPS",
            Flag::Cluster => "clustering",
            Flag::TracedPayloadMax => "a limit for traced payloads",
            Flag::Profile => "profiling over HTTP",
            _ => continue,
        };
        return Err(Refusal::Other(format!(
            "-{name}: {what} is not supported by Fanline yet; leave the flag out to start without"
        )));
    }
    Ok(())
}

/// What the flags add up to. A later flag overrides an earlier one.
struct Setup {
    options: Options,
    log: LogSettings,
    warnings: Vec<String>,
    /// The monitoring port, before the host is known.
    monitor: Option<u16>,
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
    jetstream: bool,
    store_dir: Option<PathBuf>,
}

impl Default for Setup {
    fn default() -> Self {
        // As nats-server: open to the network.
        let options = Options {
            program_name: NATS_SERVER.into(),
            host: "0.0.0.0".into(),
            port: PORT_DEFAULT,
            ..Options::default()
        };
        Setup {
            options,
            log: LogSettings::default(),
            warnings: Vec::new(),
            monitor: None,
            user: None,
            password: None,
            token: None,
            jetstream: false,
            store_dir: None,
        }
    }
}

impl Setup {
    fn apply(&mut self, Given { flag, name, value }: Given) -> Result<(), Refusal> {
        match flag {
            Flag::Host => self.options.host = value.text().unwrap_or_else(|| "0.0.0.0".into()),
            Flag::Port => {
                self.options.port = match port(name, value.number())? {
                    None => PORT_DEFAULT,
                    Some(port) => port,
                }
            }
            Flag::Name => self.options.server_name = value.text(),
            Flag::MonitorPort => self.monitor = port(name, value.number())?,
            Flag::PidFile => self.options.pid_file = value.text().map(Into::into),
            Flag::PortsFileDir => self.options.ports_file_dir = value.text().map(Into::into),
            Flag::ClientAdvertise => self.options.client_advertise = value.text(),
            Flag::PayloadMax => self.options.limits.payload_bytes_max = payload_bytes(value)?,
            Flag::LogFile => self.log.file = value.text().map(Into::into),
            Flag::LogTime => self.log.time = value.is_on(),
            Flag::LogTimeUtc => self.log.utc = value.is_on(),
            Flag::LogSizeLimit => {
                self.log.file_bytes_max = u64::try_from(value.number()).unwrap_or(0);
            }
            Flag::Syslog => self.log.syslog = value.is_on(),
            Flag::RemoteSyslog => self.log.remote_syslog = value.text(),
            Flag::LogFormat => self.log.format = log_format(value)?,
            Flag::Debug => self.log.debug = value.is_on(),
            Flag::Trace => self.log.trace = value.is_on(),
            Flag::DebugAndTrace => {
                self.log.debug = value.is_on();
                self.log.trace = value.is_on();
            }
            Flag::User => self.user = value.text(),
            Flag::Password => self.password = value.text(),
            Flag::Token => self.token = value.text(),
            Flag::JetStream => self.jetstream = value.is_on(),
            Flag::StoreDir => self.store_dir = value.text().map(Into::into),
            // Answered or refused before.
            Flag::Help | Flag::HelpTls | Flag::Version | Flag::Signal | Flag::Config => {}
            Flag::TestConfig | Flag::Tls | Flag::MonitorTlsPort | Flag::Cluster => {}
            Flag::TracedPayloadMax | Flag::Profile => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Options, LogSettings, Vec<String>), Refusal> {
        if self
            .options
            .server_name
            .as_ref()
            .is_some_and(|name| name.contains(' '))
        {
            return Err(Refusal::Other("server name cannot contain spaces".into()));
        }
        let host = self.options.host.clone();
        self.options.monitoring = self.monitor.map(|port| (host, port));
        self.options.trace_protocol = self.log.trace;
        if self.jetstream {
            let store_dir = self.store_dir.unwrap_or_else(|| {
                // Where nats-server keeps them, too.
                self.warnings.push(
                    "Temporary storage directory used, data could be lost on system reboot".into(),
                );
                std::env::temp_dir().join("nats")
            });
            self.options.jetstream = Some(JetStreamOptions {
                store_dir: Some(store_dir),
                ..JetStreamOptions::default()
            });
        }
        // A user wins over a token, as in nats-server.
        self.options.auth = match (self.user, self.password, self.token) {
            (None, None, None) => Auth::Open,
            (None, None, Some(token)) => Auth::Token(token),
            (name, password, _) => Auth::User {
                name: name.unwrap_or_default(),
                password: password.unwrap_or_default(),
            },
        };
        Ok((self.options, self.log, self.warnings))
    }
}

/// A size in bytes, with a unit or without, as in nats-server's configuration.
fn payload_bytes(value: flags::Value) -> Result<usize, Refusal> {
    let text = value.text().unwrap_or_default();
    values::bytes(&text).map_err(|expected| {
        Refusal::Flag(format!(
            "invalid value \"{text}\" for flag -max_payload: {expected}"
        ))
    })
}

fn log_format(value: flags::Value) -> Result<LogFormat, Refusal> {
    let text = value.text().unwrap_or_default();
    LogFormat::from_str(&text, true).map_err(|_| {
        Refusal::Flag(format!(
            "invalid value \"{text}\" for flag -log_format: expected text or json"
        ))
    })
}

/// `None` for 0, which is "not given"; -1 lets the system choose, which is 0 in [`Options`].
fn port(name: &str, number: i64) -> Result<Option<u16>, Refusal> {
    match number {
        0 => Ok(None),
        -1 => Ok(Some(0)),
        _ => u16::try_from(number).map(Some).map_err(|_| {
            Refusal::Other(format!(
                "-{name}: {number} is not a port: 1 to 65535, or -1 for any"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug + PartialEq>(line: &str, look: impl Fn(Request) -> T, expected: T) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let request = read(NATS_SERVER, &arguments).unwrap_or_else(|why| panic!("{line}: {why:?}"));
        assert_eq!(look(request), expected, "{line}");
    }

    fn options(request: Request) -> (Options, LogSettings, Vec<String>) {
        match request {
            Request::Serve(request) => *request,
            other => panic!("{other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match read(NATS_SERVER, &arguments) {
            Err(Refusal::Other(text) | Refusal::Flag(text)) => text,
            Ok(request) => panic!("{line}: {request:?}"),
        }
    }

    #[test]
    fn flags_become_options() {
        let place = |request| {
            let (options, ..) = options(request);
            (options.host, options.port, options.monitoring)
        };
        check("", place, ("0.0.0.0".into(), 4222, None));
        check("-p 0", place, ("0.0.0.0".into(), 4222, None));
        check(
            "-m 8222 -p -1 -a ::1",
            place,
            ("::1".into(), 0, Some(("::1".into(), 8222))),
        );
        check(
            "--net=h --http_port=-1",
            place,
            ("h".into(), 4222, Some(("h".into(), 0))),
        );
        let auth = |request| options(request).0.auth;
        check("--auth t", auth, Auth::Token("t".into()));
        let user = Auth::User {
            name: "a".into(),
            password: "b".into(),
        };
        check("--user a --pass b --auth c", auth, user);
        let log = |request| {
            let (options, log, _) = options(request);
            (options.trace_protocol, log.debug, log.trace, log.time)
        };
        check("-DV -T=false", log, (true, true, true, false));
        check("-DV -D=false", log, (true, false, true, true));
        check("-VV", log, (true, false, true, true));
        let payload = |request| options(request).0.limits.payload_bytes_max;
        for line in [
            "--max_payload 2048",
            "-max_payload=2048",
            "--max_payload=2k",
            "-max_payload 2KB",
        ] {
            check(line, payload, 2048);
        }
        let store_dir = |request| {
            let jetstream = options(request).0.jetstream;
            jetstream.and_then(|jetstream| jetstream.store_dir)
        };
        check("-js -sd x", store_dir, Some("x".into()));
        check("-js=false -sd x", store_dir, None);
        check("-js", |request| options(request).2.len(), 1);
    }

    #[test]
    fn words_and_questions_are_answered() {
        let printed = |request| match request {
            Request::Print(text) => text.lines().next().unwrap_or_default().to_owned(),
            other => format!("{other:?}"),
        };
        for line in [
            "-v",
            "--version",
            "-h -v",
            "version",
            "Version -zz",
            "-c none version",
        ] {
            check(line, printed, "nats-server: v2.15.2".into());
        }
        check("-sl ldm=12", printed, "Signal(\"ldm=12\")".into());
        assert_eq!(refused("foo version"), "unrecognized command: \"foo\"");
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for (line, expected) in [
            ("-c x.conf", "configuration file"),
            ("-t", "must specify [-c, --config]"),
            ("--tls", "TLS"),
            ("--tlscert f", "TLS"),
            ("-ms 8443", "HTTPS"),
            ("--cluster nats://h:1", "clustering"),
            ("--routes nats://h:1", "clustering"),
            ("--log_format=xml", "expected text or json"),
            ("--profile 1", "profiling"),
            ("--max_traced_msg_len 5", "traced"),
            ("-p 65536", "not a port"),
            ("-m -5", "not a port"),
            ("--max_payload=-1", "invalid value \"-1\""),
            ("--max_payload", "flag needs an argument"),
            ("-zz", "flag provided but not defined: -zz"),
        ] {
            assert!(
                refused(line).contains(expected),
                "{line}: {}",
                refused(line)
            );
        }
        check("--tls=false", |request| options(request).2.len(), 0);
    }
}
