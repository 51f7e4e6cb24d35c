//! The thread that accepts connections, serves monitoring, and stops the server.

use std::cell::OnceCell;
use std::io;
use std::net::TcpListener;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fanline_engine::auth::AccountId;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tracing::{debug, error, info, warn};

use super::Sockets;
use crate::callout;
use crate::gateways::run_gateways;
use crate::ipc::{Command, Incoming, Listener, Order};
use crate::jetstream;
use crate::monitoring::{self, EVENTS_MAX, Monitor, System};
use crate::remotes::run_remotes;
use crate::routes::run_routes;
use crate::shared::Shared;

/// Time limit for the JetStream service to announce the stop to clients.
const ANNOUNCE_STOP_MAX: Duration = Duration::from_secs(1);

/// Time for the system account to start before connections are accepted, so that it also reports the first
/// connections.
const SYSTEM_START_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) threads: Vec<JoinHandle<io::Result<()>>>,
    pub(crate) jetstream: Option<jetstream::Running>,
    /// Files to remove at the end.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) stopped: watch::Sender<bool>,
}

impl Control {
    pub(crate) async fn run(
        mut self,
        sockets: Sockets,
        mut orders: mpsc::UnboundedReceiver<Order>,
    ) {
        let monitor = Rc::new(Monitor::new(Arc::clone(&self.shared)));
        let system = Rc::new(OnceCell::new());
        let is_served = !self.shared.options().no_system_account;
        let starting = is_served.then(|| {
            let starting = start_system(Rc::clone(&monitor), Rc::clone(&system));
            tokio::task::spawn_local(starting)
        });
        let (to, wanted) = mpsc::unbounded_channel();
        // The channel contains at most one request for each connection.
        let _ = self.shared.common.callout.set(to);
        tokio::task::spawn_local(callout::run(Arc::clone(&self.shared), wanted));
        if let Some(starting) = starting {
            // If the start takes longer, it continues in the background.
            let _ = tokio::time::timeout(SYSTEM_START_MAX, starting).await;
        }
        if let Some(listener) = sockets.monitoring {
            tokio::task::spawn_local(async move {
                if let Err(error) = monitoring::serve(listener, monitor).await {
                    error!("Monitoring ended: {error}");
                }
            });
        }
        let dialling = run_remotes(Arc::clone(&self.shared));
        let dialling = tokio::task::spawn_local(dialling).abort_handle();
        let (to, route_events) = mpsc::unbounded_channel();
        // The first shard bounds the number of events that it reports.
        let _ = self.shared.common.route_events.set(to);
        let routing = run_routes(Arc::clone(&self.shared), route_events);
        let routing = tokio::task::spawn_local(routing).abort_handle();
        let (to, gateway_events) = mpsc::unbounded_channel();
        // The first shard bounds the number of events that it reports.
        let _ = self.shared.common.gateway_events.set(to);
        let gateways = run_gateways(Arc::clone(&self.shared), gateway_events);
        let gateways = tokio::task::spawn_local(gateways).abort_handle();
        let order = tokio::select! {
            order = orders.recv() => Ok(order),
            error = accept(sockets.clients, &self.shared, Listener::Clients) => Err(error),
            error = accept_if(sockets.websocket, &self.shared, Listener::WebSocket) => Err(error),
            error = accept_if(sockets.mqtt, &self.shared, Listener::Mqtt) => Err(error),
            error = accept_if(sockets.leafnodes, &self.shared, Listener::Leafs) => Err(error),
            error = accept_if(sockets.cluster, &self.shared, Listener::Routes) => Err(error),
            error = accept_if(sockets.gateway, &self.shared, Listener::Gateways) => Err(error),
            error = accept_unix(sockets.unix, &self.shared) => Err(error),
        };
        let order = order.unwrap_or_else(|error: io::Error| {
            error!("Accepting connections ended: {error}");
            Some(Order::Stop)
        });
        // If all handles are dropped, only the end of the process ends the server.
        if order.is_none() {
            std::future::pending::<()>().await;
        }
        if order == Some(Order::LameDuck) {
            announce(&system, "LAMEDUCK").await;
            tokio::select! {
                () = self.run_lame_duck() => {}
                () = stop_ordered(&mut orders) => {}
            }
        }
        dialling.abort();
        routing.abort();
        gateways.abort();
        announce(&system, "SHUTDOWN").await;
        self.stop().await;
    }

    /// Runs lame duck mode. The listeners are closed already.
    async fn run_lame_duck(&self) {
        info!("Entering lame duck mode, stop accepting new clients");
        let shared = &self.shared;
        shared.send_to_all(|| Command::AnnounceLameDuck);
        if shared.common.connection_count() == 0 {
            return;
        }
        let options = shared.options();
        tokio::time::sleep(options.lame_duck_grace_period).await;
        let clients = shared.common.connection_count().max(1);
        let span = options
            .lame_duck_duration
            .saturating_sub(options.lame_duck_grace_period);
        info!("Closing existing clients");
        // A step takes at least 10 ms, and closes so many clients that all steps end within the configured
        // duration.
        let steps = (span.as_millis() / 10).clamp(1, clients as u128);
        let steps = usize::try_from(steps).unwrap_or(clients);
        let step = span / u32::try_from(steps).unwrap_or(u32::MAX);
        while shared.common.connection_count() > 0 {
            let _ = shared
                .fullest_shard()
                .send(Command::CloseSome(clients.div_ceil(steps)));
            tokio::time::sleep(step).await;
        }
    }

    async fn stop(&mut self) {
        info!("Initiating Shutdown...");
        if let Some(jetstream) = &self.jetstream {
            let (done, is_done) = oneshot::channel();
            let _ = jetstream
                .commands
                .send(jetstream::Command::AnnounceStop(done));
            // The JetStream service may be waiting for a slow disk. The stop of the server must not take that
            // long, so this wait has a time limit.
            let _ = tokio::time::timeout(ANNOUNCE_STOP_MAX, is_done).await;
        }
        self.shared.send_to_all(|| Command::Stop);
        for thread in self.threads.drain(..) {
            join("A shard", thread).await;
        }
        // JetStream stops after the shards, so that their last messages are stored.
        if let Some(jetstream) = self.jetstream.take() {
            let _ = jetstream.commands.send(jetstream::Command::Stop);
            join("The JetStream service", jetstream.thread).await;
        }
        for file in &self.files {
            if let Err(error) = std::fs::remove_file(file) {
                warn!("{} could not be removed: {error}", file.display());
            }
        }
        info!("Server Exiting..");
        // This fails if there is no receiver.
        let _ = self.stopped.send(true);
    }
}

/// Starts the system account's services.
async fn start_system(monitor: Rc<Monitor>, system: Rc<OnceCell<Rc<System>>>) {
    let shared = &monitor.shared;
    let (to, events) = mpsc::channel(EVENTS_MAX);
    let _ = shared.common.events.set(to);
    let started = async {
        let client = shared.system_client(AccountId::SYSTEM).await?;
        System::start(client, Rc::clone(&monitor), events).await
    };
    match started.await {
        Ok(started) => drop(system.set(started)),
        // The server stopped before the services had started.
        Err(error) => debug!("System account services were not started: {error}"),
    }
}

/// Announces a change of the server's state in the system account.
async fn announce(system: &OnceCell<Rc<System>>, word: &str) {
    /// Time limit of the announcement.
    const TIME_LIMIT: Duration = Duration::from_millis(500);
    if let Some(system) = system.get() {
        let _ = tokio::time::timeout(TIME_LIMIT, system.announce(word)).await;
    }
}

/// Waits for a thread that ends soon.
async fn join(name: &str, thread: JoinHandle<io::Result<()>>) {
    while !thread.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    match thread.join() {
        Ok(Ok(())) => {}
        Ok(Err(error)) => error!("{name} could not run: {error}"),
        Err(_) => error!("{name} has panicked"),
    }
}

/// Waits for the order to stop. Never returns if all handles are dropped.
async fn stop_ordered(orders: &mut mpsc::UnboundedReceiver<Order>) {
    loop {
        match orders.recv().await {
            Some(Order::Stop) => return,
            Some(Order::LameDuck) => {}
            None => std::future::pending().await,
        }
    }
}

/// Pause after a failed accept, such as when the process has no file descriptors left.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(10);

/// Accepts connections over TCP until the socket fails.
async fn accept(socket: TcpListener, shared: &Shared, listener: Listener) -> io::Error {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error,
    };
    let next = async || Ok(Incoming::Tcp(socket.accept().await?.0.into_std()?));
    accept_all(next, shared, listener).await
}

async fn accept_if(socket: Option<TcpListener>, shared: &Shared, listener: Listener) -> io::Error {
    match socket {
        Some(socket) => accept(socket, shared, listener).await,
        None => std::future::pending().await,
    }
}

#[cfg(unix)]
async fn accept_unix(socket: Option<UnixListener>, shared: &Shared) -> io::Error {
    let Some(socket) = socket else {
        return std::future::pending().await;
    };
    let socket = match tokio::net::UnixListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error,
    };
    let next = async || Ok(Incoming::Unix(socket.accept().await?.0.into_std()?));
    accept_all(next, shared, Listener::Clients).await
}

/// Accepts connections and assigns them to shards until accepting fails.
async fn accept_all(
    next: impl AsyncFn() -> io::Result<Incoming>,
    shared: &Shared,
    listener: Listener,
) -> io::Error {
    loop {
        let arrival = arrival(shared).await;
        match next().await {
            Ok(incoming) => shared.accept(incoming, listener, arrival),
            Err(error) => pause_after(&error).await,
        }
    }
}

/// Waits until the number of accepted connections that are not yet opened is below its limit.
async fn arrival(shared: &Shared) -> OwnedSemaphorePermit {
    let arrivals = Arc::clone(&shared.common.arrivals);
    arrivals.acquire_owned().await.expect("it is never closed")
}

async fn pause_after(error: &io::Error) {
    // `ConnectionAborted` means that the peer disconnected between the TCP handshake and the accept.
    if error.kind() != io::ErrorKind::ConnectionAborted {
        warn!("Temporary accept error: {error}");
        tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
    }
}
