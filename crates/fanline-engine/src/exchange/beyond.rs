//! The interest of leaf nodes behind other servers of the cluster, by their clusters.
//!
//! The shard that serves leaf connections needs it: a leaf node does not learn of the interest of leaf nodes of its own
//! cluster, because the servers of that cluster exchange their messages themselves.

use hashbrown::HashMap;

use super::Exchange;
use super::batch::Notification;
use super::deliver::Kind;
use super::links::ClusterWeights;
use super::remote::{LinkSet, Remote, RemoteSet};
use super::route_settings::Lane;
use crate::auth::AccountId;
use crate::codec::leaf::LEAF_SHARD;

/// A filter with a queue group in an account, of the routes of one lane.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    lane: usize,
    account: AccountId,
    filter: Box<[u8]>,
    queue: Box<[u8]>,
}

/// The weights of filters that leaf nodes behind other servers want, too. On the shard that serves leaf connections they
/// are those of the other shards, and there they are the ones that were reported.
#[derive(Default)]
pub(crate) struct Beyond(HashMap<Place, ClusterWeights>);

/// Reports the weights of a filter at other servers and their leaf nodes to the shard that serves leaf connections.
/// Without leaf nodes that want it, there are no weights.
#[derive(Clone)]
pub(crate) struct WeightBeyond {
    place: Place,
    weights: ClusterWeights,
}

impl Notification for WeightBeyond {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.place.filter.len() + self.place.queue.len()
    }
}

impl<K: Kind> Exchange<K> {
    /// Returns the weight of a filter to announce to leaf nodes of a cluster, apart from that of other leaf connections:
    /// that of this server and of its peers, without leaf nodes of the same cluster.
    pub(crate) fn weight_for_cluster(
        &self,
        account: AccountId,
        (filter, queue): (&[u8], &[u8]),
        cluster: &[u8],
    ) -> u32 {
        let router = &self.routers[account];
        let all = router.weight_without(RemoteSet::LEAFS, filter, queue);
        if all == 0 || cluster.is_empty() || self.config.routes.is_none() {
            return all;
        }
        let others = RemoteSet::LEAFS.with(RemoteSet::ROUTES);
        let mut sum = router.weight_without(others, filter, queue);
        for lane in Lane::ALL {
            let weight = router.weight_of(Remote::Links(LinkSet::Routes(lane)), filter, queue);
            if weight > 0 {
                let of_cluster = self.weight_beyond(lane, account, (filter, queue), cluster);
                sum = sum.saturating_add(of_cluster.unwrap_or(weight));
            }
        }
        match queue {
            [] => sum.min(1),
            _ => sum,
        }
    }

    /// Returns the weight of a filter at the peers of one lane, without leaf nodes of a cluster; `None` if no leaf node
    /// wants it.
    fn weight_beyond(
        &self,
        lane: Lane,
        account: AccountId,
        (filter, queue): (&[u8], &[u8]),
        cluster: &[u8],
    ) -> Option<u32> {
        let weights = match self.serves(LinkSet::Routes(lane)) {
            true => self.weights_of(LinkSet::Routes(lane), account, filter, queue),
            false => {
                let place = Place::new(lane, account, filter, queue);
                self.beyond.0.get(&place)?.clone()
            }
        };
        let others = weights.iter().filter(|(other, _)| **other != *cluster);
        Some(others.fold(0, |sum: u32, (_, weight)| sum.saturating_add(*weight)))
    }

    /// Reports the weights of a filter at the peers of a lane to the shard that serves leaf connections, if leaf nodes
    /// want it or have wanted it.
    pub(super) fn report_beyond(
        &mut self,
        lane: Lane,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
    ) {
        if self.index == LEAF_SHARD {
            return;
        }
        let mut weights = self.weights_of(LinkSet::Routes(lane), account, filter, queue);
        let place = Place::new(lane, account, filter, queue);
        if weights.iter().all(|(cluster, _)| cluster.is_empty()) {
            if self.beyond.0.remove(&place).is_none() {
                return;
            }
            weights.clear();
        } else {
            self.beyond.0.insert(place.clone(), Vec::new());
        }
        let report = WeightBeyond { place, weights };
        if let Some(batch) = self.outgoing.get_mut(usize::from(LEAF_SHARD)) {
            batch.push_notification(report);
        }
    }

    /// Records the weights of a filter at the peers of a lane that another shard serves.
    pub(crate) fn record_weight_beyond(&mut self, report: &WeightBeyond) {
        let WeightBeyond { place, weights } = report;
        match weights.is_empty() {
            true => self.beyond.0.remove(place),
            false => self.beyond.0.insert(place.clone(), weights.clone()),
        };
        let router = self.routers.changing(place.account);
        router.record_change(&place.filter, &place.queue);
    }
}

impl Place {
    fn new(lane: Lane, account: AccountId, filter: &[u8], queue: &[u8]) -> Self {
        Place {
            lane: lane.index(),
            account,
            filter: filter.into(),
            queue: queue.into(),
        }
    }
}
