//! Gateways to other clusters: each cluster has a task that dials it.
//!
//! Configured clusters are dialed for as long as the server runs. Others are dialed when they have connected
//! here, or another cluster has announced them, until they do not answer any more. One server of each cluster is
//! enough, so a task tries the known addresses in random order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::gateway::{GatewayDial, GatewayEnded, GatewayEvent, KnownGateway};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, error, info};

use crate::cluster::RouteAddress;
use crate::gateway::DialledGateway;
use crate::identity::random_u64;
use crate::ipc::{Command, GatewayCommand};
use crate::options::GatewayOptions;
use crate::routes::{DELAY, DIAL_TIME, LOGGED_ONE_IN, doubled, jitter};
use crate::shared::Shared;

/// Time after the start until other clusters are dialed, so that this cluster can form first.
const FIRST_DIAL: Duration = Duration::from_secs(1);
/// Largest number of clusters that are not configured. Further ones are ignored.
const IMPLICIT_MAX: usize = 1024;
/// Largest number of addresses of one cluster that it has announced. Further ones are ignored.
const ADDRESSES_MAX: usize = 1024;

/// Another cluster.
#[derive(Default)]
struct Remote {
    configured: Vec<RouteAddress>,
    /// Addresses that the cluster has announced.
    announced: Vec<RouteAddress>,
    is_configured: bool,
    /// Number of accepted connections from the cluster.
    inbound: usize,
    /// Whether a task dials the cluster.
    is_dialed: bool,
}

impl Remote {
    /// Returns all addresses in random order.
    fn addresses(&self) -> Vec<RouteAddress> {
        let mut all = self.configured.clone();
        let is_new =
            |address: &&RouteAddress| !self.configured.iter().any(|own| own.is_same_place(address));
        all.extend(self.announced.iter().filter(is_new).cloned());
        for last in (1..all.len()).rev() {
            let at = random_u64() % (last as u64 + 1);
            all.swap(last, usize::try_from(at).unwrap_or(0));
        }
        all
    }
}

/// State that the tasks share.
struct Dialing {
    shared: Arc<Shared>,
    options: GatewayOptions,
    remotes: RefCell<BTreeMap<String, Remote>>,
}

/// Runs the dialing tasks. Returns at once if there are no gateways, otherwise never while the server runs.
pub(crate) async fn run_gateways(
    shared: Arc<Shared>,
    mut events: mpsc::UnboundedReceiver<GatewayEvent>,
) {
    let Some(options) = shared.options().gateway.clone() else {
        return;
    };
    let mut remotes = BTreeMap::new();
    for remote in options
        .gateways
        .iter()
        .filter(|remote| remote.name != options.name)
    {
        let urls = remote.urls.iter();
        let configured = urls
            .filter_map(|url| RouteAddress::parse(url).ok())
            .collect();
        let remote = (
            remote.name.clone(),
            Remote {
                configured,
                is_configured: true,
                ..Remote::default()
            },
        );
        remotes.extend([remote]);
    }
    let dialing = Rc::new(Dialing {
        shared,
        options,
        remotes: RefCell::new(remotes),
    });
    let mut tasks = JoinSet::new();
    dialing.announce();
    tokio::time::sleep(FIRST_DIAL).await;
    dialing.dial_missing(&mut tasks);
    while let Some(event) = events.recv().await {
        // Removes tasks that have ended.
        while tasks.try_join_next().is_some() {}
        dialing.handle(event);
        dialing.dial_missing(&mut tasks);
    }
}

impl Dialing {
    fn handle(&self, event: GatewayEvent) {
        match event {
            GatewayEvent::Joined {
                gateway,
                id,
                is_dialed,
                urls,
            } => {
                match is_dialed {
                    true => info!("Outbound gateway connection to {gateway:?} ({id}) registered"),
                    false => info!("Inbound gateway connection from {gateway:?} ({id}) registered"),
                }
                self.learn(&gateway, &urls);
                if let Some(remote) = self.remotes.borrow_mut().get_mut(&gateway) {
                    remote.inbound += usize::from(!is_dialed);
                }
            }
            GatewayEvent::Left { gateway, is_dialed } => {
                if let Some(remote) = self.remotes.borrow_mut().get_mut(&gateway) {
                    remote.inbound -= usize::from(!is_dialed && remote.inbound > 0);
                }
            }
            GatewayEvent::Discovered { gateway, urls } => self.learn(&gateway, &urls),
        }
    }

    /// Records the addresses that a cluster has announced.
    fn learn(&self, gateway: &str, urls: &[String]) {
        let mut remotes = self.remotes.borrow_mut();
        if !remotes.contains_key(gateway) {
            let implicit = remotes.values().filter(|remote| !remote.is_configured);
            if self.options.rejects_unknown || implicit.count() >= IMPLICIT_MAX {
                return;
            }
        }
        let remote = remotes.entry(gateway.to_owned()).or_default();
        let urls = urls.iter().take(ADDRESSES_MAX);
        let announced: Vec<RouteAddress> = urls
            .filter_map(|url| RouteAddress::parse(url).ok())
            .collect();
        if announced.is_empty() || remote.announced == announced {
            return;
        }
        remote.announced = announced;
        drop(remotes);
        self.announce();
    }

    /// Tells the shard of gateways which clusters are known, so that it announces them.
    fn announce(&self) {
        let remotes = self.remotes.borrow();
        let known = remotes.iter().map(|(gateway, remote)| {
            let all = remote.configured.iter().chain(&remote.announced);
            let mut urls: Vec<String> = all.map(RouteAddress::to_string).collect();
            urls.sort_unstable();
            urls.dedup();
            KnownGateway {
                gateway: gateway.clone(),
                urls,
            }
        });
        let known = known.filter(|known| !known.urls.is_empty()).collect();
        let command = GatewayCommand::SetKnown(known);
        self.shared.send(0, Command::Gateways(command));
    }

    /// Starts a task for each cluster that has none.
    fn dial_missing(self: &Rc<Self>, tasks: &mut JoinSet<()>) {
        for (gateway, remote) in self.remotes.borrow_mut().iter_mut() {
            if std::mem::replace(&mut remote.is_dialed, true) {
                continue;
            }
            let (dialing, gateway) = (Rc::clone(self), gateway.clone());
            tasks.spawn_local(async move { dialing.keep_dialing(&gateway).await });
        }
    }

    /// Dials a cluster again and again. Returns if it is not configured and does not answer any more.
    async fn keep_dialing(&self, gateway: &str) {
        let mut failures: u64 = 0;
        let mut was_reached = false;
        loop {
            let addresses = match self.remotes.borrow().get(gateway) {
                Some(remote) => remote.addresses(),
                None => return,
            };
            failures += 1;
            for address in addresses {
                match self.dial(gateway, &address, failures).await {
                    // The other side decides about the password after this side has registered the connection.
                    Ok(ended) if ended.was_ready && ended.complaint.is_none() => {
                        (failures, was_reached) = (0, true);
                        break;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        if was_reached || failures == 1 || failures.is_multiple_of(LOGGED_ONE_IN) {
                            let kind = self.kind_of(gateway);
                            error!(
                                "Error connecting to {kind} gateway {gateway:?} ({address}) (attempt \
                                 {failures}): {error}"
                            );
                        }
                    }
                }
            }
            if self.gives_up(gateway, failures) {
                return;
            }
            let delay = match self.options.connect_backoff {
                true => doubled(failures),
                false => DELAY,
            };
            tokio::time::sleep(delay + jitter()).await;
        }
    }

    /// Forgets a cluster that is not configured, after too many failures.
    fn gives_up(&self, gateway: &str, failures: u64) -> bool {
        let mut remotes = self.remotes.borrow_mut();
        let Some(remote) = remotes.get(gateway) else {
            return true;
        };
        let gives_up = !remote.is_configured
            && remote.inbound == 0
            && failures > u64::from(self.options.connect_retries);
        if gives_up {
            remotes.remove(gateway);
            drop(remotes);
            self.announce();
        }
        gives_up
    }

    fn kind_of(&self, gateway: &str) -> &'static str {
        let remotes = self.remotes.borrow();
        match remotes
            .get(gateway)
            .is_some_and(|remote| remote.is_configured)
        {
            true => "explicit",
            false => "implicit",
        }
    }

    /// Connects to an address, passes the connection to the shard of gateways, and waits until the connection
    /// ends.
    async fn dial(
        &self,
        gateway: &str,
        address: &RouteAddress,
        attempt: u64,
    ) -> Result<GatewayEnded, String> {
        let kind = self.kind_of(gateway);
        if attempt <= 1 {
            info!("Connecting to {kind} gateway {gateway:?} ({address}) (attempt {attempt})");
        } else {
            debug!("Connecting to {kind} gateway {gateway:?} ({address}) (attempt {attempt})");
        }
        let os_error = |error: &std::io::Error| crate::error::os_error_text(error);
        let connecting = TcpStream::connect((address.host.as_str(), address.port));
        let stream = timeout(DIAL_TIME, connecting).await;
        let stream = stream.map_err(|_| format!("dial tcp {address}: i/o timeout"))?;
        let stream =
            stream.map_err(|error| format!("dial tcp {address}: connect: {}", os_error(&error)))?;
        let stream = stream.into_std().map_err(|error| os_error(&error))?;
        let (done, is_done) = oneshot::channel();
        self.shared.serve_gateway(DialledGateway {
            stream,
            dial: self.dial_of(gateway, address),
            host: self.certified_host(gateway, address),
            done,
        });
        // A shard that has ended drops the sender.
        Ok(is_done.await.unwrap_or_default())
    }

    fn dial_of(&self, gateway: &str, address: &RouteAddress) -> GatewayDial {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (user, password) = match address.user.is_empty() {
            true => (text(&self.options.user), text(&self.options.password)),
            false => (address.user.clone(), address.password.clone()),
        };
        GatewayDial {
            gateway: gateway.into(),
            user,
            password,
            is_configured: self.kind_of(gateway) == "explicit",
        }
    }

    /// Returns the name that the certificate of a server must have. Clusters announce IP addresses, while
    /// certificates contain host names. So the certificate of such a server must be for the first configured host
    /// name of its cluster, if there is one.
    fn certified_host(&self, gateway: &str, address: &RouteAddress) -> String {
        let is_name = |host: &String| host.parse::<IpAddr>().is_err();
        let remotes = self.remotes.borrow();
        let configured = remotes.get(gateway).map_or(&[][..], |own| &own.configured);
        let mut names = configured.iter().map(|known| &known.host);
        let first = names.find(|host| is_name(host));
        let own = Some(&address.host).filter(|host| is_name(host));
        own.or(first).unwrap_or(&address.host).clone()
    }
}
