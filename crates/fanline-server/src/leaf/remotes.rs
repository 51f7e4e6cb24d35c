//! The remotes of a server: each has a task that dials it, again and again.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::leaf::LeafEnded;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tracing::{error, info};

use super::{Dialled, Hub, LeafAddress};
use crate::client::{ServerAddress, parse_leaf_address};
use crate::identity::random_u64;
use crate::options::LeafnodeRemote;
use crate::server::Shared;
use crate::shell::Command;

/// How many times the usual wait it is waited at most while nobody answers.
const BACK_OFF_MAX: u32 = 8;
/// Of several hubs that are dialled at once, not all are at the same moment.
const JITTER_MAX: Duration = Duration::from_millis(200);
/// Addresses that a hub has told of and that are dialled too. The others are passed over.
const DISCOVERED_MAX: usize = 64;
/// Of many attempts, this many are logged one by one, then one in so many.
const LOGGED_ONE_BY_ONE: u64 = 3;
const LOGGED_ONE_IN: u64 = 60;

/// A remote with the task that dials it.
struct Running {
    options: LeafnodeRemote,
    id: u64,
    task: AbortHandle,
}

/// Dials all remotes, and follows when there are others. Never returns as long as the server runs.
pub(crate) async fn keep_remotes(shared: Arc<Shared>) {
    let mut wanted = shared.remotes.subscribe();
    let mut running: Vec<Running> = Vec::new();
    let mut next_id = 0;
    loop {
        let mut missing: Vec<LeafnodeRemote> = wanted.borrow_and_update().clone();
        missing.retain(|remote| !remote.is_disabled);
        running.retain(|one| {
            let at = missing.iter().position(|remote| *remote == one.options);
            match at {
                Some(at) => drop(missing.swap_remove(at)),
                None => {
                    // Whoever serves it sees that nobody waits for its end.
                    one.task.abort();
                    let _ = shared.shards[0].send(Command::EndLeaf(one.id));
                }
            }
            at.is_some()
        });
        for options in missing {
            next_id += 1;
            match Hub::new(next_id, &options) {
                Ok(hub) => {
                    let dialling = dial_again_and_again(Arc::clone(&shared), Arc::new(hub));
                    running.push(Running {
                        options,
                        id: next_id,
                        task: tokio::task::spawn_local(dialling).abort_handle(),
                    });
                }
                // It was checked when it was read; a file may have gone since.
                Err(error) => error!("Leafnode remote: {error}"),
            }
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

async fn dial_again_and_again(shared: Arc<Shared>, hub: Arc<Hub>) {
    let mut attempts = 0;
    let mut was_reached = false;
    let mut discovered: Vec<LeafAddress> = Vec::new();
    loop {
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
            info!("Leafnode remote will be dialled again in {seconds}s");
            // A circle that was cut twice is closed by the link that is dialled first.
            more = wait / 4;
        }
        tokio::time::sleep(wait + below(more)).await;
    }
}

/// Connects, has the link served, and waits until it has ended.
async fn dial(shared: &Shared, hub: &Arc<Hub>, address: &LeafAddress) -> Result<LeafEnded, String> {
    let proof = hub.proof()?;
    let usual = shared.options().leafnodes.dial_timeout;
    let time = hub.options.dial_timeout.unwrap_or(usual);
    let stream = connect(hub, &address.server, time).await?.into_std();
    let stream = stream.map_err(|error| crate::server::plain(&error))?;
    let (done, is_done) = oneshot::channel();
    shared.serve_dialled(Dialled {
        stream,
        hub: Arc::clone(hub),
        address: address.clone(),
        proof,
        done,
    });
    // A shard that is gone has ended with the server.
    Ok(is_done.await.unwrap_or_default())
}

/// Connects to a hub, or to the proxy that leads there.
async fn connect(hub: &Hub, server: &ServerAddress, time: Duration) -> Result<TcpStream, String> {
    let late = "i/o timeout";
    let Some(proxy) = &hub.proxy else {
        let stream = timeout(
            time,
            TcpStream::connect((server.host.as_str(), server.port)),
        )
        .await;
        let stream = stream.map_err(|_| late.to_owned())?;
        return stream.map_err(|error| crate::server::plain(&error));
    };
    let stream = timeout(proxy.timeout.unwrap_or(time), proxy.connect(server)).await;
    stream.map_err(|_| format!("proxy: {late}"))?
}

/// Whether a failure is logged, of which one in so many is to be.
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

/// The addresses as they are tried in this round.
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

/// Takes note of where else a hub says that it is, with the credentials that it is shown here.
fn note_discovered(discovered: &mut Vec<LeafAddress>, hub: &Hub, urls: &[String]) {
    let known = hub.addresses.first();
    // What a hub tells are the addresses of its own port, where nobody speaks WebSocket.
    let Some(known) = known.filter(|known| known.websocket_path.is_none()) else {
        return;
    };
    for url in urls {
        let Ok(told) = parse_leaf_address(url) else {
            continue;
        };
        let mut all = hub.addresses.iter().chain(discovered.iter());
        let is_known =
            all.any(|one| (&one.server.host, one.server.port) == (&told.host, told.port));
        if !is_known && discovered.len() < DISCOVERED_MAX {
            discovered.push(LeafAddress {
                server: ServerAddress {
                    host: told.host,
                    port: told.port,
                    ..known.server.clone()
                },
                websocket_path: None,
            });
        }
    }
}

/// Some time, less than this.
fn below(most: Duration) -> Duration {
    let most = u64::try_from(most.as_millis()).unwrap_or(0);
    Duration::from_millis(random_u64() % most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_failures_some_are_logged() {
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
