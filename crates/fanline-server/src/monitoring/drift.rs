//! Drift of interest: whether other servers have counted as many subscriptions of this server as it has announced to
//! them, by routes or by gateways.
//!
//! The system account's services compare the numbers (`system/interest.rs`). `/routez`, `/gatewayz`, `/metrics`, and the
//! dashboard show the results.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use fanline_engine::gateway::GatewayStatus;
use fanline_engine::route::RouteStatus;
use serde::Serialize;

use super::time;

/// Number of comparisons in a row that must differ in the same direction. Fewer may differ only because interest is
/// still on its way.
const LASTING: usize = 3;

/// What this server has announced to another one, over all its routes or gateways to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) name: String,
    /// The other server's cluster, if it is not that of this server.
    pub(super) cluster: Option<String>,
    pub(super) subscriptions: usize,
    /// Whether the other server has permissions by which it may ignore some.
    pub(super) is_restricted: bool,
}

/// Returns what was announced to each server of this cluster, by its id.
pub(super) fn by_routes(routes: &[RouteStatus]) -> BTreeMap<String, Announced> {
    let mut peers: BTreeMap<String, Announced> = BTreeMap::new();
    for route in routes {
        let peer = peers.entry(route.remote_id.clone()).or_default();
        peer.name.clone_from(&route.remote_name);
        peer.subscriptions += route.announced;
        peer.is_restricted |= route.is_restricted;
    }
    peers
}

/// Returns what was announced to each connected server of other clusters, by its id.
pub(super) fn by_gateways(gateways: &[GatewayStatus]) -> BTreeMap<String, Announced> {
    let accepted = gateways.iter().filter(|gateway| !gateway.is_dialed);
    let announced = accepted.map(|gateway| {
        let announced = Announced {
            name: gateway.server_name.clone(),
            cluster: Some(gateway.gateway.clone()),
            subscriptions: gateway.announced,
            is_restricted: false,
        };
        (gateway.name.clone(), announced)
    });
    announced.collect()
}

/// The result of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The other server has answered.
    Counted {
        /// Subscriptions announced before the request.
        before: usize,
        /// Subscriptions announced when the response had arrived.
        after: usize,
        /// Subscriptions that the other server has counted.
        counted: usize,
    },
    /// The other server has not answered.
    Unanswered,
    /// The other server may ignore subscriptions, so it was not asked.
    Restricted,
}

impl Outcome {
    /// Returns how many subscriptions the other server lacks, or a negative number if it has too many. While they
    /// change, any number between those before and after the request is right.
    fn difference(self) -> Option<i64> {
        let Outcome::Counted {
            before,
            after,
            counted,
        } = self
        else {
            return None;
        };
        let nearest = counted.clamp(before.min(after), before.max(after));
        let missing = i64::try_from(nearest.abs_diff(counted)).unwrap_or(i64::MAX);
        Some(if nearest < counted { -missing } else { missing })
    }
}

/// The comparisons with one server.
#[derive(Debug)]
struct Peer {
    name: String,
    cluster: Option<String>,
    latest: Outcome,
    at: SystemTime,
    /// The latest differences, the newest last.
    differences: VecDeque<i64>,
}

/// A server, as `/routez` and `/gatewayz` show it. Only Fanline has this.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) remote_id: String,
    pub(super) remote_name: String,
    /// The server's cluster, if it is not that of this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gateway: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) announced: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted: Option<usize>,
    /// The difference of the latest comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) difference: Option<i64>,
    /// The part of the difference that lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drift: Option<i64>,
    /// Why there was no comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<&'static str>,
    compared: String,
}

/// The comparisons with all servers that are connected by routes, or with all that are connected by gateways.
#[derive(Debug, Default)]
pub(super) struct Drift(RefCell<BTreeMap<String, Peer>>);

impl Drift {
    /// Forgets servers that are not connected any more.
    pub(super) fn retain(&self, peers: &BTreeMap<String, Announced>) {
        let mut all = self.0.borrow_mut();
        all.retain(|id, _| peers.contains_key(id));
    }

    /// Records a comparison with a server.
    pub(super) fn record(&self, id: &str, announced: &Announced, outcome: Outcome) {
        let mut all = self.0.borrow_mut();
        let peer = all.entry(id.to_owned()).or_insert_with(|| Peer {
            name: String::new(),
            cluster: None,
            latest: outcome,
            at: SystemTime::UNIX_EPOCH,
            differences: VecDeque::new(),
        });
        announced.name.clone_into(&mut peer.name);
        announced.cluster.clone_into(&mut peer.cluster);
        peer.latest = outcome;
        peer.at = SystemTime::now();
        match outcome.difference() {
            Some(difference) => {
                peer.differences.push_back(difference);
                if peer.differences.len() > LASTING {
                    peer.differences.pop_front();
                }
            }
            None => peer.differences.clear(),
        }
    }

    /// Returns the comparisons, ordered by the servers' names.
    pub(super) fn rows(&self) -> Vec<Row> {
        let all = self.0.borrow();
        let mut rows: Vec<Row> = all.iter().map(|(id, peer)| peer.row(id)).collect();
        rows.sort_by(|one, other| one.remote_name.cmp(&other.remote_name));
        rows
    }
}

impl Peer {
    fn row(&self, id: &str) -> Row {
        let (announced, counted) = match self.latest {
            Outcome::Counted { after, counted, .. } => (Some(after), Some(counted)),
            Outcome::Unanswered | Outcome::Restricted => (None, None),
        };
        let difference = self.latest.difference();
        Row {
            remote_id: id.to_owned(),
            remote_name: self.name.clone(),
            gateway: self.cluster.clone(),
            announced,
            counted,
            difference,
            drift: difference.map(|_| lasting(&self.differences)),
            problem: match self.latest {
                Outcome::Counted { .. } => None,
                Outcome::Unanswered => Some("no answer"),
                Outcome::Restricted => Some("permissions"),
            },
            compared: time::rfc3339(self.at),
        }
    }
}

/// Returns the smallest of the latest differences, if there are enough and all have the same direction; otherwise 0.
fn lasting(differences: &VecDeque<i64>) -> i64 {
    let smallest = differences.iter().copied().min_by_key(|it| it.abs());
    let smallest = smallest.filter(|_| differences.len() >= LASTING);
    let Some(smallest) = smallest else {
        return 0;
    };
    let is_same = |other: &i64| other.cmp(&0) == smallest.cmp(&0);
    match smallest.cmp(&0) {
        Ordering::Equal => 0,
        _ if differences.iter().all(is_same) => smallest,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Announced {
        Announced {
            name: name.into(),
            ..Announced::default()
        }
    }

    fn counted(before: usize, after: usize, counted: usize) -> Outcome {
        Outcome::Counted {
            before,
            after,
            counted,
        }
    }

    #[test]
    fn numbers_between_both_announced_ones_are_right() {
        for (outcome, expected) in [
            (counted(5, 5, 5), Some(0)),
            (counted(5, 5, 3), Some(2)),
            (counted(5, 5, 9), Some(-4)),
            (counted(5, 8, 6), Some(0)),
            (counted(8, 5, 6), Some(0)),
            (counted(5, 8, 4), Some(1)),
            (counted(8, 5, 9), Some(-1)),
            (Outcome::Unanswered, None),
            (Outcome::Restricted, None),
        ] {
            assert_eq!(outcome.difference(), expected, "{outcome:?}");
        }
    }

    #[test]
    fn only_the_part_of_a_difference_that_lasts_is_drift() {
        for (differences, expected) in [
            (&[][..], 0),
            (&[3, 3], 0),
            (&[3, 3, 3], 3),
            (&[9, 2, 5], 2),
            (&[-9, -2, -5], -2),
            (&[3, 0, 3], 0),
            (&[3, -3, 3], 0),
        ] {
            let drift = Drift::default();
            drift.record("N1", &named("one"), counted(10, 10, 10));
            drift.record("N1", &named("one"), Outcome::Unanswered);
            for difference in differences {
                let found = usize::try_from(10 - difference).unwrap();
                drift.record("N1", &named("one"), counted(10, 10, found));
            }
            let found = drift.rows()[0].drift;
            let expected = (!differences.is_empty()).then_some(expected);
            assert_eq!(found, expected, "{differences:?}");
        }
    }

    #[test]
    fn servers_without_a_route_are_forgotten() {
        let route = |id: &str, announced, is_restricted| RouteStatus {
            remote_id: id.into(),
            remote_name: format!("name-{id}"),
            announced,
            is_restricted,
            ..RouteStatus::default()
        };
        let routes = [
            route("N1", 2, false),
            route("N1", 3, false),
            route("N2", 1, true),
        ];
        let peers = by_routes(&routes);
        assert_eq!(
            (peers["N1"].subscriptions, peers["N1"].is_restricted),
            (5, false)
        );
        assert!(peers["N2"].is_restricted);
        let drift = Drift::default();
        drift.record("N2", &named("two"), Outcome::Restricted);
        drift.record("N3", &named("three"), Outcome::Unanswered);
        drift.retain(&peers);
        let rows = drift.rows();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (&*rows[0].remote_name, rows[0].problem),
            ("two", Some("permissions"))
        );
    }

    #[test]
    fn accepted_gateways_are_compared() {
        let gateway = |id: &str, is_dialed| GatewayStatus {
            name: id.into(),
            server_name: format!("name-{id}"),
            gateway: "west".into(),
            is_dialed,
            announced: 3,
            ..GatewayStatus::default()
        };
        let peers = by_gateways(&[gateway("N1", true), gateway("N2", false)]);
        let ids: Vec<&String> = peers.keys().collect();
        assert_eq!(ids, ["N2"]);
        assert_eq!(
            (peers["N2"].subscriptions, peers["N2"].cluster.as_deref()),
            (3, Some("west"))
        );
    }
}
