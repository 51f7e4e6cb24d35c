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
  fanline serve --store-dir /var/lib    store streams in /var/lib/jetstream/fanline
  fanline serve --config fanline.conf   read a configuration file; options override it
  fanline serve --tls-cert server.pem --tls-key server.key --websocket 9222
  fanline -p 4222 -m 8222 -D          nats-server's flags work as well

Signals: SIGINT and SIGTERM stop the server, SIGUSR2 disconnects the clients first (lame duck mode), SIGUSR1
reopens the log file, SIGHUP reloads the configuration, SIGQUIT prints the threads' states and exits with 2.")]
pub(crate) struct ServeArgs {
    /// Configuration file in nats-server's grammar: docs/configuration.md
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration file and exit
    #[arg(long, requires = "config")]
    check: bool,
    /// Address for clients; port 0 picks a free one [default: 127.0.0.1:4222]
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port)]
    listen: Option<(String, u16)>,
    /// Address for monitoring over HTTP; disabled by default
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port)]
    monitor: Option<(String, u16)>,
    /// Address for MQTT clients, usually with port 1883; disabled by default
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port, conflicts_with = "no_jetstream")]
    mqtt: Option<(String, u16)>,
    /// Address for WebSocket clients, with TLS if other clients use it; disabled by default
    #[arg(long, value_name = "[HOST:]PORT", value_parser = values::maybe_host_and_port)]
    websocket: Option<(Option<String>, u16)>,
    /// PEM file with the server's certificate chain; enables TLS
    #[arg(long, alias = "tlscert", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the key of --tls-cert
    #[arg(long, alias = "tlskey", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// PEM file of authorities that may issue client certificates [default: the system's]
    #[arg(long, alias = "tlscacert", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Require client certificates
    #[arg(long, alias = "tlsverify")]
    tls_verify: bool,
    /// Access of the dashboard at the monitoring port: `off`, `read`, or `write`, which may publish and close
    /// connections [default: read]
    #[arg(long, value_name = "WHAT", value_parser = values::dashboard)]
    dashboard: Option<Dashboard>,
    /// Number of threads that share the connections
    #[arg(long, value_name = "N")]
    shards: Option<NonZeroUsize>,
    /// Name of the server
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// User name that clients need
    #[arg(long, requires = "pass")]
    user: Option<String>,
    /// Password that clients need
    #[arg(long, requires = "user", value_name = "PASSWORD")]
    pass: Option<String>,
    /// Token that clients need
    #[arg(long, value_name = "TOKEN", conflicts_with = "user")]
    auth: Option<String>,
    /// Largest message (headers and payload) [default: 1MB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    max_payload: Option<usize>,
    /// Largest number of connections [default: 65536]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Enable JetStream, which is the default
    #[arg(long = "jetstream", id = "jetstream", hide = true)]
    _jetstream: bool,
    /// Disable JetStream
    #[arg(long, conflicts_with_all = ["jetstream", "store_dir", "sync", "domain", "encryption_key_file"])]
    no_jetstream: bool,
    /// Folder of streams, which are stored in `jetstream/fanline` there [default: `fanline` in $XDG_DATA_HOME
    /// or ~/.local/share]
    #[arg(long, value_name = "FOLDER")]
    store_dir: Option<PathBuf>,
    /// When acknowledgements are sent: `commit` (the message is on disk), `none`, or the interval of disk
    /// syncs [default: commit]
    #[arg(long, value_name = "MODE", value_parser = values::sync_mode)]
    sync: Option<SyncMode>,
    /// File with the key that encrypts streams on disk; a trailing line break is ignored
    #[arg(long, value_name = "FILE", value_parser = values::secret_file)]
    encryption_key_file: Option<Secret>,
    /// File with the previous key, to change the key
    #[arg(long, value_name = "FILE", value_parser = values::secret_file, requires = "encryption_key_file")]
    previous_encryption_key_file: Option<Secret>,
    /// Cipher for new data: `aes` or `chachapoly` [default: aes]
    #[arg(long, value_name = "CIPHER", value_parser = values::cipher, requires = "encryption_key_file")]
    cipher: Option<Cipher>,
    /// JetStream domain
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// File to write the process id to
    #[arg(long, value_name = "FILE")]
    pid: Option<PathBuf>,
    /// File to log to
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Size in bytes at which the log file is rotated
    #[arg(long, value_name = "BYTES", requires = "log", value_parser = values::bytes)]
    log_size_limit: Option<usize>,
    /// Number of log files to keep, including the current one
    #[arg(long, value_name = "N", requires = "log_size_limit")]
    log_max_num: Option<usize>,
    /// Log format: text, as in nats-server, or JSON
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Log to the local syslog
    #[arg(long, conflicts_with = "log")]
    syslog: bool,
    /// Log to a remote syslog: udp://host:514, tcp://host:514
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

    /// Merges file and options; options take precedence.
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

    /// Moves the file's WebSocket listener to another address, with its other settings unchanged.
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

/// Sets an option to a flag's value, if the flag is present.
fn override_with<T: Clone>(option: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        option.clone_from(flag);
    }
}

/// Returns the default folder of streams, next to the user's other data.
fn store_dir() -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".local/share"));
    data.filter(|path| path.is_absolute())
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("fanline")
}

/// The wording of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Fanline's own wording, with advice for the operator.
    Own,
    /// nats-server's wording.
    NatsServer,
}

/// Reads configuration and flags again.
pub(crate) type Reread = Box<dyn Fn() -> Result<Loaded, String>>;

/// A server to run.
pub(crate) struct Job {
    pub(crate) loaded: Loaded,
    /// Warnings about flags.
    pub(crate) warnings: Vec<String>,
    pub(crate) style: Style,
    /// Reads the configuration for a reload. `None` without a configuration file, because flags do not
    /// change.
    pub(crate) reread: Option<Reread>,
}

/// Runs a server until it is stopped.
pub(crate) fn run(job: Job) -> ExitCode {
    if let Err(problem) = log::install(&LogSettings::from(&job.loaded.log)) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    panics::abort_on_jetstream_panic();
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
        // Handlers are installed before the server starts, so that a signal during the start does not kill
        // the process.
        let signals = match Signals::new() {
            Ok(signals) => signals,
            Err(error) => return fail(&format!("Cannot install signal handlers: {error}")),
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
                startup_message(handle.addresses(), handle.store_folder().as_deref())
            );
        }
        notify::notify(State::Ready);
        tokio::select! {
            // The exit code reports a panic, for a supervisor that restarts the server only after a failure.
            () = handle.wait() => ExitCode::from(u8::from(handle.has_panicked())),
            code = signals.handle(&handle, job) => code,
        }
    })
}

fn fail(text: &str) -> ExitCode {
    log::fatal(text);
    ExitCode::FAILURE
}

/// Exit code of Go's runtime for SIGQUIT.
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

    /// Handles signals. The caller drops this future when the server has stopped. Until then, the future ends
    /// only after a signal that ends the process at once. It then returns the exit code.
    async fn handle(mut self, handle: &Handle, mut job: Job) -> ExitCode {
        let started = Instant::now();
        let mut is_lame_duck = false;
        let mut requests = handle.reload_requests();
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    tracing::info!("Trapped \"interrupt\" signal");
                    notify::notify(State::Stopping);
                    handle.shutdown();
                }
                _ = self.terminate.recv() => {
                    tracing::info!("Trapped \"terminated\" signal");
                    notify::notify(State::Stopping);
                    // Lame duck mode ends by itself, and supervisors often send TERM twice.
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
                    notify::notify(State::Stopping);
                    is_lame_duck = true;
                    handle.lame_duck();
                }
                _ = self.reload.recv() => {
                    tracing::info!("Trapped \"hangup\" signal");
                    // A failure is ignored here, because it was logged.
                    let _ = reload_and_report(handle, &mut job);
                }
                Some(request) = requests.next() => {
                    tracing::info!("The system account requests a reload");
                    request.answer(reload_and_report(handle, &mut job));
                }
                _ = self.quit.recv() => {
                    eprint!("{}", dump::text(handle, started.elapsed()));
                    return ExitCode::from(QUIT_CODE);
                }
            }
        }
    }
}

/// Reloads, and reports the result to the service manager and the log.
fn reload_and_report(handle: &Handle, job: &mut Job) -> Result<(), String> {
    notify::notify(State::Reloading);
    let outcome = reload(handle, job);
    if let Err(why) = &outcome {
        tracing::error!("Failed to reload server configuration: {why}");
    }
    notify::notify(State::Ready);
    outcome
}

/// Reloads the whole configuration, or nothing if there is an error.
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
        // The old settings worked before. If they fail now, there is no alternative.
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

/// Returns an error with advice.
fn with_advice(error: &StartError) -> String {
    match error {
        StartError::StoreInUse { .. } | StartError::StoreFolder { .. } => format!(
            "{error}; --store-dir selects another folder, --no-jetstream disables JetStream"
        ),
        StartError::StoreKey {
            source: StoreKeyError::Missing,
            ..
        } => format!("{error}; set the file with the key with --encryption-key-file"),
        _ => error.to_string(),
    }
}

/// Returns the startup message: addresses, reachability, storage folder, and what to try next.
fn startup_message(addresses: &Addresses, store: Option<&Path>) -> String {
    let clients = addresses.clients;
    let mut text = format!("\nFanline listens for NATS clients on {clients}");
    if clients.ip().is_loopback() {
        text += ", reachable from this machine only (use --listen to change that).\n";
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
        text += &format!("JetStream stores streams in {store}\n");
    }
    // The tools use port 4222 by default.
    let server = match clients.port() {
        4222 if clients.ip().is_loopback() || clients.ip().is_unspecified() => String::new(),
        _ => format!(" -s {}", reachable(clients)),
    };
    text += "Try it from two other terminals:\n";
    text += &format!("  fanline sub 'greetings.>'{server}\n");
    text += &format!("  fanline pub greetings.world hello{server}\n\n");
    text
}

/// Returns an address to connect to: "any" becomes the loopback address.
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
        let options = flags.loaded().expect("the options are valid").options;
        let websocket = options.websocket.expect("it is on");
        assert_eq!((&*websocket.host, websocket.port), ("127.0.0.1", 9222));
        assert!(websocket.tls.is_some() && websocket.tls == options.tls);
        let flags = ServeArgs {
            tls_verify: true,
            ..ServeArgs::default()
        };
        let why = flags.loaded().expect_err("the certificate is missing");
        assert!(why.to_string().contains("certificate"), "{why}");
    }

    #[test]
    fn startup_message_reports_reachability() {
        let text = |clients: &str| {
            let clients = clients.parse().expect("an address");
            let addresses = Addresses {
                clients,
                monitoring: None,
                websocket: None,
                mqtt: None,
                leafnodes: None,
                cluster: None,
                gateway: None,
            };
            startup_message(&addresses, Some(Path::new("/data/fanline")))
        };
        assert!(text("127.0.0.1:4222").contains("this machine only"));
        assert!(text("127.0.0.1:4222").contains("greetings.>'\n"));
        assert!(text("127.0.0.1:4222").contains("stores streams in /data/fanline\n"));
        assert!(text("0.0.0.0:4222").contains("from the network"));
        assert!(text("0.0.0.0:5000").contains("-s 127.0.0.1:5000"));
    }
}
