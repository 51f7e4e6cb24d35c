//! Starting, reaching and stopping a server.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use fanline_engine::access::nkey::SecretKey;
use fanline_engine::access::{AccessConfig, AccessError, AccountId, ListenerAccess};
use fanline_engine::mqtt::Settings;
use fanline_engine::websocket::UpgradeRules;
use fanline_engine::{
    Access, Auth, Limits, ListenerInfo, SHARDS_MAX, ServerInfo, ShardConfig, TlsTold,
};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::info;

use crate::accounts::newer_tokens;
use crate::bridge::DefaultBridge;
use crate::checks::{Checks, unix_seconds};
use crate::client::{Client, ClientError, ConnectOptions};
use crate::control::{self, Order};
use crate::keeper::StoreKeyError;
use crate::leaf::Dialled;
use crate::options::{
    Addresses, LeafnodeOptions, LeafnodeRemote, MqttOptions, Options, TlsOptions, WebSocketOptions,
};
use crate::reloads::{ReloadRequests, Reloader};
use crate::shell::{
    self, Command, Common, Incoming, Listener, Listeners, Mailbox, MqttListener, Transport,
    WebSocketListener,
};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::tls::{Tls, TlsError};
use crate::{identity, keeper, listen, ports_file, resolver};

/// The nats-server version that clients are told, because they branch on it.
pub const COMPATIBLE_VERSION: &str = "2.15.2";
/// Fanline's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes in the pipe between a server and a client in its own process, in each direction.
pub(crate) const IN_PROCESS_PIPE_BYTES: usize = 256 * 1024;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is taken, not allowed, or not of this machine.
    #[error("Error listening on port: {host}:{port}, \"{}\"", plain(source))]
    Listen {
        /// The host that was asked for.
        host: String,
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// The unix socket cannot be made.
    #[error("Error listening on {}: {}", path.display(), plain(source))]
    UnixSocket {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate, a key or another setting of TLS cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    /// Another server keeps its streams there.
    #[error("the store folder {} is in use by another server{}", path.display(), of_process(*process))]
    StoreInUse {
        /// Which folder.
        path: PathBuf,
        /// The process that has it, if that can be told.
        process: Option<u32>,
    },
    /// The folder that streams are kept in cannot be made, read or written.
    #[error("the store folder {} cannot be used: {}", path.display(), plain(source))]
    StoreFolder {
        /// Which folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder that streams are kept in is encrypted, and the key to it was not given.
    #[error("the store folder {} cannot be used: {source}", path.display())]
    StoreKey {
        /// Which folder.
        path: PathBuf,
        /// What is wrong with the key.
        source: StoreKeyError,
    },
    /// What accounts are looked for in cannot be used.
    #[error("the resolver of accounts could not start: {}", plain(.0))]
    Resolver(io::Error),
    /// What streams keep could not be taken back.
    #[error("JetStream could not start: {}", plain(.0))]
    Keeper(io::Error),
    /// The file with the process id or the ports could not be written.
    #[error("{path} could not be written: {}", plain(source))]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn of_process(process: Option<u32>) -> String {
    process.map_or_else(String::new, |process| format!(" (process {process})"))
}

/// What the system said, in the form that log readers know: lower case, without the number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

/// Starts servers; see [`Server::start`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts a server on threads of its own and returns when it accepts connections.
    ///
    /// The server runs until [`Handle::shutdown`], also when the handle is dropped.
    ///
    /// # Errors
    /// When the address cannot be listened on, an option makes no sense, or a file that was asked
    /// for cannot be written. Nothing runs then.
    ///
    /// ```
    /// use fanline_server::{Options, Server};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::start(Options { port: 0, ..Options::default() })?;
    /// assert_ne!(server.addresses().clients.port(), 0);
    /// server.shutdown();
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(options: Options) -> Result<Handle, StartError> {
        let jetstream = options.jetstream.as_ref();
        let keeper = jetstream.map(keeper::starter).transpose()?;
        start(options, keeper)
    }
}

/// Starts the keeper of a server that says these things of itself.
pub(crate) type StartKeeper =
    Box<dyn FnOnce(&Arc<Common>, &ServerInfo) -> io::Result<keeper::Running>>;

/// Starts a server, with a keeper or without.
pub(crate) fn start(options: Options, keeper: Option<StartKeeper>) -> Result<Handle, StartError> {
    let keepers = usize::from(keeper.is_some());
    check(&options, SHARDS_MAX - keepers)?;
    let options = Options {
        auth: auth(
            &options.auth,
            options.websocket.as_ref(),
            options.mqtt.as_ref(),
        )?,
        ..options
    };
    let listeners = listeners(&options)?;
    let sockets = Sockets::bind(&options)?;
    let addresses = sockets.addresses()?;
    let key = identity::new_server_key();
    let mut info = server_info(&options, &addresses, key.public().encode());
    if let Some((listener, address)) =
        (options.leafnodes.listener.as_ref()).zip(addresses.leafnodes)
    {
        let listener = crate::leaf::listener_info(listener, address).map_err(StartError::Option)?;
        info.leafs = Some(Arc::new(listener));
    }
    // Before the log says that the server is ready: this may fail.
    let files = write_files(&options, &addresses)?;
    log_start(&options, &info, &addresses);
    let shards = options
        .shards
        .map_or_else(|| default_shards(SHARDS_MAX - keepers), NonZeroUsize::get);
    let common = Arc::new(Common {
        config: Arc::new(ShardConfig {
            limits: limits(&options),
            auth: options.auth.clone(),
            shards: shards + keepers,
            traces: options.trace_protocol,
        }),
        mailboxes: (0..shards + keepers).map(|_| Mailbox::default()).collect(),
        interest: AtomicU64::new(0),
        keeper: OnceLock::new(),
        checks: Checks::default(),
        sync_times: Arc::default(),
        resolver: OnceLock::new(),
        callout: OnceLock::new(),
        started: Instant::now(),
        events: OnceLock::new(),
        listeners,
        connections: (0..shards).map(|_| AtomicUsize::new(0)).collect(),
    });
    let shared = Arc::new(Shared {
        common,
        shards: Vec::new(),
        keeper: None,
        access: Mutex::new(options.auth.directory()),
        next_cid: AtomicU64::new(1),
        next_shard: AtomicUsize::new(0),
        started_at: SystemTime::now(),
        info,
        key,
        remotes: watch::Sender::new(options.leafnodes.remotes.clone()),
        options: Mutex::new(Arc::new(options)),
        reloader: Reloader::new(),
        addresses,
        bridge: DefaultBridge::default(),
    });
    launch(shared, keeper, sockets, files)
}

/// What is listened on.
pub(crate) struct Sockets {
    pub(crate) clients: TcpListener,
    pub(crate) websocket: Option<TcpListener>,
    pub(crate) mqtt: Option<TcpListener>,
    pub(crate) leafnodes: Option<TcpListener>,
    #[cfg(unix)]
    pub(crate) unix: Option<std::os::unix::net::UnixListener>,
    pub(crate) monitoring: Option<TcpListener>,
}

impl Sockets {
    fn bind(options: &Options) -> Result<Self, StartError> {
        let clients = bind(&options.host, options.port)?;
        let websocket = options.websocket.as_ref();
        let websocket = websocket.map(|websocket| bind(&websocket.host, websocket.port));
        let mqtt = options.mqtt.as_ref();
        let mqtt = mqtt.map(|mqtt| bind(&mqtt.host, mqtt.port));
        let leafnodes = options.leafnodes.listener.as_ref();
        let leafnodes = leafnodes.map(|listener| bind(&listener.host, listener.port));
        let monitoring = options.monitoring.as_ref();
        let monitoring = monitoring.map(|(host, port)| bind(host, *port));
        Ok(Sockets {
            clients,
            websocket: websocket.transpose()?,
            mqtt: mqtt.transpose()?,
            leafnodes: leafnodes.transpose()?,
            #[cfg(unix)]
            unix: match &options.unix_socket {
                Some(path) => Some(listen::bind_unix(path).map_err(|source| {
                    let path = path.clone();
                    StartError::UnixSocket { path, source }
                })?),
                None => None,
            },
            monitoring: monitoring.transpose()?,
        })
    }

    fn addresses(&self) -> Result<Addresses, StartError> {
        let address =
            |listener: &Option<TcpListener>| listener.as_ref().map(local_address).transpose();
        Ok(Addresses {
            clients: local_address(&self.clients)?,
            monitoring: address(&self.monitoring)?,
            websocket: address(&self.websocket)?,
            mqtt: address(&self.mqtt)?,
            leafnodes: address(&self.leafnodes)?,
        })
    }
}

/// What listeners do before a session begins.
fn listeners(options: &Options) -> Result<Listeners, StartError> {
    let tls = |options: &TlsOptions| {
        let tls = Tls::new(options).map_err(|error| StartError::Tls(error.to_string()))?;
        Ok::<_, StartError>(Arc::new(tls))
    };
    let websocket = options.websocket.as_ref().map(|websocket| {
        Ok::<_, StartError>(WebSocketListener {
            tls: websocket.tls.as_ref().map(tls).transpose()?,
            rules: UpgradeRules {
                mqtt: options.mqtt.is_some(),
                ..websocket.upgrade_rules().map_err(StartError::Option)?
            },
            handshake_timeout: websocket.handshake_timeout,
        })
    });
    let mqtt = options.mqtt.as_ref().map(|mqtt| {
        Ok::<_, StartError>(MqttListener {
            tls: mqtt.tls.as_ref().map(tls).transpose()?,
        })
    });
    Ok(Listeners {
        tls: options.tls.as_ref().map(tls).transpose()?,
        allow_non_tls: options.allow_non_tls,
        proxy_protocol: options.proxy_protocol,
        websocket: websocket.transpose()?,
        mqtt: mqtt.transpose()?,
        leafs_tls: (options.leafnodes.listener.as_ref())
            .and_then(|listener| listener.tls.as_ref().map(tls))
            .transpose()?,
    })
}

/// What clients must show, with what those show who come over WebSocket or speak MQTT.
fn auth(
    auth: &Auth,
    websocket: Option<&WebSocketOptions>,
    mqtt: Option<&MqttOptions>,
) -> Result<Auth, StartError> {
    let own = websocket.map(WebSocketOptions::access).transpose();
    let own = own.map_err(StartError::Option)?.unwrap_or_default();
    let of_mqtt = mqtt.map(MqttOptions::access).transpose();
    let of_mqtt = of_mqtt.map_err(StartError::Option)?.unwrap_or_default();
    if own == ListenerAccess::default() && of_mqtt == ListenerAccess::default() {
        return Ok(auth.clone());
    }
    let access = auth.directory().with_listeners(own, of_mqtt);
    let access = access.map_err(|error| StartError::Option(format!("listeners: {error}")))?;
    Ok(Auth::Directory(Arc::new(access)))
}

fn limits(options: &Options) -> Limits {
    let websocket = options.websocket.as_ref();
    let jetstream = options.jetstream.as_ref();
    let in_memory = jetstream.is_none_or(|jetstream| jetstream.store_dir.is_none());
    Limits {
        mqtt: mqtt_settings(options.mqtt.as_ref(), in_memory),
        websocket_ping_interval: websocket.and_then(|websocket| websocket.ping_interval),
        ..options.limits.clone()
    }
}

fn mqtt_settings(mqtt: Option<&MqttOptions>, in_memory: bool) -> Settings {
    mqtt.map_or_else(Settings::default, |mqtt| mqtt.settings(in_memory))
}

/// What the handle, the control thread and monitoring share.
pub(crate) struct Shared {
    pub(crate) common: Arc<Common>,
    pub(crate) shards: Vec<mpsc::UnboundedSender<Command>>,
    /// The keeper, if there is JetStream.
    pub(crate) keeper: Option<mpsc::UnboundedSender<keeper::Command>>,
    /// Who may connect, and what they may do.
    pub(crate) access: Mutex<Arc<Access>>,
    next_cid: AtomicU64,
    next_shard: AtomicUsize,
    pub(crate) started_at: SystemTime,
    pub(crate) info: ServerInfo,
    /// What the server signs with; its public part is its id.
    pub(crate) key: SecretKey,
    options: Mutex<Arc<Options>>,
    /// Who reads the configuration again when the system account asks for it.
    pub(crate) reloader: Reloader,
    pub(crate) addresses: Addresses,
    bridge: DefaultBridge,
    /// The servers that this one attaches to.
    pub(crate) remotes: watch::Sender<Vec<LeafnodeRemote>>,
}

impl Shared {
    /// Who may connect, and what they may do.
    pub(crate) fn access(&self) -> Arc<Access> {
        let current = self.access.lock();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// What the server goes by now.
    pub(crate) fn options(&self) -> Arc<Options> {
        let options = self.options.lock();
        Arc::clone(&options.unwrap_or_else(PoisonError::into_inner))
    }

    /// Has one shard do something.
    pub(crate) fn tell(&self, shard: usize, command: Command) {
        if let Some(shard) = self.shards.get(shard) {
            // One that is gone has nobody left to do it for.
            let _ = shard.send(command);
        }
    }

    /// Has the keeper go by other accounts.
    pub(crate) fn tell_keeper(&self, access: &Arc<Access>) {
        if let Some(keeper) = &self.keeper {
            // One that is gone has nothing to keep.
            let _ = keeper.send(keeper::Command::SetAccounts(Arc::clone(access)));
        }
    }

    /// Has the shard with the fewest connections serve one more.
    pub(crate) fn assign(&self, transport: Transport) {
        let counts = &self.common.connections;
        // Counts are a hint; two threads that choose at once do no harm.
        let start = self.next_shard.fetch_add(1, Ordering::Relaxed);
        let order = (0..counts.len()).map(|i| (start + i) % counts.len());
        let shard = order
            .min_by_key(|i| counts[*i].load(Ordering::Relaxed))
            .unwrap_or(0);
        let cid = self.next_cid.fetch_add(1, Ordering::Relaxed);
        let is_full = self.common.connection_count() >= self.options().limits.connections_max;
        // One that is refused takes no place while it lingers.
        counts[shard].fetch_add(usize::from(!is_full), Ordering::Relaxed);
        // A shard that is gone has ended with the server; the connection is dropped with it.
        let _ = self.shards[shard].send(Command::Serve {
            transport,
            cid,
            is_full,
        });
    }

    /// Has the shard that serves leaf nodes serve one more that has come.
    pub(crate) fn serve_leaf(&self, stream: std::net::TcpStream) {
        let incoming = Incoming::Tcp(stream);
        self.serve_on_leaf_shard(Transport::Wire(incoming, Listener::Leafs));
    }

    /// The same for one that was dialled.
    pub(crate) fn serve_dialled(&self, dialled: Dialled) {
        self.serve_on_leaf_shard(Transport::Dialled(dialled.into()));
    }

    fn serve_on_leaf_shard(&self, transport: Transport) {
        let cid = self.next_cid.fetch_add(1, Ordering::Relaxed);
        let _ = self.shards[0].send(Command::Serve {
            transport,
            cid,
            is_full: false,
        });
    }

    /// Has the first shard serve a client of the server's own in an account.
    pub(crate) fn assign_insider(&self, stream: tokio::io::DuplexStream, account: AccountId) {
        let _ = self.shards[0].send(Command::Serve {
            transport: Transport::Insider(stream, account),
            // Not one that a client could have.
            cid: 0,
            is_full: false,
        });
    }

    /// The shard with the most connections.
    pub(crate) fn fullest_shard(&self) -> &mpsc::UnboundedSender<Command> {
        let counts = self
            .common
            .connections
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let fullest = counts.zip(&self.shards).max_by_key(|(count, _)| *count);
        fullest.expect("there is at least one shard").1
    }

    pub(crate) fn tell_all(&self, command: impl Fn() -> Command) {
        for shard in &self.shards {
            let _ = shard.send(command());
        }
    }
}

/// Whether anybody wants what is published, in the account without a name.
pub(crate) struct Interest {
    common: Arc<Common>,
    shard: mpsc::UnboundedSender<Command>,
}

impl Interest {
    /// Which state of things this is: as long as it is the same, so are the answers.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        // Acquire: what is asked after this is answered by the state that was counted, or a later one.
        self.common.interest.load(Ordering::Acquire)
    }

    /// Asks about a topic. No answer comes when the server has stopped.
    pub(crate) fn ask(&self, topic: &Arc<str>) -> oneshot::Receiver<bool> {
        let (sender, answer) = oneshot::channel();
        // A shard that is gone drops the sender.
        let _ = self
            .shard
            .send(Command::IsWanted(Arc::clone(topic), sender));
        answer
    }
}

/// A running server.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
    stopped: watch::Receiver<bool>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("addresses", &self.shared.addresses)
            .finish_non_exhaustive()
    }
}

impl Handle {
    /// The folder that streams are kept in; `None` when there are none, or in memory only.
    pub fn store_folder(&self) -> Option<PathBuf> {
        let options = self.shared.options();
        let jetstream = options.jetstream.as_ref()?;
        jetstream.store_dir.as_deref().map(keeper::store_folder)
    }

    /// Where the server listens.
    pub fn addresses(&self) -> &Addresses {
        &self.shared.addresses
    }

    /// How many connections there are. It is out of date when it is read.
    pub fn connections(&self) -> usize {
        self.shared.common.connection_count()
    }

    /// Asks the server to stop: what is queued for clients is written as far as they take it at
    /// once, and all connections are closed. Returns before that is done; see [`Handle::wait`].
    pub fn shutdown(&self) {
        let _ = self.orders.send(Order::Stop);
    }

    /// Asks the server to go away gently: no new connections, clients are told, and after the
    /// grace period they are closed one by one. The server stops when none is left.
    pub fn lame_duck(&self) {
        let _ = self.orders.send(Order::LameDuck);
    }

    /// Has the server admit clients by other users, accounts and permissions from now on. Clients whose
    /// user is gone or has other credentials are sent away with `Authorization Violation`; the others
    /// stay, and what they are subscribed to and may not be any more is dropped. What WebSocket clients
    /// show in place of others stays as it is, unless `config` says something else.
    ///
    /// # Errors
    /// When something is wrong with them: then everything stays as it is.
    pub fn replace_access(&self, mut config: AccessConfig) -> Result<(), AccessError> {
        let Ok(mut current) = self.shared.access.lock() else {
            return Ok(());
        };
        if config.websocket == ListenerAccess::default() {
            config.websocket = current.websocket_access();
        }
        if config.mqtt == ListenerAccess::default() {
            config.mqtt = current.mqtt_access();
        }
        let next = Arc::new(current.successor(config)?);
        *current = Arc::clone(&next);
        // Under the lock, so that all hear of several in the same order.
        self.shared.tell_keeper(&next);
        (self.shared).tell_all(|| Command::ReplaceAccess(Arc::clone(&next)));
        Ok(())
    }

    /// Waits until the server has stopped. Cancel safe.
    pub async fn wait(&self) {
        let mut stopped = self.stopped.clone();
        // An error means that the control thread is gone, which is as good as stopped.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Goes on with other options: limits, credentials, the lame duck mode's times, the file with
    /// the process id, tracing. Connections stay open, except those whose credentials do not hold
    /// any more. What takes a restart, as the addresses, stays as it is;
    /// [`Loaded::changes`](crate::config::Loaded::changes) tells for a file whether there is such.
    ///
    /// # Errors
    /// When an option makes no sense or a file cannot be written. Everything stays as it was then.
    pub fn reload(&self, options: Options) -> Result<(), StartError> {
        let shared = &self.shared;
        check(&options, SHARDS_MAX)?;
        let before = shared.options();
        let options = Options {
            auth: auth(
                &options.auth,
                before.websocket.as_ref(),
                before.mqtt.as_ref(),
            )?,
            ..options
        };
        if let Some(path) = &options.pid_file
            && before.pid_file.as_ref() != Some(path)
        {
            let failed = |source| StartError::File {
                path: path.clone(),
                source,
            };
            ports_file::write_pid(path).map_err(failed)?;
        }
        let Ok(mut current) = shared.access.lock() else {
            return Ok(());
        };
        let wrong = |error: &dyn std::fmt::Display| StartError::Option(error.to_string());
        let access = options.auth.directory().in_place_of(&current);
        let mut access = access.map_err(|error| wrong(&error))?;
        if access.operators().is_some() {
            // What accounts import may be of those that were found since the start, and of others newer
            // tokens may have come since.
            let resolver = shared.common.resolver.get();
            let is_kept = resolver.is_some_and(|resolver| resolver.directory().is_some());
            let newer = if is_kept {
                newer_tokens(&current, &access)
            } else {
                Vec::new()
            };
            let settled = access.with_accounts(&newer, unix_seconds());
            access = settled.map_err(|error| wrong(&error))?;
        }
        let access = Arc::new(access);
        self.reload_tls()?;
        let options = reloaded(&before, options);
        let config = Arc::new(ShardConfig {
            limits: limits(&options),
            auth: options.auth.clone(),
            traces: options.trace_protocol,
            ..ShardConfig::clone(&shared.common.config)
        });
        let info = ServerInfo {
            auth_required: options.auth.is_required(),
            max_payload: options.limits.payload_bytes_max,
            ..shared.info.clone()
        };
        let remotes = options.leafnodes.remotes.clone();
        *shared
            .options
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(options);
        *current = Arc::clone(&access);
        // Under the lock, so that all hear of several in the same order.
        shared.tell_keeper(&access);
        shared.tell_all(|| {
            let access = Arc::clone(&access);
            Command::Reload(Arc::clone(&config), Box::new(info.clone()), access)
        });
        shared.remotes.send_replace(remotes);
        Ok(())
    }

    /// What users of the system account ask to have reloaded. From now on it goes here, and nowhere else;
    /// as long as nobody looks, they are told that there is nothing to reload.
    pub fn reload_requests(&self) -> ReloadRequests {
        self.shared.reloader.listen()
    }

    /// Reads the certificates, keys and authorities of all listeners again, for the connections
    /// that come from now on. Those that are open stay as they are.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit. Everything stays as it was then.
    pub fn reload_tls(&self) -> Result<(), StartError> {
        let listeners = &self.shared.common.listeners;
        let websocket = listeners.websocket.as_ref();
        let mqtt = listeners.mqtt.as_ref();
        let all = [&listeners.tls, &listeners.leafs_tls]
            .into_iter()
            .chain(websocket.map(|websocket| &websocket.tls))
            .chain(mqtt.map(|mqtt| &mqtt.tls));
        let read = all.flatten().map(|tls| Ok((tls, tls.read_again()?)));
        let read: Result<Vec<_>, TlsError> = read.collect();
        // Only once all of them are known to be fine.
        for (tls, config) in read.map_err(|error| StartError::Tls(error.to_string()))? {
            tls.replace(config);
        }
        Ok(())
    }

    /// A client in this process, without a socket. It is subject to the same limits and
    /// credentials as any other.
    ///
    /// # Errors
    /// When the server has stopped or asks for credentials; see [`Handle::client_with`].
    pub async fn client(&self) -> Result<Client, ClientError> {
        self.client_with(&ConnectOptions::default()).await
    }

    /// The same, with a name, credentials and so on.
    ///
    /// # Errors
    /// When the server has stopped or does not admit these credentials.
    pub async fn client_with(&self, options: &ConnectOptions) -> Result<Client, ClientError> {
        let (ours, theirs) = tokio::io::duplex(IN_PROCESS_PIPE_BYTES);
        self.shared.assign(Transport::InProcess(theirs));
        Client::over(ours, options).await
    }

    /// What clients must show.
    pub(crate) fn auth(&self) -> Auth {
        self.shared.options().auth.clone()
    }

    /// Who wants what, for those who publish in this process.
    pub(crate) fn interest(&self) -> Interest {
        Interest {
            common: Arc::clone(&self.shared.common),
            shard: self.shared.shards[0].clone(),
        }
    }

    pub(crate) fn default_bridge(&self) -> &DefaultBridge {
        &self.shared.bridge
    }
}

/// What a server goes by after a reload: the new where that can be changed, the old elsewhere.
fn reloaded(before: &Options, new: Options) -> Options {
    Options {
        limits: Limits {
            // Connections know from the start whether there are headers.
            headers: before.limits.headers,
            ..new.limits
        },
        auth: new.auth,
        lame_duck_duration: new.lame_duck_duration,
        lame_duck_grace_period: new.lame_duck_grace_period,
        pid_file: new.pid_file,
        origin: new.origin,
        trace_protocol: new.trace_protocol,
        leafnodes: LeafnodeOptions {
            remotes: new.leafnodes.remotes,
            ..before.leafnodes.clone()
        },
        ..before.clone()
    }
}

/// How many shards there are when nobody says: see `docs/performance.md`.
fn default_shards(most: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.div_ceil(2).min(most)
}

fn check(options: &Options, shards_max: usize) -> Result<(), StartError> {
    let limits = &options.limits;
    let jetstream = options.jetstream.as_ref();
    let domain = jetstream.and_then(|js| js.domain.as_deref());
    let is_no_token = |c: char| c.is_whitespace() || ".*>".contains(c);
    let problem = if options.shards.is_some_and(|n| n.get() > shards_max) {
        format!("shards must be at most {shards_max}")
    } else if limits.payload_bytes_max > limits.pending_bytes_max {
        "max_payload cannot be higher than max_pending".into()
    } else if limits.payload_bytes_max >= 1_000_000_000 {
        "max_payload must be less than 1,000,000,000".into()
    } else if limits.control_line_bytes_max > 64 * 1024 {
        "max_control_line must be at most 65,536".into()
    } else if options
        .server_name
        .as_deref()
        .is_some_and(|n| n.contains(char::is_whitespace))
    {
        "server name cannot contain spaces".into()
    } else if domain.is_some_and(|d| d.is_empty() || d.contains(is_no_token)) {
        "invalid domain name: may not contain ., * or >".into()
    } else if options.mqtt.is_some() && jetstream.is_none() {
        "mqtt requires JetStream to be enabled if running in standalone mode".into()
    } else if options.monitoring_tls && options.tls.is_none() {
        "monitoring over HTTPS needs TLS".into()
    } else if options.lame_duck_grace_period >= options.lame_duck_duration {
        "lame duck grace period must be shorter than the lame duck duration".into()
    } else {
        return crate::leaf::check(options).map_err(StartError::Option);
    };
    Err(StartError::Option(problem))
}

fn bind(host: &str, port: u16) -> Result<TcpListener, StartError> {
    listen::bind(host, port).map_err(|source| StartError::Listen {
        host: host.into(),
        port,
        source,
    })
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(StartError::Thread)
}

fn server_info(options: &Options, addresses: &Addresses, server_id: String) -> ServerInfo {
    let (host, port, ip) = match options.client_advertise.as_deref().map(split_host_port) {
        Some((host, Some(port))) => (host, port, None),
        Some((host, None)) => (host, addresses.clients.port(), None),
        None => (options.host.clone(), addresses.clients.port(), None),
    };
    ServerInfo {
        server_name: options
            .server_name
            .clone()
            .unwrap_or_else(|| server_id.clone()),
        server_id,
        version: COMPATIBLE_VERSION.into(),
        fanline: VERSION.into(),
        host,
        port,
        auth_required: options.auth.is_required(),
        headers: options.limits.headers,
        max_payload: options.limits.payload_bytes_max,
        jetstream: options.jetstream.is_some(),
        domain: options.jetstream.as_ref().and_then(|js| js.domain.clone()),
        ip,
        connect_urls: listen::reachable_urls(addresses.clients),
        tls: tls_told(options.tls.as_ref(), options.allow_non_tls),
        websocket: options
            .websocket
            .as_ref()
            .zip(addresses.websocket)
            .map(|(websocket, address)| Box::new(websocket_info(websocket, address))),
        leafs: None,
        lame_duck: false,
        started_at: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    }
}

fn tls_told(tls: Option<&TlsOptions>, allow_non_tls: bool) -> TlsTold {
    tls.map_or_else(TlsTold::default, |tls| TlsTold {
        required: !allow_non_tls,
        available: allow_non_tls,
        verify: tls.client_certificates.is_required(),
    })
}

/// What WebSocket clients are told of where they are.
fn websocket_info(options: &WebSocketOptions, address: SocketAddr) -> ListenerInfo {
    let advertised = options.advertise.as_deref().map(split_host_port);
    let (host, port) = match advertised.clone() {
        Some((host, port)) => (host, port.unwrap_or_else(|| address.port())),
        None => (options.host.clone(), address.port()),
    };
    ListenerInfo {
        connect_urls: match advertised {
            Some(_) => vec![format!("{host}:{port}")],
            None => listen::reachable_urls(address),
        },
        host,
        port,
        tls: tls_told(options.tls.as_ref(), false),
    }
}

fn split_host_port(text: &str) -> (String, Option<u16>) {
    match text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse()))
    {
        Some((host, Ok(port))) => (host.into(), Some(port)),
        _ => (text.into(), None),
    }
}

fn log_start(options: &Options, info: &ServerInfo, addresses: &Addresses) {
    info!("Starting {}", options.program_name);
    info!("  Version:  {COMPATIBLE_VERSION} (Fanline {VERSION})");
    info!("  Name:     {}", info.server_name);
    info!("  ID:       {}", info.server_id);
    if let Some(origin) = &options.origin {
        let path = origin.path.display();
        info!("Using configuration file: {path} ({})", origin.digest);
    }
    if let Some(monitoring) = addresses.monitoring {
        let scheme = if options.monitoring_tls {
            "https"
        } else {
            "http"
        };
        info!("Starting {scheme} monitor on {monitoring}");
    }
}

fn log_ready(options: &Options, addresses: &Addresses) {
    let shown = format!("{}:{}", options.host, addresses.clients.port());
    if let Some((websocket, address)) = options.websocket.as_ref().zip(addresses.websocket) {
        let scheme = if websocket.tls.is_some() { "wss" } else { "ws" };
        let (host, port) = (&websocket.host, address.port());
        info!("Listening for websocket clients on {scheme}://{host}:{port}");
    }
    if let Some((mqtt, address)) = options.mqtt.as_ref().zip(addresses.mqtt) {
        let scheme = if mqtt.tls.is_some() { "tls" } else { "mqtt" };
        let (host, port) = (&mqtt.host, address.port());
        info!("Listening for MQTT clients on {scheme}://{host}:{port}");
    }
    if let Some((listener, address)) =
        (options.leafnodes.listener.as_ref()).zip(addresses.leafnodes)
    {
        let (host, port) = (&listener.host, address.port());
        info!("Listening for leafnode connections on {host}:{port}");
    }
    info!("Listening for client connections on {shown}");
    if let Some(path) = &options.unix_socket {
        info!("Listening for client connections on {}", path.display());
    }
    if options.tls.is_some() {
        info!("TLS required for client connections");
    }
    info!("Server is ready");
}

/// Writes the files that were asked for; returns those to be removed at the end.
fn write_files(options: &Options, addresses: &Addresses) -> Result<Vec<PathBuf>, StartError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| StartError::File { path, source }
    };
    if let Some(path) = &options.pid_file {
        ports_file::write_pid(path).map_err(failed(path))?;
    }
    let ports_file = options
        .ports_file_dir
        .as_ref()
        .map(|folder| ports_file::write_ports(folder, addresses).map_err(failed(folder)));
    let files = ports_file.transpose()?.into_iter();
    Ok(files.chain(options.unix_socket.clone()).collect())
}

/// Starts a thread for each shard and one that accepts and controls.
fn launch(
    mut shared: Arc<Shared>,
    keeper: Option<StartKeeper>,
    sockets: Sockets,
    files: Vec<PathBuf>,
) -> Result<Handle, StartError> {
    let mut inboxes = Vec::new();
    let unshared = Arc::get_mut(&mut shared).expect("no thread runs yet");
    for _ in 0..unshared.common.connections.len() {
        let (sender, inbox) = mpsc::unbounded_channel();
        unshared.shards.push(sender);
        inboxes.push(inbox);
    }
    // First: what is kept is there before anybody asks for it.
    let keeper = keeper
        .map(|start| start(&shared.common, &shared.info))
        .transpose()
        .map_err(StartError::Keeper)?;
    let unshared = Arc::get_mut(&mut shared).expect("the keeper has what is common only");
    unshared.keeper = keeper.as_ref().map(|keeper| keeper.commands.clone());
    let mut threads = Vec::new();
    for (index, inbox) in inboxes.into_iter().enumerate() {
        let (common, info) = (Arc::clone(&shared.common), shared.info.clone());
        let thread = std::thread::Builder::new().name(format!("shard-{index}"));
        let run = move || shell::block_on(shell::run(index, info, common, inbox)).map(drop);
        threads.push(thread.spawn(run).map_err(StartError::Thread)?);
    }
    if let Some(resolver) = &shared.options().resolver {
        let running = resolver::start(resolver, &shared).map_err(StartError::Resolver)?;
        // Nobody else sets it.
        let _ = shared.common.resolver.set(running);
    }
    log_ready(&shared.options(), &shared.addresses);
    let (orders, inbox) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let control = control::Control {
        shared: Arc::clone(&shared),
        threads,
        keeper,
        files,
        stopped: stop,
    };
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || shell::block_on(control.run(sockets, inbox)).map(drop))
        .map_err(StartError::Thread)?;
    Ok(Handle {
        shared,
        orders,
        stopped,
    })
}
