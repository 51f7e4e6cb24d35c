//! Routes to the other servers of the cluster: each address has a task that dials it.
//!
//! Configured addresses are dialed for as long as the server runs, addresses learned by gossip until they do
//! not answer any more. A task pauses while its peer is connected by another route.
//!
//! When a peer with a pool has accepted the first route, each further slot and each dedicated route has a task,
//! too, for as long as the first route lasts.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::ClientUrls;
use fanline_engine::route::{Carries, GossipMode, RouteDial, RouteEnded, RouteEvent, RouteOutcome};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tracing::{debug, error, info};

use crate::cluster::{DialledRoute, RouteAddress};
use crate::identity::random_u64;
use crate::ipc::{Command, RouteChange};
use crate::listen;
use crate::options::{ClusterOptions, Options};
use crate::shared::Shared;

/// Time limit of connecting.
pub(crate) const DIAL_TIME: Duration = Duration::from_secs(1);
/// Delay between attempts, and its limit if it doubles.
pub(crate) const DELAY: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(30);
/// Largest random addition to a delay. Servers that dial each other at the same moment close each other's
/// connections, and must not repeat this.
const JITTER_MAX: Duration = Duration::from_millis(100);
/// Of the failed first attempts, one in this number is logged, after the first one.
pub(crate) const LOGGED_ONE_IN: u64 = 3600;
/// Largest number of servers learned by gossip that are dialed at a time. Further ones are ignored.
const IMPLICIT_MAX: usize = 1024;

/// State that the tasks share.
struct Mesh {
    shared: Arc<Shared>,
    cluster: RefCell<ClusterOptions>,
    configured: RefCell<Vec<RouteAddress>>,
    /// Registered peers by their ids.
    peers: RefCell<BTreeMap<String, Peer>>,
    /// Notified when a route has ended.
    left: Notify,
    /// Addresses learned by gossip that have a task, with what is dialed there; and what gossip has announced there
    /// since the task began.
    implicit: RefCell<HashMap<(String, Carries), Option<Discovery>>>,
    /// The addresses that are dialed, by the number of the dialing task.
    dialed: RefCell<HashMap<u64, Dialed>>,
    /// The routes other than the first one that have a task, by the number of the task of the first one.
    further: RefCell<HashSet<(u64, Carries)>>,
}

/// A registered peer.
#[derive(Default)]
struct Peer {
    /// Its addresses for clients.
    client_urls: ClientUrls,
    /// Whether it accepts no more clients.
    is_leaving: bool,
    routes: HashSet<Carries>,
}

/// A server that gossip has announced.
struct Discovery {
    id: String,
    gossip_mode: GossipMode,
}

/// An address that is dialed.
struct Dialed {
    address: RouteAddress,
    /// The dial of the first route.
    first: RouteDial,
    /// Whether the peer has accepted the first route, and has a pool.
    is_proven: bool,
}

/// The tasks, which the configuration and events start and stop.
struct Dialing {
    mesh: Rc<Mesh>,
    tasks: JoinSet<()>,
    /// The task of each configured address, with its number.
    configured: Vec<(RouteAddress, u64, AbortHandle)>,
    next_id: u64,
}

/// Runs the dialing tasks, and starts and stops them when the configuration changes. Never returns while the
/// server runs.
pub(crate) async fn run_routes(
    shared: Arc<Shared>,
    mut events: mpsc::UnboundedReceiver<RouteEvent>,
) {
    let mut wanted = shared.cluster.subscribe();
    let Some(cluster) = wanted.borrow_and_update().clone() else {
        return;
    };
    let mesh = Rc::new(Mesh {
        configured: RefCell::default(),
        shared,
        cluster: cluster.clone().into(),
        peers: RefCell::default(),
        left: Notify::new(),
        implicit: RefCell::default(),
        dialed: RefCell::default(),
        further: RefCell::default(),
    });
    let mut dialing = Dialing {
        mesh,
        tasks: JoinSet::new(),
        configured: Vec::new(),
        next_id: 0,
    };
    dialing.configure(cluster);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => dialing.handle(event),
                None => return,
            },
            changed = wanted.changed() => {
                let cluster = wanted.borrow_and_update().clone();
                match (changed, cluster) {
                    (Ok(()), Some(cluster)) => dialing.configure(cluster),
                    _ => return,
                }
            }
        }
    }
}

impl Dialing {
    /// Starts tasks for new addresses, and stops those of removed ones. Other routes are not affected.
    fn configure(&mut self, cluster: ClusterOptions) {
        let parsed = cluster.routes.iter();
        let parsed = parsed.filter_map(|url| RouteAddress::parse(url).ok());
        let wanted: Vec<RouteAddress> = parsed.collect();
        let mesh = &self.mesh;
        self.configured.retain(|(address, id, task)| {
            let is_wanted = wanted.contains(address);
            if !is_wanted {
                info!("Removed route {address}");
                // The shards then find the result channels closed.
                task.abort();
                mesh.dialed.borrow_mut().remove(id);
                mesh.shared
                    .send_to_all(|| Command::ChangeRoutes(RouteChange::Close(*id)));
            }
            is_wanted
        });
        mesh.cluster.replace(cluster);
        mesh.configured.replace(wanted.clone());
        for address in wanted {
            if self.configured.iter().any(|(known, ..)| *known == address) {
                continue;
            }
            self.next_id += 1;
            let (mesh, id, to) = (Rc::clone(&self.mesh), self.next_id, address.clone());
            let task = async move { mesh.keep_dialing(id, &to).await };
            let task = self.tasks.spawn_local(task);
            self.configured.push((address, id, task));
        }
    }

    fn handle(&mut self, event: RouteEvent) {
        // Removes tasks that have ended.
        while self.tasks.try_join_next().is_some() {}
        let mesh = &self.mesh;
        match event {
            RouteEvent::Joined {
                id,
                client_urls,
                carries,
                ..
            } => mesh.join(id, client_urls, carries),
            RouteEvent::Left { id, carries } => mesh.leave(&id, &carries),
            RouteEvent::ClusterNamed { name, is_generated } => mesh.rename(&name, is_generated),
            RouteEvent::LeavesSoon { id } => mesh.hide_urls(&id),
            RouteEvent::Proven {
                dial,
                pool_size,
                accounts,
            } => {
                for carries in mesh.further_routes(dial, pool_size, accounts) {
                    let mesh = Rc::clone(mesh);
                    let task = async move { mesh.keep_further(dial, carries).await };
                    self.tasks.spawn_local(task);
                }
            }
            RouteEvent::Discovered {
                id,
                url,
                gossip_mode,
                carries,
            } => {
                let found = Discovery { id, gossip_mode };
                let Some((address, gossip_mode)) = mesh.begin_implicit(found, &url, &carries)
                else {
                    return;
                };
                self.next_id += 1;
                let mut dial = RouteDial {
                    id: self.next_id,
                    user: address.user.clone(),
                    password: address.password.clone(),
                    is_explicit: false,
                    gossip_mode,
                    carries: carries.clone(),
                };
                let (mesh, place) = (Rc::clone(mesh), (url, carries));
                self.tasks.spawn_local(async move {
                    loop {
                        mesh.dial_discovered(&dial, &address).await;
                        match mesh.end_implicit(&place) {
                            Some(gossip_mode) => dial.gossip_mode = gossip_mode,
                            None => break,
                        }
                    }
                });
            }
        }
    }
}

impl Mesh {
    /// Records a registered route.
    fn join(&self, id: String, client_urls: ClientUrls, carries: Carries) {
        let mut peers = self.peers.borrow_mut();
        let peer = peers.entry(id).or_default();
        let is_new = peer.routes.is_empty();
        peer.routes.insert(carries);
        if !peer.is_leaving {
            peer.client_urls = client_urls;
        }
        drop(peers);
        if is_new {
            self.announce_urls();
        }
    }

    /// Records that a registered route has ended.
    fn leave(&self, id: &str, carries: &Carries) {
        let mut peers = self.peers.borrow_mut();
        let Some(peer) = peers.get_mut(id) else {
            return;
        };
        peer.routes.remove(carries);
        let was_last = peer.routes.is_empty();
        if was_last {
            peers.remove(id);
        }
        drop(peers);
        self.left.notify_waiters();
        if was_last {
            self.announce_urls();
        }
    }

    /// Takes over the name of another server's cluster on all shards, and in monitoring.
    fn rename(&self, name: &str, is_generated: bool) {
        info!("Cluster name updated to {name}");
        let mut options = self.shared.options.lock();
        *options = Arc::new(Options {
            cluster_name: Some(name.to_owned()),
            ..Options::clone(&options)
        });
        drop(options);
        let name = || name.to_owned();
        let change = || RouteChange::AdoptName(name(), is_generated);
        self.shared.send_to_all(|| Command::ChangeRoutes(change()));
    }

    /// Records that a peer accepts no more clients.
    fn hide_urls(&self, id: &str) {
        if let Some(peer) = self.peers.borrow_mut().get_mut(id) {
            peer.client_urls = ClientUrls::default();
            peer.is_leaving = true;
        }
        self.announce_urls();
    }

    /// Records that a peer with a pool has accepted the first route. Returns the routes that need a task.
    fn further_routes(&self, dial: u64, pool_size: u32, accounts: Vec<String>) -> Vec<Carries> {
        match self.dialed.borrow_mut().get_mut(&dial) {
            Some(dialed) => dialed.is_proven = true,
            None => return Vec::new(),
        }
        let slots = (1..pool_size).map(Carries::Slot);
        let all = slots.chain(accounts.into_iter().map(Carries::Account));
        let mut further = self.further.borrow_mut();
        all.filter(|carries| further.insert((dial, carries.clone())))
            .collect()
    }

    /// Dials a route other than the first one again and again, while the first one lasts.
    async fn keep_further(&self, number: u64, carries: Carries) {
        let mut failures = 0;
        while let Some((address, dial)) = self.proven(number, &carries) {
            failures += 1;
            match self.dial(&address, &dial).await {
                Ok(ended) => {
                    if ended.was_ready {
                        failures = 0;
                    }
                    match ended.outcome {
                        RouteOutcome::OwnServer | RouteOutcome::Superfluous => break,
                        RouteOutcome::Duplicate(peer) => self.wait_for_end(&peer, &carries).await,
                        RouteOutcome::Ended => {}
                    }
                }
                Err(error) => debug!("Error trying to connect to route: {error}"),
            }
            let delay = match failures {
                0 if !dial.is_explicit => Duration::ZERO,
                failures => doubled(failures),
            };
            tokio::time::sleep(delay + jitter()).await;
        }
        self.further.borrow_mut().remove(&(number, carries));
    }

    /// Returns what to dial for a further route; `None` if the first one does not last any more.
    fn proven(&self, number: u64, carries: &Carries) -> Option<(RouteAddress, RouteDial)> {
        let dialed = self.dialed.borrow();
        let dialed = dialed.get(&number).filter(|dialed| dialed.is_proven)?;
        let dial = RouteDial {
            carries: carries.clone(),
            ..dialed.first.clone()
        };
        Some((dialed.address.clone(), dial))
    }

    /// Dials the first route to an address, and waits until the connection ends.
    async fn dial_first(
        &self,
        address: &RouteAddress,
        dial: &RouteDial,
    ) -> Result<RouteEnded, String> {
        let dialed = Dialed {
            address: address.clone(),
            first: dial.clone(),
            is_proven: false,
        };
        self.dialed.borrow_mut().insert(dial.id, dialed);
        let ended = self.dial(address, dial).await;
        self.dialed.borrow_mut().remove(&dial.id);
        ended
    }

    /// Announces the addresses of this server and of its peers to clients.
    fn announce_urls(&self) {
        let routes = self.shared.common.config.routes.as_ref();
        if self.cluster.borrow().no_advertise {
            return;
        }
        let own = routes.map(|routes| routes.client_urls.clone());
        let mut urls = own.unwrap_or_default();
        for peer in self.peers.borrow().values() {
            urls.join(&peer.client_urls);
        }
        let urls = Arc::new(urls);
        self.shared
            .send_to_all(|| Command::SetConnectUrls(Arc::clone(&urls)));
    }

    /// Returns the address of a server that a peer has announced, and the mode of its gossip, unless it has this route or
    /// a task dials it. Marks it as dialed.
    fn begin_implicit(
        &self,
        found: Discovery,
        url: &str,
        carries: &Carries,
    ) -> Option<(RouteAddress, GossipMode)> {
        let announced = RouteAddress::parse(url).ok()?;
        let is_configured = |known: &RouteAddress| known.is_same_place(&announced);
        if self.has_route(&found.id, carries) || self.configured.borrow().iter().any(is_configured)
        {
            return None;
        }
        let mut implicit = self.implicit.borrow_mut();
        let (first, route) = (Carries::default(), (url.to_owned(), carries.clone()));
        if let Some(later) = implicit.get_mut(&route) {
            // The task may be about to end, because it has dialed the server that was there before.
            *later = Some(found);
            return None;
        }
        // The task of the first route has others for the further ones.
        if implicit.contains_key(&(url.to_owned(), first)) || implicit.len() >= IMPLICIT_MAX {
            return None;
        }
        implicit.insert(route, None);
        // Servers of one cluster have the same credentials.
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let address = RouteAddress {
            user: text(&self.cluster.borrow().user),
            password: text(&self.cluster.borrow().password),
            ..announced
        };
        Some((address, found.gossip_mode))
    }

    /// Handles that a task does not dial an address any more. Returns the mode of the gossip about another server there,
    /// which the task has to dial.
    fn end_implicit(&self, place: &(String, Carries)) -> Option<GossipMode> {
        let mut implicit = self.implicit.borrow_mut();
        let later = implicit.get_mut(place)?.take();
        let missing = later.filter(|found| !self.has_route(&found.id, &place.1));
        if missing.is_none() {
            implicit.remove(place);
        }
        missing.map(|found| found.gossip_mode)
    }

    /// Returns whether there is a registered route to a peer that carries this.
    fn has_route(&self, id: &str, carries: &Carries) -> bool {
        let is_slot = |carries: &Carries| matches!(carries, Carries::Slot(_));
        let peers = self.peers.borrow();
        peers.get(id).is_some_and(|peer| match is_slot(carries) {
            // Of a peer whose dedicated route came first, the pool is still missing.
            true => peer.routes.iter().any(is_slot),
            false => peer.routes.contains(carries),
        })
    }

    /// Dials a configured address again and again. Returns if the address is this server's.
    async fn keep_dialing(&self, id: u64, address: &RouteAddress) {
        let dial = RouteDial {
            id,
            user: address.user.clone(),
            password: address.password.clone(),
            is_explicit: true,
            ..RouteDial::default()
        };
        let mut attempts: u64 = 0;
        let mut was_reached = false;
        loop {
            attempts += 1;
            match self.dial_first(address, &dial).await {
                Ok(ended) => {
                    if ended.was_ready {
                        (attempts, was_reached) = (0, true);
                    }
                    // A name may have several addresses, of which only one is this server's.
                    let is_fixed = address.host.parse::<IpAddr>().is_ok();
                    match ended.outcome {
                        RouteOutcome::OwnServer if is_fixed => return,
                        RouteOutcome::Duplicate(peer) => {
                            self.wait_for_end(&peer, &dial.carries).await;
                        }
                        _ => {}
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

    /// Dials an address learned by gossip until it does not answer any more. Only the first attempt follows the mode of
    /// the gossip, whose sender has introduced the server to others. Later, this server may be the only one that connects
    /// two parts of the cluster.
    async fn dial_discovered(&self, dial: &RouteDial, address: &RouteAddress) {
        let mut failures = 0;
        let mut dial = dial.clone();
        while failures <= u64::from(self.cluster.borrow().connect_retries) {
            let ended = self.dial_first(address, &dial).await;
            dial.gossip_mode = GossipMode::Override;
            match ended {
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

    /// Waits until no route to a peer carries this any more.
    async fn wait_for_end(&self, peer: &str, carries: &Carries) {
        loop {
            let left = self.left.notified();
            let peers = || self.peers.borrow();
            let lasts = peers()
                .get(peer)
                .is_some_and(|peer| peer.routes.contains(carries));
            if !lasts {
                return;
            }
            left.await;
        }
    }

    /// Returns the delay after this number of failed attempts.
    fn delay(&self, attempts: u64) -> Duration {
        if !self.cluster.borrow().connect_backoff {
            return DELAY;
        }
        doubled(attempts)
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
        let configured = self.configured.borrow();
        let names = configured.iter().map(|known| &known.host);
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

/// Returns the delay after this number of failed attempts, if it doubles.
pub(crate) fn doubled(attempts: u64) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings.min(16)).unwrap_or(u32::MAX);
    DELAY.saturating_mul(factor).min(DELAY_MAX)
}

fn log_failure(attempt: u64, error: &str) {
    error!("Error trying to connect to route (attempt {attempt}): {error}");
}

/// Returns a random time.
pub(crate) fn jitter() -> Duration {
    let most = u64::try_from(JITTER_MAX.as_millis()).unwrap_or(1);
    Duration::from_millis(random_u64() % most.max(1))
}
