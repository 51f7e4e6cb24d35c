//! The interest in one filter.

use hashbrown::HashMap;

use super::cache::{Member, RouteBuilder};
use super::subscriptions::SubId;
use crate::exchange::remote::{Remote, RemoteSet};
use crate::short_bytes::ShortBytes;
use crate::subject::trie::Vacant;

/// Local subscriptions, remote interest, and bridges of one filter.
#[derive(Default)]
pub(crate) struct Interest {
    plain: Vec<SubId>,
    plain_remote: RemoteSet,
    /// Boxed to save memory, because most filters have no groups.
    groups: Option<Box<HashMap<ShortBytes, Group>>>,
    /// Indices in the router's list of bridges. Most filters have none.
    bridges: Option<Box<[usize]>>,
}

/// A queue group under one filter.
#[derive(Default)]
struct Group {
    members: Vec<SubId>,
    /// Remotes with members, each with the number of its members.
    remote: Vec<(Remote, u32)>,
}

impl Vacant for Interest {
    fn is_vacant(&self) -> bool {
        self.plain.is_empty()
            && self.plain_remote.is_empty()
            && self.groups.is_none()
            && self.bridges.is_none()
    }
}

impl Interest {
    /// Adds a subscription. Returns its slot. Also returns the new weight if other shards must be notified.
    pub(super) fn join(&mut self, id: SubId, queue: &[u8]) -> (u32, Option<u32>) {
        let members = if queue.is_empty() {
            &mut self.plain
        } else {
            &mut self.group(queue).members
        };
        members.push(id);
        let count = u32::try_from(members.len()).expect("ids are 32 bits");
        // For plain subscriptions, other shards only need to know whether there is one. For groups, they need
        // the size.
        let is_news = count == 1 || !queue.is_empty();
        (count - 1, is_news.then_some(count))
    }

    /// Removes the subscription in a slot. Returns the subscription that moved into the slot. Also returns
    /// the new weight if other shards must be notified.
    pub(super) fn leave(&mut self, slot: u32, queue: &[u8]) -> (Option<SubId>, Option<u32>) {
        let members = if queue.is_empty() {
            &mut self.plain
        } else {
            &mut self.group(queue).members
        };
        members.swap_remove(slot as usize);
        let moved = members.get(slot as usize).copied();
        let count = u32::try_from(members.len()).expect("ids are 32 bits");
        // Releases the capacity of a list that once contained very many subscriptions.
        if members.capacity() > 64 && members.len() < members.capacity() / 4 {
            members.shrink_to(members.len() * 2);
        }
        if queue.is_empty() {
            return (moved, (count == 0).then_some(0));
        }
        self.drop_if_empty(queue);
        (moved, Some(count))
    }

    pub(super) fn set_remote(&mut self, from: Remote, queue: &[u8], weight: u32) {
        if queue.is_empty() {
            self.plain_remote.set(from, weight > 0);
            return;
        }
        let remote = &mut self.group(queue).remote;
        remote.retain(|(other, _)| *other != from);
        if weight > 0 {
            remote.push((from, weight));
        }
        self.drop_if_empty(queue);
    }

    /// Returns the interest of all remotes but these: 1 or 0 without a queue group, otherwise the number of
    /// members.
    pub(super) fn weight_without(&self, remotes: RemoteSet, queue: &[u8]) -> u32 {
        if queue.is_empty() {
            let others = self.plain_remote.without(remotes);
            let is_wanted = !(self.plain.is_empty() && others.is_empty() && self.bridges.is_none());
            return u32::from(is_wanted);
        }
        let Some(group) = self.find_group(queue) else {
            return 0;
        };
        let others = (group.remote.iter()).filter(|(other, _)| !remotes.contains(*other));
        let members = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
        others.fold(members, |sum, (_, weight)| sum.saturating_add(*weight))
    }

    /// Returns the interest of this server's own shards, without links and bridges: 1 or 0 without a queue
    /// group, otherwise the number of members.
    pub(super) fn own_weight(&self, queue: &[u8]) -> u32 {
        if queue.is_empty() {
            let others = self.plain_remote.shards();
            return u32::from(!(self.plain.is_empty() && others.is_empty()));
        }
        let Some(group) = self.find_group(queue) else {
            return 0;
        };
        let is_shard = |(remote, _): &&(Remote, u32)| matches!(remote, Remote::Shard(_));
        let others = group.remote.iter().filter(is_shard);
        let members = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
        others.fold(members, |sum, (_, weight)| sum.saturating_add(*weight))
    }

    /// Returns whether this server's own shards have plain interest, apart from one of them.
    pub(super) fn is_wanted_without(&self, shard: u16) -> bool {
        let mut others = self.plain_remote.shards();
        others.set(Remote::Shard(shard), false);
        !(self.plain.is_empty() && others.is_empty())
    }

    /// Returns whether remotes have interest in this queue group, or plain interest if `queue` is empty.
    pub(super) fn has_remote_interest(&self, queue: &[u8]) -> bool {
        match queue {
            [] => !self.plain_remote.is_empty(),
            queue => self
                .find_group(queue)
                .is_some_and(|group| !group.remote.is_empty()),
        }
    }

    /// Returns the weight of one remote's interest.
    pub(super) fn weight_of(&self, remote: Remote, queue: &[u8]) -> u32 {
        if queue.is_empty() {
            return u32::from(self.plain_remote.contains(remote));
        }
        let group = self.find_group(queue);
        let mut all = group.into_iter().flat_map(|group| &group.remote);
        let own = all.find(|(other, _)| *other == remote);
        own.map_or(0, |(_, weight)| *weight)
    }

    /// Returns this shard's subscriptions in this queue group, or its plain subscriptions if `queue` is
    /// empty.
    pub(super) fn members(&self, queue: &[u8]) -> &[SubId] {
        match queue {
            [] => &self.plain,
            queue => self.find_group(queue).map_or(&[], |group| &group.members),
        }
    }

    /// Returns the names of the queue groups. An empty name stands for plain interest.
    pub(super) fn queues(&self) -> impl Iterator<Item = &[u8]> {
        let has_plain =
            !(self.plain.is_empty() && self.plain_remote.is_empty()) || self.bridges.is_some();
        let names = self.groups.iter().flat_map(|groups| groups.keys());
        let plain = has_plain.then_some(&[][..]);
        plain.into_iter().chain(names.map(ShortBytes::as_slice))
    }

    fn find_group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.as_ref()?.get(&ShortBytes::from(name))
    }

    /// Attaches a bridge.
    pub(super) fn add_bridge(&mut self, at: usize) {
        let mut all = self.bridges.take().map_or_else(Vec::new, Vec::from);
        all.push(at);
        self.bridges = Some(all.into());
    }

    /// Removes all bridges.
    pub(super) fn clear_bridges(&mut self) {
        self.bridges = None;
    }

    /// Returns the attached bridges.
    pub(super) fn bridges(&self) -> &[usize] {
        self.bridges.as_deref().unwrap_or_default()
    }

    /// Adds the interest to a route.
    pub(super) fn add_to(&self, route: &mut RouteBuilder) {
        route.add_plain(&self.plain, self.plain_remote);
        let groups = self.groups.iter().flat_map(|groups| groups.iter());
        let add = |(name, group): (&ShortBytes, &Group)| {
            let remote = group.remote.iter();
            let remote = remote.map(|&(remote, weight)| Member::Remote { remote, weight });
            let local = group.members.iter().copied().map(Member::Local);
            route.add_group(name, local.chain(remote));
        };
        if cfg!(feature = "simulation") {
            // Without this, the steps of a seed depend on hashes.
            let mut sorted: Vec<_> = groups.collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_slice());
            sorted.into_iter().for_each(add);
        } else {
            groups.for_each(add);
        }
    }

    fn group(&mut self, name: &[u8]) -> &mut Group {
        self.groups
            .get_or_insert_default()
            .entry(ShortBytes::from(name))
            .or_default()
    }

    fn drop_if_empty(&mut self, name: &[u8]) {
        let Some(groups) = &mut self.groups else {
            return;
        };
        let name = ShortBytes::from(name);
        if groups
            .get(&name)
            .is_some_and(|g| g.members.is_empty() && g.remote.is_empty())
        {
            groups.remove(&name);
        }
        if groups.is_empty() {
            self.groups = None;
        }
    }
}
