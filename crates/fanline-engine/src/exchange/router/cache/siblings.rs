//! Routes of subjects that are seen once each and differ in their last token alone, as the subjects that
//! replies and acknowledgements go to: one inbox, and a new name in it for each.
//!
//! Such a route is good for all of them if nobody has subscribed to one by its name, but only by wildcards.

use hashbrown::DefaultHashBuilder;

use super::{Exit, HEAD, Route, hash_subject};

/// How many inboxes have a place; two that share one take it from each other.
const PLACES: usize = 64;
/// Room for last tokens that are longer than the first one.
const SPARE_BYTES: usize = 64;
/// Wider routes are worked out anew.
const TARGETS_MAX: usize = 16;

/// The routes that siblings share.
pub(super) struct Siblings {
    places: Box<[Place]>,
    /// The place that was asked for last.
    last: usize,
    /// Changes with every filter: none of the routes is good any longer then.
    version: u64,
    hash_builder: DefaultHashBuilder,
}

#[derive(Default)]
struct Place {
    /// The hash of what the subjects begin with.
    parent: u64,
    state: State,
    version: u64,
    /// The bytes of the route's head up to the last token.
    parent_bytes: usize,
    /// With the last token of the subject that was asked for last.
    route: Route,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// A subject was asked for.
    #[default]
    Seen,
    /// They have one route.
    Shared,
    /// They differ, or their route is wide or leads to other accounts.
    Apart,
}

impl Siblings {
    pub(super) fn new() -> Self {
        Siblings {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            last: 0,
            version: 1,
            hash_builder: DefaultHashBuilder::default(),
        }
    }

    /// A filter has come or gone.
    pub(super) fn invalidate(&mut self) {
        self.version += 1;
    }

    /// Where the route of a subject is; it reads as that subject's own until another is found there.
    pub(super) fn find(&mut self, subject: &[u8]) -> Option<u32> {
        let (parent, token) = split(subject)?;
        if !self.places[self.last].takes(parent, self.version) {
            let (at, _) = self.place_of(parent);
            if !self.places[at].takes(parent, self.version) {
                return None;
            }
            self.last = at;
        }
        let place = &mut self.places[self.last];
        let head = &mut place.route.head;
        head.truncate(place.parent_bytes);
        head.extend_from_slice(token);
        head.push(b' ');
        u32::try_from(self.last).ok()
    }

    pub(super) fn route(&self, at: u32) -> &Route {
        &self.places[at as usize].route
    }

    pub(super) fn exits_mut(&mut self, at: u32) -> &mut Vec<Exit> {
        &mut self.places[at as usize].route.exits
    }

    /// Takes note of the route of a subject that was not found. `is_apart` says whether other filters than
    /// wildcards decide on its last token; it is asked when a second sibling has come.
    pub(super) fn note(&mut self, subject: &[u8], route: &Route, is_apart: impl FnOnce() -> bool) {
        let Some((parent, _)) = split(subject) else {
            return;
        };
        let (at, hash) = self.place_of(parent);
        let place = &mut self.places[at];
        if (place.parent, place.version) != (hash, self.version) {
            place.parent = hash;
            place.version = self.version;
            place.state = State::Seen;
            return;
        }
        if place.state == State::Apart {
            return;
        }
        // What an exit becomes in another account is worked out from the whole subject.
        if route.has_exits() || route.target_count() > TARGETS_MAX || is_apart() {
            place.state = State::Apart;
            return;
        }
        place.state = State::Shared;
        place.parent_bytes = HEAD.len() + parent.len();
        place.route.clone_targets(route);
        place.route.head.reserve(SPARE_BYTES);
    }

    fn place_of(&self, parent: &[u8]) -> (usize, u64) {
        let hash = hash_subject(&self.hash_builder, parent);
        let [low, ..] = hash.to_le_bytes();
        (usize::from(low) % PLACES, hash)
    }
}

impl Place {
    fn takes(&self, parent: &[u8], version: u64) -> bool {
        self.state == State::Shared
            && self.version == version
            && self.route.head.get(HEAD.len()..self.parent_bytes) == Some(parent)
    }
}

/// The tokens before the last, with their dot, and the last.
fn split(subject: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = subject.iter().rposition(|byte| *byte == b'.')?;
    let (parent, token) = subject.split_at(dot + 1);
    (!token.is_empty()).then_some((parent, token))
}
