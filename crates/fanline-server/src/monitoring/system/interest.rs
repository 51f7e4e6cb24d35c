//! Comparison of the interest that this server has announced with what other servers have counted.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use fanline_engine::route::RouteDetail;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::super::collect;
use super::super::drift::{self, Announced, Drift, Outcome};
use super::{Disconnected, System};
use crate::client::ClientError;

/// Interval of the comparisons with one server, while there are few servers.
const INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between two requests. A response has all routes of a server, so in a large cluster each comparison
/// takes its turn.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Time limit of a response.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// How another server is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Via {
    Routes,
    /// By an accepted gateway. Interest goes to the dialer.
    Gateways,
}

/// The part of a response that matters here.
#[derive(Deserialize)]
struct Response<T> {
    data: T,
}

#[derive(Deserialize)]
struct Routez {
    routes: Vec<Route>,
}

#[derive(Deserialize)]
struct Route {
    remote_id: String,
    subscriptions: usize,
}

#[derive(Deserialize)]
struct Gatewayz {
    outbound_gateways: BTreeMap<String, Outbound>,
}

#[derive(Deserialize)]
struct Outbound {
    connection: Connection,
}

#[derive(Deserialize)]
struct Connection {
    /// Id of the server that was dialed.
    name: String,
    subscriptions: usize,
}

impl System {
    /// Compares the interest with each other server in turn, until this server stops.
    pub(super) async fn compare_interest(self: Rc<Self>) {
        loop {
            let mut peers = Vec::new();
            for via in [Via::Routes, Via::Gateways] {
                let announced = self.announced(via).await.unwrap_or_default();
                self.drift(via).retain(&announced);
                peers.extend(announced.into_keys().map(|id| (via, id)));
            }
            if peers.is_empty() {
                sleep(INTERVAL).await;
            }
            let pause = pause_between(peers.len());
            for (via, id) in peers {
                sleep(pause).await;
                if self.compare_with(via, &id).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Compares the interest with one server.
    async fn compare_with(&self, via: Via, id: &str) -> Result<(), Disconnected> {
        // The connection may have ended meanwhile. If a shard is busy, the next comparison queries it again.
        let Some(before) = self.announced_to(via, id).await else {
            return Ok(());
        };
        let outcome = match before.is_restricted {
            true => Outcome::Restricted,
            false => match self.counted_by(via, id).await? {
                None => Outcome::Unanswered,
                Some(counted) => {
                    let Some(after) = self.announced_to(via, id).await else {
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
        self.drift(via).record(id, &before, outcome);
        Ok(())
    }

    /// Returns the number of this server's subscriptions that another one has counted; `None` if it does not answer.
    async fn counted_by(&self, via: Via, id: &str) -> Result<Option<usize>, Disconnected> {
        let cluster = self.gateway_name();
        let (page, body) = match via {
            Via::Routes => ("ROUTEZ", String::new()),
            Via::Gateways => {
                let body = json!({ "name": cluster });
                ("GATEWAYZ", body.to_string())
            }
        };
        let subject = format!("$SYS.REQ.SERVER.{id}.{page}");
        let own = self.monitor.server_id();
        match self.client.request(&subject, body, TIME_LIMIT).await {
            Ok(answer) => Ok(match via {
                Via::Routes => counted_by_routes(answer.payload(), own),
                Via::Gateways => counted_by_gateways(answer.payload(), &cluster, own),
            }),
            Err(ClientError::Disconnected(_)) => Err(Disconnected),
            Err(_) => Ok(None),
        }
    }

    /// Returns the name of this server's cluster for other clusters.
    fn gateway_name(&self) -> String {
        let options = self.monitor.shared.options();
        let gateway = options.gateway.as_ref();
        gateway.map_or_else(String::new, |gateway| gateway.name.clone())
    }

    fn drift(&self, via: Via) -> &Drift {
        match via {
            Via::Routes => &self.monitor.route_drift,
            Via::Gateways => &self.monitor.gateway_drift,
        }
    }

    async fn announced_to(&self, via: Via, id: &str) -> Option<Announced> {
        self.announced(via).await?.remove(id)
    }

    /// Returns what was announced to each server; `None` if a shard is too busy to report it.
    async fn announced(&self, via: Via) -> Option<BTreeMap<String, Announced>> {
        let shared = &self.monitor.shared;
        Some(match via {
            Via::Routes => {
                let routes = collect::routes(shared, RouteDetail::Announced).await;
                drift::by_routes(&routes.ok()?)
            }
            Via::Gateways => drift::by_gateways(&collect::gateways(shared, false).await.ok()?),
        })
    }
}

/// Returns the time between the requests to so many servers.
fn pause_between(peers: usize) -> Duration {
    let peers = u32::try_from(peers).unwrap_or(u32::MAX).max(1);
    (INTERVAL / peers).max(PAUSE_MIN)
}

/// Returns the number of subscriptions in a response that came over routes from the server with this id.
fn counted_by_routes(response: &[u8], id: &str) -> Option<usize> {
    let response: Response<Routez> = serde_json::from_slice(response).ok()?;
    let routes = response.data.routes.iter();
    let own = routes.filter(|route| route.remote_id == id);
    Some(own.map(|route| route.subscriptions).sum())
}

/// Returns the number of subscriptions in a response that came over the gateway to the server with this id and cluster;
/// `None` if there is no such gateway.
fn counted_by_gateways(response: &[u8], cluster: &str, id: &str) -> Option<usize> {
    let response: Response<Gatewayz> = serde_json::from_slice(response).ok()?;
    let own = response.data.outbound_gateways.get(cluster)?;
    let connection = &own.connection;
    (connection.name == id).then_some(connection.subscriptions)
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
            assert_eq!(
                counted_by_routes(response.as_bytes(), "N1"),
                expected,
                "{response}"
            );
        }
    }

    #[test]
    fn subscriptions_of_the_gateway_to_this_server_are_found() {
        let response = r#"{"data":{"outbound_gateways":{"east":{"connection":{"name":"N1","subscriptions":7}},
            "north":{"connection":{"name":"N1","subscriptions":9}}}}}"#;
        for (cluster, id, expected) in [
            ("east", "N1", Some(7)),
            ("east", "N2", None),
            ("south", "N1", None),
        ] {
            let found = counted_by_gateways(response.as_bytes(), cluster, id);
            assert_eq!(found, expected, "{cluster} {id}");
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
