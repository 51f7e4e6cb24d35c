//! Comparison of the interest that this server has announced with what the other servers of the cluster have counted.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use super::super::collect;
use super::super::drift::{self, Announced, Outcome};
use super::{Disconnected, System};
use crate::client::ClientError;

/// Interval of the comparisons with one server, while there are few servers.
const INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between two requests. A response has all routes of a server, so in a large cluster each comparison
/// takes its turn.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Time limit of a response.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The part of a response to `ROUTEZ` that matters here.
#[derive(Deserialize)]
struct Routez {
    data: Routes,
}

#[derive(Deserialize)]
struct Routes {
    routes: Vec<Route>,
}

#[derive(Deserialize)]
struct Route {
    remote_id: String,
    subscriptions: usize,
}

impl System {
    /// Compares the interest with each other server of the cluster in turn, until the server stops.
    pub(super) async fn compare_interest(self: Rc<Self>) {
        loop {
            let peers = self.announced().await.unwrap_or_default();
            self.monitor.drift.retain(&peers);
            if peers.is_empty() {
                sleep(INTERVAL).await;
            }
            let pause = pause_between(peers.len());
            for id in peers.keys() {
                sleep(pause).await;
                if self.compare_with(id).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Compares the interest with one server.
    async fn compare_with(&self, id: &str) -> Result<(), Disconnected> {
        // The route may have ended meanwhile. If a shard is busy, the next comparison queries it again.
        let Some(before) = self.announced_to(id).await else {
            return Ok(());
        };
        let outcome = match before.is_restricted {
            true => Outcome::Restricted,
            false => match self.counted_by(id).await? {
                None => Outcome::Unanswered,
                Some(counted) => {
                    let Some(after) = self.announced_to(id).await else {
                        return Ok(());
                    };
                    Outcome::Counted {
                        before: before.subscriptions,
                        after: after.subscriptions,
                        counted,
                    }
                }
            },
        };
        self.monitor.drift.record(id, &before.name, outcome);
        Ok(())
    }

    /// Returns the number of this server's subscriptions that another one has counted; `None` if it does not answer.
    async fn counted_by(&self, id: &str) -> Result<Option<usize>, Disconnected> {
        let subject = format!("$SYS.REQ.SERVER.{id}.ROUTEZ");
        match self.client.request(&subject, "", TIME_LIMIT).await {
            Ok(answer) => Ok(count_in(answer.payload(), self.monitor.server_id())),
            Err(ClientError::Disconnected(_)) => Err(Disconnected),
            Err(_) => Ok(None),
        }
    }

    async fn announced_to(&self, id: &str) -> Option<Announced> {
        self.announced().await?.remove(id)
    }

    /// Returns what was announced to each server; `None` if a shard is too busy to report it.
    async fn announced(&self) -> Option<BTreeMap<String, Announced>> {
        let routes = collect::routes(&self.monitor.shared, false).await.ok()?;
        Some(drift::announced(&routes))
    }
}

/// Returns the time between the requests to so many servers.
fn pause_between(peers: usize) -> Duration {
    let peers = u32::try_from(peers).unwrap_or(u32::MAX).max(1);
    (INTERVAL / peers).max(PAUSE_MIN)
}

/// Returns the number of subscriptions in a response that came over routes from the server with this id.
fn count_in(response: &[u8], id: &str) -> Option<usize> {
    let response: Routez = serde_json::from_slice(response).ok()?;
    let routes = response.data.routes.iter();
    let own = routes.filter(|route| route.remote_id == id);
    Some(own.map(|route| route.subscriptions).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_of_all_routes_of_this_server_are_summed_up() {
        let response = r#"{"server":{"id":"N2"},"data":{"num_routes":3,"routes":[
            {"remote_id":"N1","subscriptions":2,"account":"A"},{"remote_id":"N3","subscriptions":9},
            {"remote_id":"N1","subscriptions":3}]}}"#;
        for (response, expected) in [
            (response, Some(5)),
            (r#"{"data":{"routes":[]}}"#, Some(0)),
            (r#"{"data":null,"error":{"code":500}}"#, None),
            ("", None),
        ] {
            assert_eq!(count_in(response.as_bytes(), "N1"), expected, "{response}");
        }
    }

    #[test]
    fn large_clusters_are_compared_less_often() {
        for (peers, seconds) in [(0, 5.0), (1, 5.0), (2, 2.5), (5, 1.0), (99, 1.0)] {
            let pause = pause_between(peers).as_secs_f64();
            assert!((pause - seconds).abs() < f64::EPSILON, "{peers} {pause}");
        }
    }
}
