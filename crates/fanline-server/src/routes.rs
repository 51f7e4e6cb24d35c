//! Routes to the other servers of the cluster: each address has a task that dials it.
//!
//! Configured addresses are dialed for as long as the server runs, addresses learned by gossip until they do
//! not answer any more. A task pauses while its peer is connected by another route.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::route::{GossipMode, RouteDial, RouteEnded, RouteEvent, RouteOutcome};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;
use tracing::{debug, error};

use crate::cluster::{DialledRoute, RouteAddress};
use crate::identity::random_u64;
use crate::ipc::Command;
use crate::listen;
use crate::options::ClusterOptions;
use crate::shared::Shared;

/// Time limit of connecting.
const DIAL_TIME: Duration = Duration::from_secs(1);
/// Delay between attempts, and its limit if it doubles.
const DELAY: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(30);
/// Largest random addition to a delay. Servers that dial each other at the same moment close each other's
/// connections, and must not repeat this.
const JITTER_MAX: Duration = Duration::from_millis(100);
/// Of the failed first attempts, one in this number is logged, after the first one.
const LOGGED_ONE_IN: u64 = 3600;
/// Largest number of servers learned by gossip that are dialed at a time. Further ones are ignored.
const IMPLICIT_MAX: usize = 1024;

/// State that the tasks share.
struct Mesh {
    shared: Arc<Shared>,
    cluster: ClusterOptions,
    configured: Vec<RouteAddress>,
    /// Registered peers by their ids, each with its addresses for clients.
    peers: RefCell<BTreeMap<String, Vec<String>>>,
    /// Notified when a peer has left.
    left: Notify,
    /// Addresses learned by gossip that have a task.
    implicit: RefCell<HashSet<String>>,
}

/// Runs the dialing tasks. Never returns while the server runs.
pub(crate) async fn run_routes(
    shared: Arc<Shared>,
    mut events: mpsc::UnboundedReceiver<RouteEvent>,
) {
    let options = shared.options();
    let Some(cluster) = options.cluster.clone() else {
        return;
    };
    let configured = cluster.routes.iter();
    let configured = configured.filter_map(|url| RouteAddress::parse(url).ok());
    let mesh = Rc::new(Mesh {
        configured: configured.collect(),
        shared,
        cluster,
        peers: RefCell::default(),
        left: Notify::new(),
        implicit: RefCell::default(),
    });
    let mut tasks = tokio::task::JoinSet::new();
    for (id, address) in (1..).zip(mesh.configured.clone()) {
        let mesh = Rc::clone(&mesh);
        tasks.spawn_local(async move { mesh.keep_dialing(id, &address).await });
    }
    let mut next_id = mesh.configured.len() as u64;
    while let Some(event) = events.recv().await {
        // Removes tasks that have ended.
        while tasks.try_join_next().is_some() {}
        match event {
            RouteEvent::Joined {
                id, client_urls, ..
            } => {
                mesh.peers.borrow_mut().insert(id, client_urls);
                mesh.announce_urls();
            }
            RouteEvent::Left { id } => {
                mesh.peers.borrow_mut().remove(&id);
                mesh.left.notify_waiters();
                mesh.announce_urls();
            }
            RouteEvent::Discovered {
                id,
                url,
                gossip_mode,
            } => {
                let Some(address) = mesh.implicit_address(&id, &url) else {
                    continue;
                };
                next_id += 1;
                let (mesh, number) = (Rc::clone(&mesh), next_id);
                tasks.spawn_local(async move {
                    mesh.dial_discovered(number, &address, gossip_mode).await;
                    mesh.implicit.borrow_mut().remove(&url);
                });
            }
        }
    }
}

impl Mesh {
    /// Announces the addresses of this server and of its peers to clients.
    fn announce_urls(&self) {
        let routes = self.shared.common.config.routes.as_ref();
        let own = routes.map_or(&[][..], |routes| &routes.client_urls);
        if self.cluster.no_advertise {
            return;
        }
        let mut urls = own.to_vec();
        for url in self.peers.borrow().values().flatten() {
            if !urls.contains(url) {
                urls.push(url.clone());
            }
        }
        let urls: Arc<[String]> = urls.into();
        self.shared
            .send_to_all(|| Command::SetConnectUrls(Arc::clone(&urls)));
    }

    /// Returns the address of a server that a peer has announced, unless it is known. Marks it as known.
    fn implicit_address(&self, id: &str, url: &str) -> Option<RouteAddress> {
        let announced = RouteAddress::parse(url).ok()?;
        let is_configured = |known: &RouteAddress| known.is_same_place(&announced);
        let mut implicit = self.implicit.borrow_mut();
        if self.peers.borrow().contains_key(id)
            || self.configured.iter().any(is_configured)
            || implicit.len() >= IMPLICIT_MAX
            || !implicit.insert(url.to_owned())
        {
            return None;
        }
        // Servers of one cluster have the same credentials.
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(RouteAddress {
            user: text(&self.cluster.user),
            password: text(&self.cluster.password),
            ..announced
        })
    }

    /// Dials a configured address again and again. Returns if the address is this server's.
    async fn keep_dialing(&self, id: u64, address: &RouteAddress) {
        let dial = RouteDial {
            id,
            user: address.user.clone(),
            password: address.password.clone(),
            is_explicit: true,
            gossip_mode: GossipMode::Default,
        };
        let mut attempts: u64 = 0;
        let mut was_reached = false;
        loop {
            attempts += 1;
            match self.dial(address, &dial).await {
                Ok(ended) => {
                    if ended.was_ready {
                        (attempts, was_reached) = (0, true);
                    }
                    // A name may have several addresses, of which only one is this server's.
                    let is_fixed = address.host.parse::<IpAddr>().is_ok();
                    match ended.outcome {
                        RouteOutcome::OwnServer if is_fixed => return,
                        RouteOutcome::Duplicate(peer) => self.wait_for_end(&peer).await,
                        RouteOutcome::OwnServer | RouteOutcome::Ended => {}
                    }
                }
                Err(error) => {
                    if was_reached || attempts == 1 || attempts.is_multiple_of(LOGGED_ONE_IN) {
                        log_failure(attempts, &error);
                    }
                }
            }
            tokio::time::sleep(self.delay(attempts) + jitter()).await;
        }
    }

    /// Dials an address learned by gossip until it does not answer any more.
    async fn dial_discovered(&self, id: u64, address: &RouteAddress, gossip_mode: GossipMode) {
        let dial = RouteDial {
            id,
            user: address.user.clone(),
            password: address.password.clone(),
            is_explicit: false,
            gossip_mode,
        };
        let mut failures = 0;
        while failures <= u64::from(self.cluster.connect_retries) {
            match self.dial(address, &dial).await {
                Ok(ended) if ended.was_ready => failures = 0,
                Ok(ended) if ended.outcome != RouteOutcome::Ended => return,
                Ok(_) => failures += 1,
                Err(error) => {
                    failures += 1;
                    log_failure(failures, &error);
                }
            }
            let delay = match failures {
                0 => Duration::ZERO,
                failures => self.delay(failures),
            };
            tokio::time::sleep(delay + jitter()).await;
        }
    }

    /// Waits until a peer is not connected any more.
    async fn wait_for_end(&self, peer: &str) {
        loop {
            let left = self.left.notified();
            if !self.peers.borrow().contains_key(peer) {
                return;
            }
            left.await;
        }
    }

    /// Returns the delay after this number of failed attempts.
    fn delay(&self, attempts: u64) -> Duration {
        if !self.cluster.connect_backoff {
            return DELAY;
        }
        let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 1_u32.checked_shl(doublings.min(16)).unwrap_or(u32::MAX);
        DELAY.saturating_mul(factor).min(DELAY_MAX)
    }

    /// Connects to an address, passes the connection to the shard of routes, and waits until the connection
    /// ends.
    async fn dial(&self, address: &RouteAddress, dial: &RouteDial) -> Result<RouteEnded, String> {
        debug!("Trying to connect to route on {address}");
        let os_error = |error: &std::io::Error| crate::error::os_error_text(error);
        let Some(place) = self.resolve(address).await? else {
            return Ok(RouteEnded::default());
        };
        let stream = timeout(DIAL_TIME, TcpStream::connect(place)).await;
        let stream = stream.map_err(|_| format!("dial tcp {place}: i/o timeout"))?;
        let stream =
            stream.map_err(|error| format!("dial tcp {place}: connect: {}", os_error(&error)))?;
        let stream = stream.into_std().map_err(|error| os_error(&error))?;
        let (done, is_done) = oneshot::channel();
        self.shared.serve_route(DialledRoute {
            stream,
            dial: dial.clone(),
            host: self.certified_host(address, dial.is_explicit),
            done,
        });
        // A shard that has ended drops the sender.
        Ok(is_done.await.unwrap_or_default())
    }

    /// Returns the name that the certificate of a server must have. Gossip contains IP addresses, while
    /// certificates contain host names. So the certificate of a server that was learned by gossip must be for
    /// the first configured host name, if there is one.
    fn certified_host(&self, address: &RouteAddress, is_explicit: bool) -> String {
        let is_name = |host: &String| host.parse::<IpAddr>().is_err();
        let names = self.configured.iter().map(|known| &known.host);
        let first = names.filter(|_| !is_explicit).find(|host| is_name(host));
        first
            .filter(|_| !is_name(&address.host))
            .unwrap_or(&address.host)
            .clone()
    }

    /// Returns one of the addresses of a host at random. Returns `None` if they are all this server's.
    async fn resolve(&self, address: &RouteAddress) -> Result<Option<SocketAddr>, String> {
        if let Ok(ip) = address.host.parse::<IpAddr>() {
            return Ok(Some(SocketAddr::new(ip, address.port)));
        }
        let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await;
        let found = found.map_err(|_| format!("lookup {}: no such host", address.host))?;
        let mut found: Vec<SocketAddr> = found.collect();
        let own_port = self.shared.addresses.cluster.map(|own| own.port());
        if Some(address.port) == own_port {
            let own = listen::interfaces();
            found.retain(|place| !own.contains(&place.ip()));
        }
        let at = random_u64().checked_rem(found.len() as u64);
        let at = at.and_then(|at| usize::try_from(at).ok());
        Ok(at.and_then(|at| found.get(at).copied()))
    }
}

fn log_failure(attempt: u64, error: &str) {
    error!("Error trying to connect to route (attempt {attempt}): {error}");
}

/// Returns a random time.
fn jitter() -> Duration {
    let most = u64::try_from(JITTER_MAX.as_millis()).unwrap_or(1);
    Duration::from_millis(random_u64() % most.max(1))
}
