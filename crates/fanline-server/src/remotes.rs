//! Remotes of leaf nodes: each has a task that dials it repeatedly.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::leaf::LeafEnded;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tracing::{error, info};

use crate::client::ServerAddress;
use crate::client::url::Url;
use crate::identity::random_u64;
use crate::ipc::Command;
use crate::leaf::{Dialled, Hub, LeafAddress};
use crate::options::{LEAFNODE_PORT, LeafnodeRemote};
use crate::shared::Shared;

/// Longest retry delay, as a multiple of the configured delay.
const BACK_OFF_MAX: u32 = 8;
/// Random addition to the retry delay, so that several remotes are not dialed at the same moment.
const JITTER_MAX: Duration = Duration::from_millis(200);
/// Largest number of discovered addresses for each remote. Further addresses are ignored.
const DISCOVERED_MAX: usize = 64;
/// Number of first attempts that are all logged. Of the later ones, every [`LOGGED_ONE_IN`]th is logged.
const LOGGED_ONE_BY_ONE: u64 = 3;
const LOGGED_ONE_IN: u64 = 60;

/// A remote and the task that dials it.
struct Running {
    options: LeafnodeRemote,
    id: u64,
    /// The hub that the task dials.
    hub: watch::Sender<Arc<Hub>>,
    task: AbortHandle,
}

impl Running {
    /// Applies changed options, or new contents of the same files, to future attempts. An existing connection
    /// stays.
    fn dial_by(&mut self, options: LeafnodeRemote) {
        match Hub::new(self.id, &options) {
            Ok(hub) => {
                // Changed options end the retry delay at once.
                let is_other = options != self.options;
                self.hub.send_if_modified(|current| {
                    *current = Arc::new(hub);
                    is_other
                });
                self.options = options;
            }
            Err(error) => error!("Leafnode remote: {error}"),
        }
    }
}

/// Runs the dialing tasks of all remotes, and starts and stops them when the configuration changes. Never
/// returns while the server runs.
pub(crate) async fn run_remotes(shared: Arc<Shared>) {
    let mut wanted = shared.remotes.subscribe();
    let mut running: Vec<Running> = Vec::new();
    let mut next_id = 0;
    loop {
        let mut missing: Vec<LeafnodeRemote> = wanted.borrow_and_update().clone();
        missing.retain(|remote| !remote.is_disabled);
        running.retain_mut(|one| {
            let at = (missing.iter()).position(|remote| remote.is_linked_as(&one.options));
            match at {
                Some(at) => one.dial_by(missing.swap_remove(at)),
                None => {
                    // The shard then finds the result channel closed.
                    one.task.abort();
                    let _ = shared.shards[0].send(Command::CloseRemote(one.id));
                }
            }
            at.is_some()
        });
        for options in missing {
            next_id += 1;
            match Hub::new(next_id, &options) {
                Ok(hub) => {
                    let (hub, follows) = watch::channel(Arc::new(hub));
                    let dialling = dial_repeatedly(Arc::clone(&shared), follows);
                    running.push(Running {
                        options,
                        id: next_id,
                        hub,
                        task: tokio::task::spawn_local(dialling).abort_handle(),
                    });
                }
                // The options were valid when they were loaded. A file may have disappeared since.
                Err(error) => error!("Leafnode remote: {error}"),
            }
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

async fn dial_repeatedly(shared: Arc<Shared>, mut hubs: watch::Receiver<Arc<Hub>>) {
    let mut attempts = 0;
    let mut was_reached = false;
    let mut discovered: Vec<LeafAddress> = Vec::new();
    loop {
        let hub = Arc::clone(&hubs.borrow_and_update());
        let mut ended = LeafEnded::default();
        for address in in_order(&hub, &discovered) {
            attempts += 1;
            match dial(&shared, &hub, &address).await {
                Ok(outcome) => {
                    ended = outcome;
                    break;
                }
                Err(error) => {
                    let options = shared.options();
                    let every = match was_reached {
                        true => options.leafnodes.reconnect_error_reports,
                        false => options.leafnodes.connect_error_reports,
                    };
                    if is_logged(attempts, every) {
                        log_failure(&address, attempts, &error);
                    }
                }
            }
        }
        if ended.was_ready {
            attempts = 0;
            was_reached = true;
        }
        if !hub.options.ignore_discovered_servers {
            note_discovered(&mut discovered, &hub, &ended.urls);
        }
        let usual = shared.options().leafnodes.reconnect;
        let rounds = attempts / hub.addresses.len().max(1) as u64;
        let factor = u32::try_from(rounds)
            .unwrap_or(BACK_OFF_MAX)
            .clamp(1, BACK_OFF_MAX);
        let wait = ended.retry_after.unwrap_or(usual * factor);
        let mut more = JITTER_MAX;
        if let Some(wait) = ended.retry_after {
            let seconds = wait.as_secs();
            info!("Leafnode remote will be dialed again in {seconds}s");
            // Several leaf connections may have been closed because they form a cycle. The random delay lets
            // one server dial again before the others.
            more = wait / 4;
        }
        tokio::select! {
            () = tokio::time::sleep(wait + below(more)) => {}
            // This never fails, because the task is aborted before the sender is dropped.
            _ = hubs.changed() => attempts = 0,
        }
    }
}

/// Connects to a hub, passes the connection to the shard of leaf nodes, and waits until the connection ends.
async fn dial(shared: &Shared, hub: &Arc<Hub>, address: &LeafAddress) -> Result<LeafEnded, String> {
    let credentials = hub.credentials()?;
    let usual = shared.options().leafnodes.dial_timeout;
    let time = hub.options.dial_timeout.unwrap_or(usual);
    let time = match &hub.proxy {
        Some(proxy) => proxy.timeout.unwrap_or(time),
        None => time,
    };
    let reached_by = Instant::now() + time;
    let stream = connect(hub, &address.server, reached_by).await?.into_std();
    let stream = stream.map_err(|error| crate::error::os_error_text(&error))?;
    let (done, is_done) = oneshot::channel();
    shared.serve_dialled(Dialled {
        stream,
        hub: Arc::clone(hub),
        address: address.clone(),
        credentials,
        reached_by,
        done,
    });
    // A shard that has ended drops the sender.
    is_done.await.unwrap_or_else(|_| Ok(LeafEnded::default()))
}

/// Connects to a hub or its proxy.
async fn connect(hub: &Hub, server: &ServerAddress, by: Instant) -> Result<TcpStream, String> {
    let proxy = hub.proxy.as_ref();
    let target = proxy.map_or(server, |proxy| &proxy.address);
    let failed = |what: &str| proxy.map_or_else(|| what.to_owned(), |proxy| proxy.wrong(what));
    let connecting = TcpStream::connect((target.host.as_str(), target.port));
    let stream = timeout_at(by, connecting).await;
    let stream = stream.map_err(|_| failed("i/o timeout"))?;
    stream.map_err(|error| failed(&crate::error::os_error_text(&error)))
}

/// Returns whether an attempt's failure is logged; `every` is the configured interval.
fn is_logged(attempt: u64, every: Option<u64>) -> bool {
    match every {
        Some(every) => attempt == 1 || attempt.is_multiple_of(every),
        None => attempt <= LOGGED_ONE_BY_ONE || attempt.is_multiple_of(LOGGED_ONE_IN),
    }
}

fn log_failure(address: &LeafAddress, attempt: u64, error: &str) {
    let place = address.server.host_and_port();
    error!(
        "Error trying to connect as leafnode to remote server {place:?} (attempt {attempt}): {error}"
    );
}

/// Returns the addresses in the order in which they are dialed.
fn in_order(hub: &Hub, discovered: &[LeafAddress]) -> Vec<LeafAddress> {
    let mut all: Vec<LeafAddress> = hub.addresses.iter().chain(discovered).cloned().collect();
    if !hub.options.no_randomize {
        for last in (1..all.len()).rev() {
            let at = random_u64() % (last as u64 + 1);
            all.swap(last, usize::try_from(at).unwrap_or(0));
        }
    }
    all
}

/// Stores the addresses that a hub advertises, with the credentials of the first configured address.
fn note_discovered(discovered: &mut Vec<LeafAddress>, hub: &Hub, urls: &[String]) {
    let known = hub.addresses.first();
    // A hub advertises addresses of its leaf node port, which does not serve WebSocket.
    let Some(known) = known.filter(|known| known.websocket_path.is_none()) else {
        return;
    };
    for url in urls {
        let url = Url::split_without_scheme(url);
        let Ok(advertised) = ServerAddress::from_url(&url, false, LEAFNODE_PORT) else {
            continue;
        };
        let mut all = hub.addresses.iter().chain(discovered.iter());
        let is_known = all
            .any(|one| (&one.server.host, one.server.port) == (&advertised.host, advertised.port));
        if !is_known && discovered.len() < DISCOVERED_MAX {
            discovered.push(LeafAddress {
                server: ServerAddress {
                    host: advertised.host,
                    port: advertised.port,
                    ..known.server.clone()
                },
                websocket_path: None,
            });
        }
    }
}

/// Returns a random time below `most`.
fn below(most: Duration) -> Duration {
    let most = u64::try_from(most.as_millis()).unwrap_or(0);
    Duration::from_millis(random_u64() % most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_logged_at_the_configured_interval() {
        let check = |every: Option<u64>, expected: &[u64]| {
            let logged: Vec<u64> = (1..=61).filter(|at| is_logged(*at, every)).collect();
            assert_eq!(logged, expected, "{every:?}");
        };
        check(None, &[1, 2, 3, 60]);
        check(Some(3600), &[1]);
        check(Some(30), &[1, 30, 60]);
        check(Some(0), &[1]);
        assert!((1..9).all(|at| is_logged(at, Some(1))));
    }
}
