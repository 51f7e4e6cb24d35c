//! Drift of interest: whether the other servers of the cluster have counted as many subscriptions of this server as it
//! has announced to them.
//!
//! The system account's services compare the numbers (`system/interest.rs`). `/routez`, `/metrics`, and the dashboard
//! show the results.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use fanline_engine::route::RouteStatus;
use serde::Serialize;

use super::time;

/// Number of comparisons in a row that must differ in the same direction. Fewer may differ only because interest is
/// still on its way.
const LASTING: usize = 3;

/// What this server has announced to another one, over all routes to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) name: String,
    pub(super) subscriptions: usize,
    /// Whether the other server has permissions by which it may ignore some.
    pub(super) is_restricted: bool,
}

/// Returns what was announced to each server, by its id.
pub(super) fn announced(routes: &[RouteStatus]) -> BTreeMap<String, Announced> {
    let mut peers: BTreeMap<String, Announced> = BTreeMap::new();
    for route in routes {
        let peer = peers.entry(route.remote_id.clone()).or_default();
        peer.name.clone_from(&route.remote_name);
        peer.subscriptions += route.announced;
        peer.is_restricted |= route.is_restricted;
    }
    peers
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
    latest: Outcome,
    at: SystemTime,
    /// The latest differences, the newest last.
    differences: VecDeque<i64>,
}

/// A server, as `/routez` shows it. Only Fanline has this.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) remote_id: String,
    pub(super) remote_name: String,
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

/// The comparisons with all servers to which there are routes.
#[derive(Debug, Default)]
pub(super) struct Drift(RefCell<BTreeMap<String, Peer>>);

impl Drift {
    /// Forgets servers to which there is no route any more.
    pub(super) fn retain(&self, peers: &BTreeMap<String, Announced>) {
        let mut all = self.0.borrow_mut();
        all.retain(|id, _| peers.contains_key(id));
    }

    /// Records a comparison with a server.
    pub(super) fn record(&self, id: &str, name: &str, outcome: Outcome) {
        let mut all = self.0.borrow_mut();
        let peer = all.entry(id.to_owned()).or_insert_with(|| Peer {
            name: String::new(),
            latest: outcome,
            at: SystemTime::UNIX_EPOCH,
            differences: VecDeque::new(),
        });
        name.clone_into(&mut peer.name);
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
            drift.record("N1", "one", counted(10, 10, 10));
            drift.record("N1", "one", Outcome::Unanswered);
            for difference in differences {
                let found = usize::try_from(10 - difference).unwrap();
                drift.record("N1", "one", counted(10, 10, found));
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
        let peers = announced(&routes);
        assert_eq!(
            (peers["N1"].subscriptions, peers["N1"].is_restricted),
            (5, false)
        );
        assert!(peers["N2"].is_restricted);
        let drift = Drift::default();
        drift.record("N2", "two", Outcome::Restricted);
        drift.record("N3", "three", Outcome::Unanswered);
        drift.retain(&peers);
        let rows = drift.rows();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (&*rows[0].remote_name, rows[0].problem),
            ("two", Some("permissions"))
        );
    }
}
