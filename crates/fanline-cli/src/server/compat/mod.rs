//! The front end that replaces nats-server: its flags, messages, and exit codes.

mod cluster;
mod flags;
mod signal;
mod usage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fanline_server::config::{self, Loaded};
use fanline_server::{COMPATIBLE_VERSION, Limits, Options, VERSION};

use cluster::ClusterFlags;
use flags::{Flag, Given};

use crate::server::serve::{self, Job, Reread, Style};
use crate::server::tls::TlsFlags;
use crate::values;

/// The name of nats-server. If the program is started under this name, it behaves like nats-server.
pub(crate) const NATS_SERVER: &str = "nats-server";
/// Port for clients if there is no flag `-p`, or if its value is 0.
const PORT_DEFAULT: u16 = 4222;

/// The request of a command line.
#[derive(Debug)]
enum Request {
    /// Print this text and exit successfully.
    Print(String),
    /// Send a signal to another process.
    Signal(String),
    /// Check a configuration file.
    Test(PathBuf),
    Serve(CommandLine),
}

/// A command line that starts a server.
#[derive(Clone, Debug)]
struct CommandLine {
    config: Option<PathBuf>,
    given: Vec<Given>,
}

/// The reason why a command line is refused.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// A flag is invalid. The help follows on stdout.
    Flag(String),
    /// Another reason. The message is one line with the program's name.
    Other(String),
}

impl Refusal {
    fn text(self) -> String {
        match self {
            Refusal::Flag(text) | Refusal::Other(text) => text,
        }
    }
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
        Ok(Request::Test(path)) => test(program, &path),
        Ok(Request::Serve(line)) => match line.assemble() {
            Ok((loaded, warnings)) => serve::run(Job {
                loaded,
                warnings,
                style: Style::NatsServer,
                reread: line.config.is_some().then(|| reread(line)),
            }),
            Err(refusal) => refuse_line(program, &refusal),
        },
        Err(refusal) => refuse_line(program, &refusal),
    }
}

fn refuse_line(program: &str, refusal: &Refusal) -> ExitCode {
    match refusal {
        Refusal::Flag(text) => {
            eprintln!("{text}");
            if program != NATS_SERVER {
                eprintln!(
                    "these are nats-server's flags; for those of {program}, see {program} serve --help"
                );
            }
            print(&usage::usage(program));
            // nats-server exits with 0 here, but then a typing error would look like success.
            ExitCode::FAILURE
        }
        Refusal::Other(text) => refuse(program, text),
    }
}

/// Implements `-t`: checks whether a server accepts the file. As in nats-server, deprecated options are
/// errors.
fn test(program: &str, path: &Path) -> ExitCode {
    let loaded = match config::load_over(path, defaults(), &config::Machine) {
        Ok(loaded) => loaded,
        Err(error) => return refuse(program, &error.to_string()),
    };
    if let Err(error) = loaded.check_files() {
        return refuse(program, &error.to_string());
    }
    if !loaded.deprecated.is_empty() {
        let lines: Vec<String> = loaded.deprecated.iter().map(ToString::to_string).collect();
        return refuse(program, &lines.join("\n"));
    }
    for warning in &loaded.unsupported {
        eprintln!("{program}: warning: {warning}");
    }
    let digest = loaded.options.origin.map_or_else(String::new, |o| o.digest);
    let path = path.display();
    eprintln!("{program}: configuration file {path} is valid ({digest})");
    ExitCode::SUCCESS
}

/// Returns the effective configuration of a file, for `fanline config show`.
pub(crate) fn effective(path: &Path) -> Result<Loaded, String> {
    let line = CommandLine {
        config: Some(path.to_owned()),
        given: Vec::new(),
    };
    let assembled = line.assemble();
    assembled.map(|(loaded, _)| loaded).map_err(Refusal::text)
}

fn reread(line: CommandLine) -> Reread {
    Box::new(move || {
        let (loaded, _) = line.assemble().map_err(Refusal::text)?;
        Ok(loaded)
    })
}

/// Returns the line with the program's version.
pub(crate) fn version(program: &str) -> String {
    if program == NATS_SERVER {
        format!("{NATS_SERVER}: v{COMPATIBLE_VERSION}\n")
    } else {
        format!("{program}: v{VERSION} (compatible with {NATS_SERVER} v{COMPATIBLE_VERSION})\n")
    }
}

fn print(text: &str) {
    // Ignore a closed stdout.
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
    if is_on(Flag::HelpTls) {
        return Ok(Request::Print(usage::tls_usage(program)));
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
    let config = given.iter().rfind(|given| given.flag == Flag::Config);
    let config = config.and_then(|given| given.value.clone().text());
    let config = config.map(PathBuf::from);
    if is_on(Flag::TestConfig) {
        let nothing = "must specify [-c, --config] option to check configuration file syntax";
        return config
            .map(Request::Test)
            .ok_or_else(|| Refusal::Other(nothing.into()));
    }
    Ok(Request::Serve(CommandLine { config, given }))
}

impl CommandLine {
    /// Merges file and flags. Flags take precedence. Also returns warnings about flags.
    fn assemble(&self) -> Result<(Loaded, Vec<String>), Refusal> {
        let defaults = defaults();
        let loaded = match &self.config {
            Some(path) => config::load_over(path, defaults, &config::Machine)
                .map_err(|error| Refusal::Other(error.to_string()))?,
            None => defaults,
        };
        let mut setup = Setup::new(loaded);
        for one in &self.given {
            setup.apply(one.clone())?;
        }
        setup.finish()
    }
}

/// Returns the defaults: as in nats-server, the server is reachable from the network.
fn defaults() -> Loaded {
    let mut loaded = Loaded::default();
    loaded.options = Options {
        program_name: NATS_SERVER.into(),
        host: "0.0.0.0".into(),
        port: PORT_DEFAULT,
        ..Options::default()
    };
    loaded
}

/// The configuration while flags are applied to it. A later flag overrides an earlier one.
struct Setup {
    loaded: Loaded,
    warnings: Vec<String>,
    /// Monitoring port over HTTP, before the host is known.
    monitor: Option<u16>,
    /// Monitoring port over HTTPS. At most one of the two ports is set.
    monitor_tls: Option<u16>,
    tls: TlsFlags,
    cluster: ClusterFlags,
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
    jetstream: Option<bool>,
}

impl Setup {
    fn new(loaded: Loaded) -> Self {
        Setup {
            loaded,
            warnings: Vec::new(),
            monitor: None,
            monitor_tls: None,
            tls: TlsFlags::default(),
            cluster: ClusterFlags::default(),
            user: None,
            password: None,
            token: None,
            jetstream: None,
        }
    }

    fn apply(&mut self, Given { flag, name, value }: Given) -> Result<(), Refusal> {
        let Loaded { options, log, .. } = &mut self.loaded;
        match flag {
            Flag::Host => {
                let host = value.text().unwrap_or_else(|| "0.0.0.0".into());
                self.loaded.set_host(host);
            }
            Flag::Port => {
                options.port = match port(name, value.number())? {
                    None => PORT_DEFAULT,
                    Some(port) => port,
                }
            }
            Flag::Name => options.server_name = value.text(),
            Flag::ClusterName => options.cluster_name = value.text(),
            Flag::ClusterListen => self.cluster.listen = value.text(),
            Flag::ClusterAdvertise => self.cluster.advertise = value.text(),
            Flag::NoAdvertise => self.cluster.no_advertise = Some(value.is_on()),
            Flag::ConnectRetries => {
                self.cluster.connect_retries = Some(u32::try_from(value.number()).unwrap_or(0));
            }
            Flag::Routes => self.cluster.routes = value.text(),
            Flag::MonitorPort => self.monitor = port(name, value.number())?,
            Flag::MonitorTlsPort => self.monitor_tls = port(name, value.number())?,
            Flag::PidFile => options.pid_file = value.text().map(Into::into),
            Flag::PortsFileDir => options.ports_file_dir = value.text().map(Into::into),
            Flag::ClientAdvertise => options.client_advertise = value.text(),
            Flag::PayloadMax => options.limits.payload_bytes_max = payload_bytes(value)?,
            Flag::LogFile => log.file = value.text().map(Into::into),
            Flag::LogTime => log.time = value.is_on(),
            Flag::LogTimeUtc => log.utc = value.is_on(),
            Flag::LogSizeLimit => {
                log.file_bytes_max = u64::try_from(value.number()).unwrap_or(0);
            }
            Flag::TracedPayloadMax => {
                let most = usize::try_from(value.number()).ok();
                options.limits.traced_bytes_max = most.filter(|most| *most > 0);
            }
            Flag::Syslog => log.syslog = value.is_on(),
            Flag::RemoteSyslog => log.remote_syslog = value.text(),
            Flag::LogFormat => log.json = is_json(value)?,
            Flag::Debug => log.debug = value.is_on(),
            Flag::Trace => log.trace = value.is_on(),
            Flag::DebugAndTrace => {
                log.debug = value.is_on();
                log.trace = value.is_on();
            }
            Flag::User => self.user = value.text(),
            Flag::Password => self.password = value.text(),
            Flag::Token => self.token = value.text(),
            Flag::JetStream => self.jetstream = Some(value.is_on()),
            Flag::StoreDir => self.loaded.jetstream.store_dir = value.text().map(Into::into),
            Flag::Tls => self.tls.is_on = Some(value.is_on()),
            Flag::TlsVerify => self.tls.verifies = Some(value.is_on()),
            Flag::TlsCertificate => self.tls.cert_file = value.text().map(Into::into),
            Flag::TlsKey => self.tls.key_file = value.text().map(Into::into),
            Flag::TlsAuthorities => self.tls.ca_file = value.text().map(Into::into),
            Flag::Profile if value == flags::Value::Number(0) => {}
            Flag::Profile => self.warnings.push(format!(
                "-{name}: without effect: Fanline does not serve Go profiles"
            )),
            // These flags were handled before.
            Flag::Help | Flag::HelpTls | Flag::Version | Flag::Signal | Flag::Config => {}
            Flag::TestConfig => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Loaded, Vec<String>), Refusal> {
        let loaded = &mut self.loaded;
        let options = &mut loaded.options;
        if options
            .server_name
            .as_ref()
            .is_some_and(|n| n.contains(' '))
        {
            return Err(Refusal::Other("server name cannot contain spaces".into()));
        }
        let cluster = options.cluster_name.as_ref();
        if cluster.is_some_and(|name| name.contains(' ')) {
            return Err(Refusal::Other("cluster name cannot contain spaces".into()));
        }
        self.cluster.apply(&mut options.cluster)?;
        let missing = |why: &str| Refusal::Other(why.into());
        let had_tls = options.tls.is_some();
        self.tls.apply(&mut options.tls).map_err(missing)?;
        let auth_timeout = &mut options.limits.auth_timeout;
        if let Some(tls) = options.tls.as_ref().filter(|_| !had_tls)
            && *auth_timeout == Limits::default().auth_timeout
        {
            *auth_timeout = tls.auth_timeout();
        }
        apply_monitor(options, self.monitor, self.monitor_tls)?;
        options.trace_protocol = loaded.log.trace;
        if self
            .jetstream
            .unwrap_or_else(|| options.jetstream.is_some())
        {
            if loaded.jetstream.store_dir.is_none() {
                // nats-server uses this folder if none is configured.
                self.warnings.push(
                    "Temporary storage directory used, data could be lost on system reboot".into(),
                );
                loaded.jetstream.store_dir = Some(std::env::temp_dir().join("nats"));
            }
            options.jetstream = Some(loaded.jetstream.clone());
        } else {
            options.jetstream = None;
        }
        // A user takes precedence over a token, as in nats-server, and both over the file.
        let done = match (self.user, self.password, self.token) {
            (None, None, None) => Ok(()),
            (None, None, Some(token)) => loaded.set_token(token),
            (name, password, _) => {
                loaded.set_user(name.unwrap_or_default(), password.unwrap_or_default())
            }
        };
        done.map_err(Refusal::Other)?;
        Ok((self.loaded, self.warnings))
    }
}

/// Replaces the file's monitoring port by that of a flag.
fn apply_monitor(
    options: &mut Options,
    http: Option<u16>,
    https: Option<u16>,
) -> Result<(), Refusal> {
    // If there is a flag for only one of the two ports, the file's setting of the other port stays. So a flag
    // for HTTP conflicts with HTTPS in the file, and does not replace it.
    let of_file = options.monitoring.as_ref().map(|(_, port)| *port);
    let (of_http, of_https) = match options.monitoring_tls {
        true => (None, of_file),
        false => (of_file, None),
    };
    let port = match (http, https) {
        (None, None) => return Ok(()),
        (http, https) => (http.or(of_http), https.or(of_https)),
    };
    let port = match port {
        (None, None) => return Ok(()),
        (Some(http), Some(https)) => {
            return Err(Refusal::Other(format!(
                "can't specify both HTTP ({http}) and HTTPs ({https}) ports"
            )));
        }
        (Some(port), None) | (None, Some(port)) => port,
    };
    options.monitoring_tls = https.is_some();
    let known = options.monitoring.take().map(|(host, _)| host);
    let host = known.unwrap_or_else(|| options.host.clone());
    options.monitoring = Some((host, port));
    Ok(())
}

/// Parses a size in bytes with an optional unit, as in nats-server's configuration.
fn payload_bytes(value: flags::Value) -> Result<usize, Refusal> {
    let text = value.text().unwrap_or_default();
    values::bytes(&text).map_err(|expected| {
        Refusal::Flag(format!(
            "invalid value \"{text}\" for flag -max_payload: {expected}"
        ))
    })
}

/// Returns whether the log is JSON.
fn is_json(value: flags::Value) -> Result<bool, Refusal> {
    match value.text().unwrap_or_default().as_str() {
        "text" => Ok(false),
        "json" => Ok(true),
        other => Err(Refusal::Flag(format!(
            "invalid value \"{other}\" for flag -log_format: expected text or json"
        ))),
    }
}

/// Converts a flag to a port. Returns `None` for 0, which means "not given". Returns 0 for -1, so that the
/// system chooses.
fn port(name: &str, number: i64) -> Result<Option<u16>, Refusal> {
    match number {
        0 => Ok(None),
        -1 => Ok(Some(0)),
        _ => u16::try_from(number).map(Some).map_err(|_| {
            Refusal::Other(format!(
                "-{name}: port must be between 1 and 65535, or -1 for any, got {number}"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use fanline_server::config::LogOptions;

    use super::*;
    use fanline_server::{Auth, auth::Access};

    fn check<T: std::fmt::Debug + PartialEq>(line: &str, look: impl Fn(Request) -> T, expected: T) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let request = read(NATS_SERVER, &arguments).unwrap_or_else(|why| panic!("{line}: {why:?}"));
        assert_eq!(look(request), expected, "{line}");
    }

    fn options(request: Request) -> (Options, LogOptions, Vec<String>) {
        match request {
            Request::Serve(line) => match line.assemble() {
                Ok((loaded, warnings)) => (loaded.options, loaded.log, warnings),
                Err(why) => panic!("{line:?}: {why:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let assembled = read(NATS_SERVER, &arguments).and_then(|request| match request {
            Request::Serve(line) => line.assemble(),
            other => panic!("{line}: {other:?}"),
        });
        match assembled {
            Err(Refusal::Other(text) | Refusal::Flag(text)) => text,
            Ok((loaded, _)) => panic!("{line}: {loaded:?}"),
        }
    }

    #[test]
    fn flags_become_options() {
        let addresses = |request| {
            let (options, ..) = options(request);
            (options.host, options.port, options.monitoring)
        };
        check("", addresses, ("0.0.0.0".into(), 4222, None));
        check("-p 0", addresses, ("0.0.0.0".into(), 4222, None));
        check(
            "-m 8222 -p -1 -a ::1",
            addresses,
            ("::1".into(), 0, Some(("::1".into(), 8222))),
        );
        check(
            "--net=h --http_port=-1",
            addresses,
            ("h".into(), 4222, Some(("h".into(), 0))),
        );
        let auth = |request| options(request).0.auth;
        let directory = |access: Access| Auth::Directory(access.into());
        check("--auth t", auth, directory(Access::token("t")));
        let user = directory(Access::user("a", "b"));
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
    fn version_help_and_commands_are_recognized() {
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
    fn unsupported_and_invalid_flags_are_refused() {
        for (line, expected) in [
            ("-c none.conf", "open none.conf: no such file or directory"),
            ("-t", "must specify [-c, --config]"),
            ("--tls", "TLS Server certificate must be present"),
            ("--tlscert f", "TLS Server private key must be present"),
            ("--tlsverify --tlskey f", "certificate must be present"),
            ("-m 8222 -ms 8443", "both HTTP (8222) and HTTPs (8443)"),
            (
                "--cluster nats://h",
                "cluster address \"nats://h\" has no port",
            ),
            (
                "--routes nats://h:1",
                "solicited routes require cluster capabilities, e.g. --cluster",
            ),
            ("--log_format=xml", "expected text or json"),
            ("-p 65536", "port must be between 1 and 65535"),
            ("-m -5", "port must be between 1 and 65535"),
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

    #[test]
    fn profile_flag_only_warns() {
        let warnings = |request| options(request).2.join("\n");
        let profile = "-profile: without effect: Fanline does not serve Go profiles";
        check("--profile 1", warnings, profile.into());
        check("--profile 0", warnings, String::new());
    }

    /// Regression: `-a` moved the client listener but not monitoring, `-m` replaced the file's HTTPS by HTTP,
    /// and `--user` removed the file's proxies and all its other account settings.
    #[test]
    fn flags_do_not_weaken_the_files_protection() {
        let name = format!("fanline-flags-{}.conf", std::process::id());
        let path = std::env::temp_dir().join(name);
        let line = |text: &str, flags: &str| {
            std::fs::write(&path, text).unwrap();
            let line = format!("-c {} {flags}", path.display());
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match read(NATS_SERVER, &arguments) {
                Ok(Request::Serve(line)) => line.assemble(),
                other => panic!("{other:?}"),
            }
        };
        let monitoring = |text, flags| line(text, flags).unwrap().0.options.monitoring.unwrap();
        let local = || ("127.0.0.1".to_owned(), 8222);
        assert_eq!(monitoring("http: 8222", "-a 127.0.0.1"), local());
        assert_eq!(
            monitoring("host: 1.2.3.4\nhttp: 8222", "-a 127.0.0.1"),
            local()
        );
        let own = monitoring("http: '127.0.0.1:8222'", "-a 1.2.3.4");
        assert_eq!(own, local());
        let both = "can't specify both HTTP (1) and HTTPs (8443) ports";
        let refused = line("https: 8443", "-m 1").unwrap_err();
        assert_eq!(refused, Refusal::Other(both.into()));
        let proxy = "authorization { proxy_required: true, users: [{user: a, password: b}] }\nmappings { x: y }";
        let (loaded, _) = line(proxy, "--user c --pass d").unwrap();
        assert!(loaded.access.proxy_required);
        let global = &loaded.access.accounts[0];
        assert_eq!((global.users[0].name(), global.users.len()), ("c", 1));
        assert_eq!(global.mappings.len(), 1);
        let operator = "trusted_keys: OCFIRY65OQE7DFP5KLNS2PF2LVZMUZYJX4OZIEQ36N2IQANUB5XVYOCS";
        let (loaded, _) = line(operator, "--user c --pass d").unwrap();
        assert!(loaded.options.auth.directory().operators().is_some());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn tls_flags_become_options() {
        let tls = |request| {
            let tls = options(request).0.tls;
            tls.map(|tls| {
                let pair = &tls.certificates[0];
                let files = (pair.cert_file.clone(), pair.key_file.clone());
                (files, tls.ca_file, tls.client_certificates.is_required())
            })
        };
        let files = || -> (PathBuf, PathBuf) { ("c".into(), "k".into()) };
        check("--tls=false --tlscert c --tlskey k", tls, None);
        for line in ["--tlscert c --tlskey k", "--tls --tlscert=c --tlskey=k"] {
            check(line, tls, Some((files(), None, false)));
        }
        check(
            "--tlsverify --tlscert c --tlskey k --tlscacert a",
            tls,
            Some((files(), Some("a".into()), true)),
        );
        let monitoring = |request| {
            let (options, ..) = options(request);
            (options.monitoring_tls, options.monitoring)
        };
        let line = "-ms 8443 --tlscert c --tlskey k";
        check(line, monitoring, (true, Some(("0.0.0.0".into(), 8443))));
        check(
            "-m 8222",
            monitoring,
            (false, Some(("0.0.0.0".into(), 8222))),
        );
    }
}
