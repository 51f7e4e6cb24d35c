//! Remotes that a message is posted to.

use super::ShardConfig;
use super::batch::{Batch, Crossing, HOPS, MAY_LEAVE, TRACED, Target};
use super::message::{Excluded, Message};
use super::remote::{LinkSet, Remote, RemoteSet};
use super::tracing::Traced;
use crate::auth::AccountId;

/// Capacity in bytes that a buffer for the names of groups retains.
const NAMES_BYTES: usize = 4096;

/// The remotes that receive a message. The next message reuses its capacity.
#[derive(Default)]
pub(crate) struct RemoteTargets {
    /// Remotes whose plain subscriptions all receive the message.
    plain: RemoteSet,
    with_groups: RemoteSet,
    /// For each remote by its bit number, the names of its groups, each followed by a space.
    names: Vec<Vec<u8>>,
    /// Index of the shard that posts the message; `None` if the shard serves no links.
    index: Option<u16>,
    /// Number of shards that serve lanes.
    lane_shards: u16,
    /// Link sets of this shard that receive the message.
    links: RemoteSet,
    plain_links: RemoteSet,
}

impl RemoteTargets {
    /// Creates the targets of a shard; `index` is `None` if it serves no links.
    pub(crate) fn new(index: Option<u16>, config: &ShardConfig) -> Self {
        let routes = config.routes.as_ref();
        RemoteTargets {
            index,
            lane_shards: routes.map_or(1, |routes| routes.shards.max(1)),
            ..RemoteTargets::default()
        }
    }

    /// Returns the number of shards that serve lanes.
    pub(crate) fn lane_shards(&self) -> u16 {
        self.lane_shards
    }

    /// Returns whether this shard serves the links of a set.
    #[inline]
    pub(crate) fn serves(&self, set: LinkSet) -> bool {
        self.index == Some(set.shard(self.lane_shards))
    }

    /// Returns whether links that this shard serves receive the message.
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// Adds a link set of this shard, to which another shard has posted the message.
    pub(crate) fn add_links(&mut self, set: LinkSet, plain: bool, groups: &[u8]) {
        let remote = Remote::Links(set);
        self.links.set(remote, true);
        self.plain_links.set(remote, plain);
        self.names_of(remote).extend_from_slice(groups);
    }

    /// Takes the next link set that receives the message. Also returns whether all plain subscriptions
    /// receive it, and the names of the groups of which one member receives it.
    pub(crate) fn take_links(&mut self) -> Option<(LinkSet, bool, Vec<u8>)> {
        let Some(remote @ Remote::Links(set)) = self.links.iter().next() else {
            return None;
        };
        self.links.set(remote, false);
        let plain = self.plain_links.contains(remote);
        let names = self.names.get_mut(remote.bit_index());
        let names = names.map(std::mem::take).unwrap_or_default();
        Some((set, plain, names))
    }

    /// Sets the remotes whose plain subscriptions receive the message.
    pub(crate) fn set_plain(&mut self, remotes: RemoteSet) {
        self.plain = remotes;
    }

    /// Records the message's remotes in a trace. Returns the bits of `hops` with which the message crosses to
    /// other shards.
    #[cold]
    pub(crate) fn trace(&mut self, account: AccountId, trace: &mut Traced) -> u8 {
        if trace.account != account {
            if trace.is_only() {
                self.clear();
            }
            return 0;
        }
        let mut all = self.with_groups;
        all.add(self.plain);
        for remote in all.iter() {
            match remote {
                // Links of this shard are recorded later, one event for each link that receives the message.
                Remote::Links(set) if self.serves(set) => {}
                Remote::Links(_) | Remote::Shard(_) => {
                    trace.record_shard(remote.shard(self.lane_shards))
                }
            }
        }
        TRACED
    }

    /// Removes all remotes.
    fn clear(&mut self) {
        self.plain = RemoteSet::default();
        for remote in std::mem::take(&mut self.with_groups).iter() {
            self.names_of(remote).clear();
        }
    }

    pub(crate) fn add_group(&mut self, remote: Remote, name: &[u8]) {
        let names = self.names_of(remote);
        names.extend_from_slice(name);
        names.push(b' ');
        self.with_groups.set(remote, true);
    }

    fn names_of(&mut self, remote: Remote) -> &mut Vec<u8> {
        let at = remote.bit_index();
        if self.names.len() <= at {
            self.names.resize_with(at + 1, Vec::new);
        }
        &mut self.names[at]
    }

    /// Adds the message to the batch of each shard that receives it, for the shard itself or for links that
    /// it serves. No group may select the `excluded` publisher. `cluster` is that of [`Crossing::cluster`]. Returns
    /// whether there was such a shard.
    pub(crate) fn post(
        &mut self,
        outgoing: &mut [Batch],
        (account, subject): (AccountId, &[u8]),
        message: &Message<'_>,
        hops: u8,
        (excluded, cluster): (Option<Excluded>, &[u8]),
    ) -> bool {
        self.post_each(outgoing, |batch, target| {
            let has_groups = !target.groups.is_empty();
            let marked = match target.links {
                Some(LinkSet::Routes(_)) if !message.mark.is_empty() => {
                    [message.mark, message.args].concat()
                }
                _ => Vec::new(),
            };
            batch.push_message(&Crossing {
                account,
                subject,
                message: message.with_marked(&marked),
                plain: target.plain,
                groups: target.groups,
                // Only a message for groups may be passed on, and come back.
                hops: if has_groups {
                    hops
                } else {
                    hops & !(HOPS | MAY_LEAVE)
                },
                links: target.links,
                excluded: excluded.filter(|_| has_groups),
                cluster: match target.links.is_some() || has_groups {
                    true => cluster,
                    false => b"",
                },
            });
        })
    }

    /// Calls `push` for each shard that receives the message, with the shard's batch. Returns whether there
    /// was one.
    #[inline]
    pub(crate) fn post_each(
        &mut self,
        outgoing: &mut [Batch],
        mut push: impl FnMut(&mut Batch, Target<'_>),
    ) -> bool {
        let plain = std::mem::take(&mut self.plain);
        let with_groups = std::mem::take(&mut self.with_groups);
        let mut all = with_groups;
        all.add(plain);
        let mut is_posted = false;
        for remote in all.iter() {
            let is_plain = plain.contains(remote);
            let links = remote.links();
            if links.is_some_and(|set| self.serves(set)) {
                self.links.set(remote, true);
                self.plain_links.set(remote, is_plain);
                continue;
            }
            let names = match with_groups.contains(remote) {
                true => self.names.get_mut(remote.bit_index()),
                false => None,
            };
            let target = Target {
                plain: is_plain,
                groups: names.as_deref().map_or(&[], Vec::as_slice),
                links,
            };
            push(
                &mut outgoing[usize::from(remote.shard(self.lane_shards))],
                target,
            );
            is_posted = true;
            if let Some(names) = names {
                names.clear();
                names.shrink_to(NAMES_BYTES);
            }
        }
        is_posted
    }
}
