//! Shared routes of sibling subjects, which differ in their last token only. Each sibling is typically seen
//! once, like the reply subjects of requests and acknowledgements: one inbox prefix, with a new last token
//! each time.
//!
//! All siblings share a route if no filter has a literal last token that matches one of them.

use hashbrown::DefaultHashBuilder;

use super::{Exit, HEAD, Route, hash_subject};

/// Number of slots for common prefixes. Two prefixes in one slot replace each other.
const SLOTS: usize = 64;
/// Spare capacity in bytes for last tokens that are longer than the first one.
const SPARE_BYTES: usize = 64;
/// Largest number of targets of a shared route. A wider route is built for each subject.
const TARGETS_MAX: usize = 16;

/// The shared routes of siblings.
pub(super) struct Siblings {
    slots: Box<[Slot]>,
    /// Slot of the latest lookup.
    last: usize,
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
    Apart,
}

impl Siblings {
    pub(super) fn new() -> Self {
        Siblings {
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            last: 0,
            version: 1,
            hash_builder: DefaultHashBuilder::default(),
        }
    }

    /// Invalidates all routes after a filter was added or removed.
    pub(super) fn invalidate(&mut self) {
        self.version += 1;
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
        let slot = &mut self.slots[self.last];
        let head = &mut slot.route.head;
        head.truncate(slot.parent_bytes);
        head.extend_from_slice(token);
        head.push(b' ');
        u32::try_from(self.last).ok()
    }

    pub(super) fn route(&self, at: u32) -> &Route {
        &self.slots[at as usize].route
    }

    pub(super) fn exits_mut(&mut self, at: u32) -> &mut Vec<Exit> {
        &mut self.slots[at as usize].route.exits
    }

    /// Records a new route of a subject without a shared route. For a second sibling, calls `is_apart`, which
    /// returns whether a filter distinguishes the siblings by a literal last token.
    pub(super) fn note(&mut self, subject: &[u8], route: &Route, is_apart: impl FnOnce() -> bool) {
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
        if slot.state == State::Apart {
            return;
        }
        // A destination in another account depends on the whole subject.
        if route.has_exits() || route.target_count() > TARGETS_MAX || is_apart() {
            slot.state = State::Apart;
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
}

/// Splits a subject into its prefix, which ends with a dot, and its last token.
fn split(subject: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = subject.iter().rposition(|byte| *byte == b'.')?;
    let (parent, token) = subject.split_at(dot + 1);
    (!token.is_empty()).then_some((parent, token))
}
