//! Remotes to which a message is posted.

use super::batch::{Batch, Crossing, TRACED};
use super::message::Message;
use super::router::{LEAFS, ShardSet};
use super::tracing::Traced;
use crate::auth::AccountId;
use crate::codec::leaf::LEAF_SHARD;

/// The remotes that get a message. The room is used again for the next one.
#[derive(Default)]
pub(crate) struct RemoteTargets {
    plain: ShardSet,
    with_groups: ShardSet,
    /// For each shard, the names of the groups, each ended by a space.
    names: Vec<Vec<u8>>,
    /// The leafs are served here: what is for them waits to be given to them.
    serves_leafs: bool,
    /// Whether something waits for them, and whether all who want it without a queue get it.
    for_leafs: Option<bool>,
}

impl RemoteTargets {
    /// Those of a shard that serves the leafs, or does not.
    pub(crate) fn new(serves_leafs: bool) -> Self {
        RemoteTargets {
            serves_leafs,
            ..RemoteTargets::default()
        }
    }

    /// Whether the message is for leafs of this shard, too.
    #[inline]
    pub(crate) fn has_leafs(&self) -> bool {
        self.for_leafs.is_some()
    }

    /// Whether the leafs are served here.
    pub(crate) fn serves_leafs(&self) -> bool {
        self.serves_leafs
    }

    /// Another shard says that the message is for leafs.
    pub(crate) fn set_leafs(&mut self, plain: bool, groups: &[u8]) {
        self.for_leafs = Some(plain);
        let at = usize::from(LEAFS);
        if self.names.len() <= at {
            self.names.resize_with(at + 1, Vec::new);
        }
        self.names[at].clear();
        self.names[at].extend_from_slice(groups);
    }

    /// Whether all leafs who want it without a queue get it, and of which groups one member each.
    pub(crate) fn take_leafs(&mut self) -> (bool, Vec<u8>) {
        let plain = self.for_leafs.take().unwrap_or_default();
        let names = self.names.get_mut(usize::from(LEAFS));
        (plain, names.map(std::mem::take).unwrap_or_default())
    }

    /// Every shard in the set gets the message for its plain subscriptions.
    pub(crate) fn set_plain(&mut self, shards: ShardSet) {
        self.plain = shards;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.with_groups.is_empty()
    }

    /// Notes in a trace where the message goes. Returns what it crosses with.
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
        for shard in all.iter() {
            match shard {
                // Each link is an event of its own, once it is known which of them get the message.
                LEAFS if self.serves_leafs => {}
                LEAFS => trace.note_shard(LEAF_SHARD),
                shard => trace.note_shard(shard),
            }
        }
        TRACED
    }

    /// Nobody gets it.
    fn clear(&mut self) {
        self.plain = ShardSet::default();
        for shard in std::mem::take(&mut self.with_groups).iter() {
            if let Some(names) = self.names.get_mut(usize::from(shard)) {
                names.clear();
            }
        }
    }

    pub(crate) fn add_group(&mut self, shard: u16, name: &[u8]) {
        let at = usize::from(shard);
        if self.names.len() <= at {
            self.names.resize_with(at + 1, Vec::new);
        }
        self.names[at].extend_from_slice(name);
        self.names[at].push(b' ');
        self.with_groups.set(shard, true);
    }

    /// Puts the message into the batch of each shard once. Returns whether there was any.
    pub(crate) fn post(
        &mut self,
        outgoing: &mut [Batch],
        account: AccountId,
        subject: &[u8],
        message: &Message<'_>,
        hops: u8,
    ) -> bool {
        /// Room for names that is kept.
        const NAMES_BYTES: usize = 4096;
        let plain = std::mem::take(&mut self.plain);
        let mut all = std::mem::take(&mut self.with_groups);
        all.add(plain);
        if self.serves_leafs && all.contains(LEAFS) {
            self.for_leafs = Some(plain.contains(LEAFS));
            all.set(LEAFS, false);
        }
        for shard in all.iter() {
            let at = usize::from(shard);
            let to = match shard {
                LEAFS => usize::from(LEAF_SHARD),
                _ => at,
            };
            let groups = self.names.get(at).map_or(&[][..], Vec::as_slice);
            let shared = message.shared.as_ref();
            let message = Message {
                shared: shared.map(|(chunk, range)| (*chunk, range.clone())),
                ..*message
            };
            let plain = plain.contains(shard);
            outgoing[to].push_message(&Crossing {
                account,
                subject,
                message,
                plain,
                groups,
                hops,
                is_for_leafs: shard == LEAFS,
            });
            if let Some(names) = self.names.get_mut(at) {
                names.clear();
                names.shrink_to(NAMES_BYTES);
            }
        }
        !all.is_empty()
    }
}
