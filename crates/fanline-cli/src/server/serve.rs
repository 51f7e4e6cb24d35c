//! Running a server: start, signals, stop.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use fanline_server::config::{self, ConfigError, Fault, Loaded, LogOptions};
use fanline_server::{
    Addresses, Cipher, Dashboard, Encryption, Handle, JetStreamOptions, Options, Secret, Server,
    StartError, StoreKeyError, SyncMode, WebSocketOptions,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::server::dump;
use crate::server::log::{self, LogFormat, LogSettings};
use crate::server::notify::{self, State};
use crate::server::panics;
use crate::server::tls::TlsFlags;
use crate::server::values;

/// Run a server.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  fanline serve
  fanline serve --listen 0.0.0.0:4222 --auth s3cret --monitor 127.0.0.1:8222
  fanline serve --store-dir /var/lib    streams are kept in /var/lib/fanline
  fanline serve --config fanline.conf   a configuration file; flags override it
  fanline serve --tls-cert server.pem --tls-key server.key --websocket 9222
  fanline -p 4222 -m 8222 -D          nats-server's own flags work too

Ctrl-C and SIGTERM stop it, SIGUSR2 sends the clients away first, SIGUSR1 opens the log file again,
SIGHUP has it read the configuration file again, SIGQUIT says what its threads do and ends it with 2.")]
pub(crate) struct ServeArgs {
    /// Read a configuration file, in nats-server's grammar: docs/configuration.md
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say whether the configuration file is in order, and end
    #[arg(long, requires = "config")]
    check: bool,
    /// Where clients connect; port 0 picks a free one [default: 127.0.0.1:4222]
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port)]
    listen: Option<(String, u16)>,
    /// Where monitoring is served over HTTP; off when left out
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port)]
    monitor: Option<(String, u16)>,
    /// Where MQTT clients connect; port 1883 by custom; off when left out
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port, conflicts_with = "no_jetstream")]
    mqtt: Option<(String, u16)>,
    /// Where WebSocket clients connect, over TLS if other clients do; off when left out
    #[arg(long, value_name = "[HOST:]PORT", value_parser = values::maybe_host_and_port)]
    websocket: Option<(Option<String>, u16)>,
    /// Speak TLS with this certificate, the server's own first in a PEM file
    #[arg(long, alias = "tlscert", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of --tls-cert
    #[arg(long, alias = "tlskey", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Authorities that clients' certificates must come from, as a PEM file [default: the system's]
    #[arg(long, alias = "tlscacert", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Clients must show a valid certificate
    #[arg(long, alias = "tlsverify")]
    tls_verify: bool,
    /// What the dashboard at the monitoring port may do: `off`, `read`, or `write`, which publishes and
    /// closes connections [default: read]
    #[arg(long, value_name = "WHAT", value_parser = values::dashboard)]
    dashboard: Option<Dashboard>,
    /// Threads that share the connections
    #[arg(long, value_name = "N")]
    shards: Option<NonZeroUsize>,
    /// Name of the server
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// User that clients must name
    #[arg(long, requires = "pass")]
    user: Option<String>,
    /// Password that clients must show
    #[arg(long, requires = "user", value_name = "PASSWORD")]
    pass: Option<String>,
    /// Token that clients must show
    #[arg(long, value_name = "TOKEN", conflicts_with = "user")]
    auth: Option<String>,
    /// Largest message (headers and payload) [default: 1MB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    max_payload: Option<usize>,
    /// Most connections at a time [default: 65536]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Keep streams (JetStream), as it does anyway: for scripts that want to say so
    #[arg(long = "jetstream", id = "jetstream", hide = true)]
    _jetstream: bool,
    /// Do without streams (JetStream)
    #[arg(long, conflicts_with_all = ["jetstream", "store_dir", "sync", "domain", "encryption_key_file"])]
    no_jetstream: bool,
    /// Where streams are stored: in `jetstream/fanline` there [default: `fanline` in $XDG_DATA_HOME or
    /// ~/.local/share]
    #[arg(long, value_name = "FOLDER")]
    store_dir: Option<PathBuf>,
    /// When an acknowledgement is sent: `commit` (the record is on the disk), `none`, or how often
    /// the disk is synced [default: commit]
    #[arg(long, value_name = "MODE", value_parser = values::sync_mode)]
    sync: Option<SyncMode>,
    /// Encrypt streams on disk with what this file holds, but for a line break at its end
    #[arg(long, value_name = "FILE", value_parser = values::secret_file)]
    encryption_key_file: Option<Secret>,
    /// What they were encrypted with so far, to change it
    #[arg(long, value_name = "FILE", value_parser = values::secret_file, requires = "encryption_key_file")]
    previous_encryption_key_file: Option<Secret>,
    /// How records are encrypted from now on: `aes` or `chachapoly` [default: aes]
    #[arg(long, value_name = "CIPHER", value_parser = values::cipher, requires = "encryption_key_file")]
    cipher: Option<Cipher>,
    /// Domain of the streams
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Write the process id to a file
    #[arg(long, value_name = "FILE")]
    pid: Option<PathBuf>,
    /// Log to a file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Put the log file aside when it has so many bytes
    #[arg(long, value_name = "BYTES", requires = "log", value_parser = values::bytes)]
    log_size_limit: Option<usize>,
    /// Keep so many log files, the one that is written to included
    #[arg(long, value_name = "N", requires = "log_size_limit")]
    log_max_num: Option<usize>,
    /// Write the log as text, as nats-server does, or as JSON
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Log to this machine's syslog
    #[arg(long, conflicts_with = "log")]
    syslog: bool,
    /// Log to another machine's syslog: udp://host:514, tcp://host:514
    #[arg(long, value_name = "URL", conflicts_with_all = ["log", "syslog"])]
    remote_syslog: Option<String>,
    /// Log debug lines
    #[arg(long)]
    debug: bool,
    /// Log every protocol line
    #[arg(long)]
    trace: bool,
}

impl ServeArgs {
    /// Runs the server until it is stopped.
    pub(crate) fn run(self) -> ExitCode {
        let loaded = match self.loaded() {
            Ok(loaded) => loaded,
            Err(error) => return fail(&format!("fanline: {error}")),
        };
        if self.check {
            return crate::server::config::report(&loaded);
        }
        let reread: Reread = Box::new(move || self.loaded().map_err(|error| error.to_string()));
        run(Job {
            reread: loaded.options.origin.is_some().then_some(reread),
            loaded,
            warnings: Vec::new(),
            style: Style::Own,
        })
    }

    /// What file and flags add up to.
    pub(crate) fn loaded(&self) -> Result<Loaded, ConfigError> {
        let mut loaded = Loaded::default();
        loaded.options.jetstream = Some(JetStreamOptions::default());
        if let Some(path) = &self.config {
            loaded = config::load_over(path, loaded, &config::Machine)?;
        }
        self.apply_log(&mut loaded.log);
        self.apply_jetstream(&mut loaded);
        let done = match (&self.auth, &self.user, &self.pass) {
            (Some(token), ..) => loaded.set_token(token.clone()),
            (None, Some(name), Some(password)) => loaded.set_user(name.clone(), password.clone()),
            _ => Ok(()),
        };
        done.map_err(|reason| {
            ConfigError::Values(vec![Fault {
                place: None,
                reason,
            }])
        })?;
        if let Some((host, port)) = &self.listen {
            loaded.set_host(host.clone());
            loaded.options.port = *port;
        }
        let options = &mut loaded.options;
        self.apply_tls(options)?;
        self.apply_websocket(options);
        options.trace_protocol = loaded.log.trace;
        if let Some((host, port)) = &self.mqtt {
            let mqtt = options.mqtt.get_or_insert_default();
            (mqtt.host, mqtt.port) = (host.clone(), *port);
        }
        override_with(&mut options.server_name, &self.name);
        override_with(&mut options.monitoring, &self.monitor);
        override_with(&mut options.shards, &self.shards);
        options.dashboard = self.dashboard.unwrap_or(options.dashboard);
        override_with(&mut options.pid_file, &self.pid);
        let limits = &mut options.limits;
        limits.payload_bytes_max = self.max_payload.unwrap_or(limits.payload_bytes_max);
        limits.connections_max = self.max_connections.unwrap_or(limits.connections_max);
        Ok(loaded)
    }

    fn apply_tls(&self, options: &mut Options) -> Result<(), ConfigError> {
        let flags = TlsFlags {
            is_on: None,
            verifies: self.tls_verify.then_some(true),
            cert_file: self.tls_cert.clone(),
            key_file: self.tls_key.clone(),
            ca_file: self.tls_ca.clone(),
        };
        flags.apply(&mut options.tls).map_err(|reason| {
            ConfigError::Values(vec![Fault {
                place: None,
                reason: reason.into(),
            }])
        })
    }

    /// A listener of the file goes on as it is set up there, only elsewhere.
    fn apply_websocket(&self, options: &mut Options) {
        let Some((host, port)) = &self.websocket else {
            return;
        };
        let tls = &options.tls;
        let websocket = options.websocket.get_or_insert_with(|| WebSocketOptions {
            tls: tls.clone(),
            ..WebSocketOptions::default()
        });
        values::set(&mut websocket.host, host);
        websocket.port = *port;
    }

    fn apply_log(&self, log: &mut LogOptions) {
        override_with(&mut log.file, &self.log);
        override_with(&mut log.remote_syslog, &self.remote_syslog);
        log.file_bytes_max = self
            .log_size_limit
            .map_or(log.file_bytes_max, |bytes| bytes as u64);
        log.files_max = self.log_max_num.unwrap_or(log.files_max);
        log.json = self
            .log_format
            .map_or(log.json, |format| format == LogFormat::Json);
        log.syslog |= self.syslog;
        log.debug |= self.debug;
        log.trace |= self.trace;
    }

    fn apply_jetstream(&self, loaded: &mut Loaded) {
        let jetstream = &mut loaded.jetstream;
        override_with(&mut jetstream.store_dir, &self.store_dir);
        override_with(&mut jetstream.domain, &self.domain);
        jetstream.sync = self.sync.unwrap_or(jetstream.sync);
        if let Some(secret) = &self.encryption_key_file {
            jetstream.encryption = Some(Encryption {
                secret: secret.clone(),
                previous_secret: self.previous_encryption_key_file.clone(),
                cipher: self.cipher.unwrap_or_default(),
            });
        }
        let asks = self.store_dir.is_some() || self.domain.is_some() || self.sync.is_some();
        let is_on = !self.no_jetstream && (asks || loaded.options.jetstream.is_some());
        jetstream.store_dir.get_or_insert_with(store_dir);
        loaded.options.jetstream = is_on.then(|| jetstream.clone());
    }
}

/// What a flag says, if it was given.
fn override_with<T: Clone>(option: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        option.clone_from(flag);
    }
}

/// Where streams are kept when nobody says: with the user's other data.
fn store_dir() -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".local/share"));
    data.filter(|path| path.is_absolute())
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("fanline")
}

/// Whose words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Fanline's: a person is told what to do next.
    Own,
    /// nats-server's.
    NatsServer,
}

/// Reads configuration and flags again.
pub(crate) type Reread = Box<dyn Fn() -> Result<Loaded, String>>;

/// A server to be run.
pub(crate) struct Job {
    pub(crate) loaded: Loaded,
    /// What is to be said of the flags.
    pub(crate) warnings: Vec<String>,
    pub(crate) style: Style,
    /// Only with a configuration file there is something to be read again.
    pub(crate) reread: Option<Reread>,
}

/// Runs a server until it is stopped.
pub(crate) fn run(job: Job) -> ExitCode {
    if let Err(problem) = log::install(&LogSettings::from(&job.loaded.log)) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    panics::end_the_process();
    for warning in &job.warnings {
        tracing::warn!("{warning}");
    }
    for warning in job.loaded.warnings() {
        tracing::warn!("{warning}");
    }
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.to_string()),
    };
    runtime.block_on(async {
        // Before the server: a signal that comes while it starts is not the end of it.
        let signals = match Signals::new() {
            Ok(signals) => signals,
            Err(error) => return fail(&format!("Cannot listen to signals: {error}")),
        };
        let style = job.style;
        let handle = match Server::start(job.loaded.options.clone()) {
            Ok(handle) => handle,
            Err(error) if style == Style::Own => return fail(&with_advice(&error)),
            Err(error) => return fail(&error.to_string()),
        };
        if style == Style::Own {
            eprint!(
                "{}",
                welcome(handle.addresses(), handle.store_folder().as_deref())
            );
        }
        notify::tell(State::Ready);
        tokio::select! {
            // For a supervisor that starts it again after a failure only.
            () = handle.wait() => ExitCode::from(u8::from(handle.has_panicked())),
            code = signals.obey(&handle, job) => code,
        }
    })
}

fn fail(text: &str) -> ExitCode {
    log::fatal(text);
    ExitCode::FAILURE
}

/// As Go's runtime ends a program that gets SIGQUIT.
const QUIT_CODE: u8 = 2;

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    reopen: Signal,
    lame_duck: Signal,
    reload: Signal,
    quit: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            reopen: signal(SignalKind::user_defined1())?,
            lame_duck: signal(SignalKind::user_defined2())?,
            reload: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Does what signals ask for, until the server has stopped and nobody polls it any more, or until
    /// one ends the process at once: then it returns with which code.
    async fn obey(mut self, handle: &Handle, mut job: Job) -> ExitCode {
        let started = Instant::now();
        let mut is_lame_duck = false;
        let mut requests = handle.reload_requests();
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    tracing::info!("Trapped \"interrupt\" signal");
                    notify::tell(State::Stopping);
                    handle.shutdown();
                }
                _ = self.terminate.recv() => {
                    tracing::info!("Trapped \"terminated\" signal");
                    notify::tell(State::Stopping);
                    // A lame duck has its own end, and supervisors like to ask twice.
                    if !is_lame_duck {
                        handle.shutdown();
                    }
                }
                _ = self.reopen.recv() => {
                    tracing::info!("Trapped \"user defined signal 1\" signal");
                    log::reopen();
                }
                _ = self.lame_duck.recv() => {
                    tracing::info!("Trapped \"user defined signal 2\" signal");
                    notify::tell(State::Stopping);
                    is_lame_duck = true;
                    handle.lame_duck();
                }
                _ = self.reload.recv() => {
                    tracing::info!("Trapped \"hangup\" signal");
                    // Why not is in the log.
                    let _ = reload_and_tell(handle, &mut job);
                }
                Some(request) = requests.next() => {
                    tracing::info!("The system account asks for a reload");
                    request.answer(reload_and_tell(handle, &mut job));
                }
                _ = self.quit.recv() => {
                    eprint!("{}", dump::text(handle, started.elapsed()));
                    return ExitCode::from(QUIT_CODE);
                }
            }
        }
    }
}

/// Reloads, and says so to the supervisor and the log.
fn reload_and_tell(handle: &Handle, job: &mut Job) -> Result<(), String> {
    notify::tell(State::Reloading);
    let outcome = reload(handle, job);
    if let Err(why) = &outcome {
        tracing::error!("Failed to reload server configuration: {why}");
    }
    notify::tell(State::Ready);
    outcome
}

/// Reads the configuration again and goes on with it: with all of it, or with none of it.
fn reload(handle: &Handle, job: &mut Job) -> Result<(), String> {
    let reread = job
        .reread
        .as_ref()
        .ok_or("can only reload config when a file is provided using -c or --config")?;
    let new = reread()?;
    let changes = job
        .loaded
        .changes(&new)
        .map_err(|error| error.to_string())?;
    log::install(&LogSettings::from(&new.log))?;
    if let Err(error) = handle.reload(new.options.clone()) {
        // It worked before, and nothing better is left to be done when it does not now.
        let _ = log::install(&LogSettings::from(&job.loaded.log));
        return Err(error.to_string());
    }
    for change in changes {
        tracing::info!("Reloaded: {change}");
    }
    let digest = new.options.origin.as_ref().map(|origin| &*origin.digest);
    tracing::info!(
        "Reloaded server configuration ({})",
        digest.unwrap_or_default()
    );
    job.loaded = new;
    Ok(())
}

/// What went wrong, and what can be done about it.
fn with_advice(error: &StartError) -> String {
    match error {
        StartError::StoreInUse { .. } | StartError::StoreFolder { .. } => format!(
            "{error}; --store-dir keeps streams elsewhere, --no-jetstream does without them"
        ),
        StartError::StoreKey {
            source: StoreKeyError::Missing,
            ..
        } => format!("{error}; --encryption-key-file names the file that holds it"),
        _ => error.to_string(),
    }
}

/// Says what listens where, who can reach it, what is kept where, and what to try next.
fn welcome(addresses: &Addresses, store: Option<&Path>) -> String {
    let clients = addresses.clients;
    let mut text = format!("\nFanline listens for NATS clients on {clients}");
    if clients.ip().is_loopback() {
        text += ", reachable from this machine only (--listen opens it).\n";
    } else {
        text += ", reachable from the network.\n";
    }
    if let Some(monitoring) = addresses.monitoring {
        text += &format!("Monitoring is on http://{}/\n", reachable(monitoring));
    }
    if let Some(mqtt) = addresses.mqtt {
        text += &format!("MQTT clients connect to {}\n", reachable(mqtt));
    }
    if let Some(websocket) = addresses.websocket {
        text += &format!("WebSocket clients connect to {}\n", reachable(websocket));
    }
    if let Some(store) = store {
        let store = store.display();
        text += &format!("Streams (JetStream) are kept in {store}\n");
    }
    // The tools find port 4222 by themselves.
    let server = match clients.port() {
        4222 if clients.ip().is_loopback() || clients.ip().is_unspecified() => String::new(),
        _ => format!(" -s {}", reachable(clients)),
    };
    text += "Try it from two other terminals:\n";
    text += &format!("  fanline sub 'greetings.>'{server}\n");
    text += &format!("  fanline pub greetings.world hello{server}\n\n");
    text
}

/// An address to connect to: "any" is no place.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    match address.ip() {
        std::net::IpAddr::V4(ip) if ip.is_unspecified() => {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        std::net::IpAddr::V6(ip) if ip.is_unspecified() => {
            address.set_ip(std::net::Ipv6Addr::LOCALHOST.into());
        }
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_set_up_tls_and_websocket() {
        let flags = ServeArgs {
            websocket: Some((None, 9222)),
            tls_cert: Some("a.pem".into()),
            tls_key: Some("a.key".into()),
            ..ServeArgs::default()
        };
        let options = flags.loaded().expect("they are in order").options;
        let websocket = options.websocket.expect("it is on");
        assert_eq!((&*websocket.host, websocket.port), ("127.0.0.1", 9222));
        assert!(websocket.tls.is_some() && websocket.tls == options.tls);
        let flags = ServeArgs {
            tls_verify: true,
            ..ServeArgs::default()
        };
        let why = flags.loaded().expect_err("there is no certificate");
        assert!(why.to_string().contains("certificate"), "{why}");
    }

    #[test]
    fn the_welcome_says_who_can_reach_it() {
        let text = |clients: &str| {
            let clients = clients.parse().expect("an address");
            let addresses = Addresses {
                clients,
                monitoring: None,
                websocket: None,
                mqtt: None,
                leafnodes: None,
            };
            welcome(&addresses, Some(Path::new("/data/fanline")))
        };
        assert!(text("127.0.0.1:4222").contains("this machine only"));
        assert!(text("127.0.0.1:4222").contains("greetings.>'\n"));
        assert!(text("127.0.0.1:4222").contains("kept in /data/fanline\n"));
        assert!(text("0.0.0.0:4222").contains("from the network"));
        assert!(text("0.0.0.0:5000").contains("-s 127.0.0.1:5000"));
    }
}
