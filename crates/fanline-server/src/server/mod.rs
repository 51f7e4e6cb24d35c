//! Starts, controls, and stops a server.

mod control;
mod info;
mod reload;
mod settings;
mod sockets;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use fanline_engine::leaf::LeafListener;
use fanline_engine::{Auth, Limits, SHARDS_MAX, ServerInfo, ShardConfig};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tracing::{info, warn};

use self::info::server_info;
use self::sockets::Sockets;
use crate::auth_pool::AuthPool;
use crate::client::{Client, ClientError, ConnectOptions};
use crate::error::StartError;
use crate::ipc::{ARRIVALS_MAX, Common, IN_PROCESS_PIPE_BYTES, Mailbox, Order, Transport};
use crate::jetstream::StartJetStream;
use crate::options::{Addresses, Options};
use crate::shared::{Interest, ReloadRequests, Reloader, Shared};
use crate::sync::{AtomicU64, AtomicUsize, Lock};
use crate::threads::block_on;
use crate::version::{COMPATIBLE_VERSION, VERSION};
use crate::{cluster, gateway, identity, jetstream, leaf, ports_file, resolver, runtime};

/// Starts servers; see [`Server::start`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts a server on its own threads and returns when it accepts connections.
    ///
    /// The server runs until [`Handle::shutdown`], even if the handle is dropped.
    ///
    /// # Errors
    ///
    /// Fails if an address cannot be listened on, an option is invalid, or a requested file cannot be
    /// written. The server does not run then.
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
        let routes = options.cluster.as_ref().map_or(0, |own| own.routes.len());
        let cluster = cluster::of_jetstream(&options);
        let jetstream = jetstream
            .map(|own| jetstream::starter(own, cluster, routes))
            .transpose()?;
        start(options, jetstream)
    }
}

/// Starts a server, with the given JetStream service if there is one.
pub(crate) fn start(
    options: Options,
    jetstream: Option<StartJetStream>,
) -> Result<Handle, StartError> {
    let services = usize::from(jetstream.is_some());
    settings::check(&options, SHARDS_MAX - services)?;
    let is_unnamed = is_unnamed(&options);
    let options = completed(options)?;
    let listeners = settings::listeners(&options)?;
    let tls = settings::tls(&options)?;
    let (sockets, addresses) = Sockets::bind(&options)?;
    let key = identity::new_server_key();
    let mut info = server_info(&options, &addresses, key.public().encode());
    info.cluster_is_generated = is_unnamed;
    let leafs = leaf_listener(&options, &addresses)?;
    // The files are written before the log says that the server is ready, because writing may fail.
    let files = write_files(&options, &addresses)?;
    log_start(&options, &info, &addresses);
    let shards = options
        .shards
        .map_or_else(|| default_shards(SHARDS_MAX - services), NonZeroUsize::get);
    let routes = cluster::settings(&options, &addresses, shards).map(Arc::new);
    let gateways = gateway::settings(&options, &addresses).map(Arc::new);
    let common = Arc::new(Common {
        config: Arc::new(ShardConfig {
            limits: settings::limits(&options),
            auth: options.auth.clone(),
            shards: shards + services,
            traces: options.trace_protocol,
            leafs,
            routes,
            gateways,
        }),
        mailboxes: (0..shards + services).map(|_| Mailbox::default()).collect(),
        interest: AtomicU64::new(0),
        jetstream: OnceLock::new(),
        auth_pool: AuthPool::default(),
        sync_times: Arc::default(),
        shards: OnceLock::new(),
        resolver: OnceLock::new(),
        callout: OnceLock::new(),
        route_events: OnceLock::new(),
        gateway_events: OnceLock::new(),
        started: Instant::now(),
        events: OnceLock::new(),
        listeners,
        connections: (0..shards).map(|_| AtomicUsize::new(0)).collect(),
        arrivals: Arc::new(Semaphore::new(ARRIVALS_MAX * shards)),
        closed_clients_max: options.closed_clients_max,
        panic_stop: Arc::default(),
    });
    let shared = Arc::new(Shared {
        common,
        shards: Vec::new(),
        jetstream: None,
        access: Lock::new(options.auth.directory()),
        access_changed: Notify::new(),
        next_cid: AtomicU64::new(1),
        next_shard: AtomicUsize::new(0),
        started_at: SystemTime::now(),
        info,
        key,
        cluster: watch::Sender::new(options.cluster.clone()),
        remotes: watch::Sender::new(options.leafnodes.remotes.clone()),
        options: Lock::new(Arc::new(options)),
        tls: Lock::new(tls),
        reloader: Reloader::new(),
        addresses,
        default_bridge: Lock::default(),
    });
    launch(shared, jetstream, sockets, files)
}

/// Returns the settings of the listener for leaf nodes, if there is one.
fn leaf_listener(
    options: &Options,
    addresses: &Addresses,
) -> Result<Option<Arc<LeafListener>>, StartError> {
    let listener = options.leafnodes.listener.as_ref();
    let settings = listener
        .zip(addresses.leafnodes)
        .map(|(listener, address)| leaf::listener_info(listener, address))
        .transpose();
    Ok(settings.map_err(StartError::Option)?.map(Arc::new))
}

/// Returns the options with the access rules of files, and with a name for a cluster that has none.
fn completed(options: Options) -> Result<Options, StartError> {
    let generated = is_unnamed(&options).then(identity::new_event_id);
    let of_gateway = options.gateway.as_ref().map(|own| own.name.clone());
    Ok(Options {
        auth: settings::auth(&options)?,
        cluster_name: options.cluster_name.or(of_gateway).or(generated),
        ..options
    })
}

/// Returns whether the server is in a cluster without a name.
fn is_unnamed(options: &Options) -> bool {
    let is_named = options.cluster_name.is_some() || options.gateway.is_some();
    options.cluster.is_some() && !is_named
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
    /// Returns the folder of stored streams. Returns `None` without JetStream, or if JetStream stores in
    /// memory only.
    pub fn store_folder(&self) -> Option<PathBuf> {
        let options = self.shared.options();
        let jetstream = options.jetstream.as_ref()?;
        let store_dir = jetstream.store_dir.as_deref();
        store_dir.map(jetstream::store_folder::path_of)
    }

    /// Returns the addresses that the server listens on.
    pub fn addresses(&self) -> &Addresses {
        &self.shared.addresses
    }

    /// Returns the number of connections. It may change at any time.
    pub fn connections(&self) -> usize {
        self.shared.common.connection_count()
    }

    /// Stops the server. The server writes pending output as far as sockets accept it at once, then closes
    /// all connections. This method returns immediately; see [`Handle::wait`].
    pub fn shutdown(&self) {
        let _ = self.orders.send(Order::Stop);
    }

    /// Starts lame duck mode: closes the listeners, notifies clients, and closes them one by one after the
    /// grace period. The server stops after the last client.
    pub fn lame_duck(&self) {
        let _ = self.orders.send(Order::LameDuck);
    }

    /// Waits until the server has stopped. Cancel safe.
    pub async fn wait(&self) {
        let mut stopped = self.stopped.clone();
        // An error means that the control thread, and thus the server, has ended.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Returns whether the server stops, or has stopped, because a panic may have damaged shared state.
    pub fn has_panicked(&self) -> bool {
        self.shared.common.panic_stop.has_panicked()
    }

    /// Returns a receiver of reload requests from system account users. Only the receiver that was created
    /// last gets the requests. Without a receiver, the server rejects them.
    pub fn reload_requests(&self) -> ReloadRequests {
        self.shared.reloader.listen()
    }

    /// Connects a client in this process without a socket. The limits and credentials of all clients apply to
    /// it.
    ///
    /// # Errors
    ///
    /// Fails if the server has stopped or requires credentials; see [`Handle::client_with`].
    pub async fn client(&self) -> Result<Client, ClientError> {
        self.client_with(&ConnectOptions::default()).await
    }

    /// Connects a client in this process with a name, credentials, and other options.
    ///
    /// # Errors
    ///
    /// Fails if the server has stopped or rejects the credentials.
    pub async fn client_with(&self, options: &ConnectOptions) -> Result<Client, ClientError> {
        let (ours, theirs) = tokio::io::duplex(IN_PROCESS_PIPE_BYTES);
        self.shared.assign(Transport::InProcess(theirs), None);
        Client::over(ours, options).await
    }

    /// Returns the users and credentials of the current options.
    pub(crate) fn auth(&self) -> Auth {
        self.shared.options().auth.clone()
    }

    /// Returns the current limits of clients.
    pub(crate) fn limits(&self) -> Limits {
        self.shared.options().limits.clone()
    }

    /// Returns a way for publishers in this process to query subscriptions.
    pub(crate) fn interest(&self) -> Interest {
        Interest {
            common: Arc::clone(&self.shared.common),
            shard: self.shared.shards[0].clone(),
        }
    }
}

/// Returns the default number of shards; see `docs/performance.md`.
fn default_shards(most: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.div_ceil(2).min(most)
}

fn log_start(options: &Options, info: &ServerInfo, addresses: &Addresses) {
    info!("Starting {}", options.program_name);
    info!("  Version:  {COMPATIBLE_VERSION} (Fanline {VERSION})");
    if let Some(cluster) = &options.cluster_name {
        info!("  Cluster:  {cluster}");
    }
    if info.cluster_is_generated {
        warn!("Cluster name was dynamically generated, consider setting one");
    }
    info!("  Name:     {}", info.server_name);
    info!("  ID:       {}", info.server_id);
    if let Some(origin) = &options.origin {
        let path = origin.path.display();
        info!("Using configuration file: {path} ({})", origin.digest);
    }
    warn_of_passwords(options);
    if let Some(monitoring) = addresses.monitoring {
        let scheme = if options.monitoring_tls {
            "https"
        } else {
            "http"
        };
        info!("Starting {scheme} monitor on {monitoring}");
    }
}

/// Warns about plain passwords in the configuration.
fn warn_of_passwords(options: &Options) {
    if options.auth.directory().has_plain_passwords() {
        warn!("Plaintext passwords detected, use nkeys or bcrypt");
    }
}

fn log_ready(options: &Options, addresses: &Addresses) {
    let shown = format!("{}:{}", options.host, addresses.clients.port());
    if let Some((websocket, address)) = options.websocket.as_ref().zip(addresses.websocket) {
        let scheme = if websocket.tls.is_some() { "wss" } else { "ws" };
        let (host, port) = (&websocket.host, address.port());
        info!("Listening for websocket clients on {scheme}://{host}:{port}");
        if websocket.tls.is_none() {
            warn!("Websocket not configured with TLS. DO NOT USE IN PRODUCTION!");
        }
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
    if let Some((cluster, address)) = options.cluster.as_ref().zip(addresses.cluster) {
        let name = options.cluster_name.as_deref().unwrap_or_default();
        let (host, port) = (&cluster.host, address.port());
        info!("Cluster name is {name}");
        info!("Listening for route connections on {host}:{port}");
    }
    if let Some((gateway, address)) = options.gateway.as_ref().zip(addresses.gateway) {
        info!("Gateway name is {}", gateway.name);
        let (host, port) = (&gateway.host, address.port());
        info!("Listening for gateways connections on {host}:{port}");
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

/// Writes the PID and ports files. Returns the files to remove at the end.
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
        .map(|folder| ports_file::write_ports(folder, options, addresses).map_err(failed(folder)));
    let files = ports_file.transpose()?.into_iter();
    Ok(files.chain(options.unix_socket.clone()).collect())
}

/// Starts the control thread and a thread for each shard.
fn launch(
    mut shared: Arc<Shared>,
    jetstream: Option<StartJetStream>,
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
    let _ = unshared.common.shards.set(unshared.shards.clone());
    // JetStream starts before the shards, so that stored streams exist when the first request arrives.
    let jetstream = jetstream
        .map(|start| start(&shared.common, &shared.info))
        .transpose()
        .map_err(StartError::JetStream)?;
    let unshared =
        Arc::get_mut(&mut shared).expect("the JetStream service has what is common only");
    unshared.jetstream = jetstream
        .as_ref()
        .map(|jetstream| jetstream.commands.clone());
    let mut threads = Vec::new();
    for (index, inbox) in inboxes.into_iter().enumerate() {
        let (common, info, tls) = (
            Arc::clone(&shared.common),
            shared.info.clone(),
            shared.tls(),
        );
        let thread = std::thread::Builder::new().name(format!("shard-{index}"));
        let run = move || block_on(runtime::run(index, info, tls, common, inbox)).map(drop);
        threads.push(thread.spawn(run).map_err(StartError::Thread)?);
    }
    if let Some(resolver) = &shared.options().resolver {
        let running = resolver::start(resolver, &shared).map_err(StartError::Resolver)?;
        // Never fails, because nothing else sets the resolver.
        let _ = shared.common.resolver.set(running);
    }
    log_ready(&shared.options(), &shared.addresses);
    let (orders, inbox) = mpsc::unbounded_channel();
    shared.common.panic_stop.set_orders(orders.downgrade());
    let (stop, stopped) = watch::channel(false);
    let control = control::Control {
        shared: Arc::clone(&shared),
        threads,
        jetstream,
        files,
        stopped: stop,
    };
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || block_on(control.run(sockets, inbox)).map(drop))
        .map_err(StartError::Thread)?;
    Ok(Handle {
        shared,
        orders,
        stopped,
    })
}
