//! A stream's consumers, as the stream sees them.

use std::time::Duration;

use super::Stream;
use crate::jetstream::{Now, Port};
use crate::store::Store;

/// The consumers of a stream.
#[derive(Default)]
pub(super) struct Consumers {}

impl Consumers {
    /// Whether one of them wants a record of this subject.
    pub(super) fn want(&self, _subject: &[u8]) -> bool {
        false
    }

    pub(super) fn appended(
        &mut self,
        _store: &mut Store,
        _subject: &[u8],
        _sequence: u64,
        _now: Now,
        _port: &mut dyn Port,
    ) {
    }

    pub(super) fn removed(&mut self, _sequence: u64) {}

    pub(super) fn purged(&mut self, _store: &mut Store) {}

    pub(super) fn settle(&mut self, _store: &mut Store, _now: Now, _port: &mut dyn Port) {}

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        None
    }

    pub(super) fn handle_timeout(&mut self, _store: &mut Store, _now: Now, _port: &mut dyn Port) {}
}

impl Stream {
    /// Removes what no consumer needs any more, on a stream that keeps nothing else.
    pub(super) fn settle_interest(&mut self, _port: &mut dyn Port) {}
}
