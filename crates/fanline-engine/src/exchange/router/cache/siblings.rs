//! Shared routes of sibling subjects, which differ in their last token only. Each sibling is typically seen
//! once, like the reply subjects of requests and acknowledgements: one inbox prefix, with a new last token
//! each time.
//!
//! All siblings share a route if no filter has a literal last token that matches one of them.
//!
//! Subjects with a longer variable part, such as those of acknowledgements, share a route if the filters decide
//! on their common prefix only.

use hashbrown::DefaultHashBuilder;

use super::{BridgeTarget, HEAD, Route, hash_subject};
use crate::subject::trie::has_empty_token;

/// Number of slots for common prefixes. Two prefixes in one slot replace each other.
const SLOTS: usize = 64;
/// Number of slots for prefixes that filters decide on. They follow the other slots.
const PREFIX_SLOTS: usize = 4;
/// Spare capacity in bytes for last tokens that are longer than the first one.
const SPARE_BYTES: usize = 64;
/// Largest number of targets of a shared route. A wider route is built for each subject.
const TARGETS_MAX: usize = 16;

/// The shared routes of siblings.
pub(super) struct Siblings {
    slots: Box<[Slot]>,
    /// Slot of the latest lookup.
    last: usize,
    /// Slot of the next prefix, which replaces the oldest one.
    next_prefix: usize,
    /// Incremented with every change of a filter. All routes of earlier versions are invalid.
    version: u64,
    hash_builder: DefaultHashBuilder,
}

#[derive(Default)]
struct Slot {
    /// Hash of the prefix that all siblings share.
    parent: u64,
    state: State,
    version: u64,
    /// Length of the route's head up to the last token.
    parent_bytes: usize,
    /// The shared route. Its head contains the last token of the latest lookup.
    route: Route,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// One sibling was seen.
    #[default]
    Seen,
    /// The siblings share a route.
    Shared,
    /// The siblings cannot share a route: their routes differ, are wide, or lead to other accounts.
    Separate,
}

impl Siblings {
    pub(super) fn new() -> Self {
        Siblings {
            slots: (0..SLOTS + PREFIX_SLOTS).map(|_| Slot::default()).collect(),
            last: 0,
            next_prefix: SLOTS,
            version: 1,
            hash_builder: DefaultHashBuilder::default(),
        }
    }

    /// Invalidates all routes after a filter was added or removed.
    pub(super) fn invalidate(&mut self) {
        self.version += 1;
    }

    /// Returns the slot of a subject's route like [`find`](Self::find), if the subject is another sibling of the
    /// last one looked up, or has the prefix of a slot. A repeated subject is not found, because its route is
    /// worth caching.
    #[inline]
    pub(super) fn find_next(&mut self, subject: &[u8]) -> Option<u32> {
        let has_prefix = |at: &usize| self.slots[*at].has_prefix_of(subject, self.version);
        // Subjects of the server itself, such as those of acknowledgements, differ in more than the last token.
        if subject.first() == Some(&b'$')
            && let Some(at) = (SLOTS..SLOTS + PREFIX_SLOTS).find(has_prefix)
        {
            return self.take(at, subject);
        }
        if self.slots[self.last].takes_sibling(subject, self.version) {
            return self.take(self.last, subject);
        }
        let at = (SLOTS..SLOTS + PREFIX_SLOTS).find(has_prefix)?;
        self.take(at, subject)
    }

    /// Writes a subject into the head of a slot's route, and returns the slot. Returns `None` if the head
    /// contains the subject already.
    fn take(&mut self, at: usize, subject: &[u8]) -> Option<u32> {
        let slot = &mut self.slots[at];
        let token = &subject[slot.parent_bytes - HEAD.len()..];
        let is_new = slot
            .route
            .head
            .get(slot.parent_bytes..slot.route.head.len() - 1)
            != Some(token);
        if is_new {
            slot.set_token(token);
        }
        is_new.then_some(u32::try_from(at).ok()?)
    }

    /// Records the route of all subjects that begin with the first `prefix` bytes of a subject.
    pub(super) fn record_prefix(&mut self, subject: &[u8], prefix: usize, route: &Route) {
        if route.has_bridge_targets() || route.target_count() > TARGETS_MAX {
            return;
        }
        let slot = &mut self.slots[self.next_prefix];
        slot.state = State::Shared;
        slot.version = self.version;
        slot.parent_bytes = HEAD.len() + prefix;
        slot.route.clone_targets(route);
        slot.route
            .head
            .reserve(SPARE_BYTES + subject.len() - prefix);
        self.next_prefix = SLOTS + (self.next_prefix + 1 - SLOTS) % PREFIX_SLOTS;
    }

    /// Returns the slot of a subject's route. Until the next lookup, the route's head contains this subject.
    pub(super) fn find(&mut self, subject: &[u8]) -> Option<u32> {
        let (parent, token) = split(subject)?;
        if !self.slots[self.last].takes(parent, self.version) {
            let (at, _) = self.slot_of(parent);
            if !self.slots[at].takes(parent, self.version) {
                return None;
            }
            self.last = at;
        }
        self.slots[self.last].set_token(token);
        u32::try_from(self.last).ok()
    }

    /// Returns whether a slot contains the current route of a subject, which was looked up last.
    pub(super) fn holds(&self, at: u32, subject: &[u8]) -> bool {
        let slot = &self.slots[at as usize];
        slot.version == self.version && slot.route.subject() == subject
    }

    /// Returns the route of a slot if it is current, and siblings share it. A prefix that filters decide on is not
    /// a slot of siblings.
    pub(super) fn current_route(&self, at: u32) -> Option<&Route> {
        let slot = self
            .slots
            .get(at as usize)
            .filter(|_| (at as usize) < SLOTS)?;
        let is_current = slot.state == State::Shared && slot.version == self.version;
        is_current.then_some(&slot.route)
    }

    /// Returns whether a subject is a sibling of those whose route is in a slot.
    #[inline]
    pub(super) fn takes(&self, at: u32, subject: &[u8]) -> bool {
        self.slots[at as usize].takes_sibling(subject, self.version)
    }

    pub(super) fn route(&self, at: u32) -> &Route {
        &self.slots[at as usize].route
    }

    pub(super) fn bridge_targets_mut(&mut self, at: u32) -> &mut Vec<BridgeTarget> {
        &mut self.slots[at as usize].route.bridge_targets
    }

    /// Records a new route of a subject without a shared route. For a second sibling, calls `is_separate`,
    /// which returns whether a filter distinguishes the siblings by a literal last token.
    pub(super) fn record(
        &mut self,
        subject: &[u8],
        route: &Route,
        is_separate: impl FnOnce() -> bool,
    ) {
        let Some((parent, _)) = split(subject) else {
            return;
        };
        let (at, hash) = self.slot_of(parent);
        let slot = &mut self.slots[at];
        if (slot.parent, slot.version) != (hash, self.version) {
            slot.parent = hash;
            slot.version = self.version;
            slot.state = State::Seen;
            return;
        }
        if slot.state == State::Separate {
            return;
        }
        // A destination in another account depends on the whole subject.
        if route.has_bridge_targets() || route.target_count() > TARGETS_MAX || is_separate() {
            slot.state = State::Separate;
            return;
        }
        slot.state = State::Shared;
        slot.parent_bytes = HEAD.len() + parent.len();
        slot.route.clone_targets(route);
        slot.route.head.reserve(SPARE_BYTES);
    }

    fn slot_of(&self, parent: &[u8]) -> (usize, u64) {
        let hash = hash_subject(&self.hash_builder, parent);
        let [low, ..] = hash.to_le_bytes();
        (usize::from(low) % SLOTS, hash)
    }
}

impl Slot {
    fn takes(&self, parent: &[u8], version: u64) -> bool {
        self.state == State::Shared
            && self.version == version
            && self.route.head.get(HEAD.len()..self.parent_bytes) == Some(parent)
    }

    /// Returns whether the slot's route is that of a subject, because only its last token follows the prefix.
    fn takes_sibling(&self, subject: &[u8], version: u64) -> bool {
        let parent = self.route.head.get(HEAD.len()..self.parent_bytes);
        let token = parent.and_then(|parent| subject.strip_prefix(parent));
        self.state == State::Shared
            && self.version == version
            && token.is_some_and(|token| !token.is_empty() && !token.contains(&b'.'))
    }

    /// Returns whether the slot's route is that of a subject, because the subject has the slot's prefix.
    fn has_prefix_of(&self, subject: &[u8], version: u64) -> bool {
        let prefix = self.route.head.get(HEAD.len()..self.parent_bytes);
        let rest = prefix.and_then(|prefix| subject.strip_prefix(prefix));
        self.version == version
            && rest.is_some_and(|rest| !rest.is_empty() && !has_empty_token(rest))
    }

    /// Sets the last token of the subject in the route's head.
    fn set_token(&mut self, token: &[u8]) {
        let head = &mut self.route.head;
        head.truncate(self.parent_bytes);
        head.extend_from_slice(token);
        head.push(b' ');
    }
}

/// Splits a subject into its prefix, which ends with a dot, and its last token.
fn split(subject: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = subject.iter().rposition(|byte| *byte == b'.')?;
    let (parent, token) = subject.split_at(dot + 1);
    (!token.is_empty()).then_some((parent, token))
}
