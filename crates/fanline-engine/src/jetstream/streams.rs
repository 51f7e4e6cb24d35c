//! The streams of an account: by name, by subject, and by next timer.

use std::time::Duration;

use hashbrown::HashMap;
use slab::Slab;

use super::pending_answers::PendingAnswers;
use super::stream::Stream;
use super::{ApiError, OVERLAP_STEPS_MAX, too_many_filters};
use crate::store::DiskError;
use crate::store::documents::Documents;
use crate::subject::Filter;
use crate::subject::trie::{Trie, Vacant, has_empty_token};
use crate::timers::Timers;

/// Start of the subjects of JetStream itself: of requests, acknowledgements, and events.
pub(super) const OWN_PREFIX: &[u8] = b"$JS.";

/// Unique id of a stream; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Index of a stream in the table; reused after its deletion.
pub(super) type Key = usize;

/// All streams, in a table.
#[derive(Default)]
pub(super) struct Streams {
    entries: Slab<StreamEntry>,
    by_name: HashMap<Box<str>, Key>,
    by_id: HashMap<StreamId, Key>,
    by_subject: Trie<SubjectOwner>,
    /// Number of filters of `by_subject` that may match a subject of JetStream itself.
    own_filters: usize,
    /// The last subject looked up, and its stream: publishers often repeat a subject.
    last_lookup: (Vec<u8>, Option<Key>),
    /// The last prefix that decided on the stream of a subject, and this stream; `None` if there is none.
    last_prefix: Option<(Vec<u8>, Option<Key>)>,
    /// Streams that copy from a stream of this name, whether it exists or not.
    readers: HashMap<Box<str>, Vec<Key>>,
    timers: Timers<Key>,
    /// Streams with events since [`take_touched`](Streams::take_touched).
    touched: Vec<Key>,
    ids: u64,
}

pub(super) struct StreamEntry {
    pub(super) stream: Stream,
    /// Documents in the stream's folder; `None` for a stream without one.
    pub(super) documents: Option<Documents>,
    /// Answers that wait for the disk.
    answers: PendingAnswers,
    pub(super) id: StreamId,
    is_touched: bool,
    /// After a disk failure: the error, and the time of the next attempt.
    pub(super) backoff: Option<(DiskError, Duration)>,
}

/// The stream that has a filter of the trie among its subjects.
#[derive(Default)]
struct SubjectOwner(Option<Key>);

impl Vacant for SubjectOwner {
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<Key> {
        self.by_name.get(name).copied()
    }

    pub(super) fn by_id(&self, id: StreamId) -> Option<Key> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn id(&self, key: Key) -> Option<StreamId> {
        self.entries.get(key).map(|entry| entry.id)
    }

    /// Returns a stream with its documents and state, without marking it as touched.
    pub(super) fn entry(&mut self, key: Key) -> Option<&mut StreamEntry> {
        self.entries.get_mut(key)
    }

    pub(super) fn get(&self, key: Key) -> Option<&Stream> {
        self.entries.get(key).map(|entry| &entry.stream)
    }

    /// Returns a stream to change, and marks it as touched, so that the next `settle` processes it.
    pub(super) fn touch(&mut self, key: Key) -> Option<&mut Stream> {
        let entry = self.entries.get_mut(key)?;
        if !entry.is_touched {
            entry.is_touched = true;
            self.touched.push(key);
        }
        Some(&mut entry.stream)
    }

    /// Returns a stream to read, or to change in a way that needs no `settle`.
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Stream> {
        self.entries.get_mut(key).map(|entry| &mut entry.stream)
    }

    /// Returns a stream and its documents.
    pub(super) fn with_documents(
        &mut self,
        key: Key,
    ) -> Option<(&mut Stream, Option<&mut Documents>)> {
        let entry = self.entries.get_mut(key)?;
        Some((&mut entry.stream, entry.documents.as_mut()))
    }

    /// Returns a stream, its documents, and its pending answers.
    pub(super) fn with_answers(
        &mut self,
        key: Key,
    ) -> Option<(&mut Stream, Option<&mut Documents>, &mut PendingAnswers)> {
        let entry = self.entries.get_mut(key)?;
        let documents = entry.documents.as_mut();
        Some((&mut entry.stream, documents, &mut entry.answers))
    }

    /// Returns two streams at once, without marking them as touched.
    pub(super) fn pair(&mut self, one: Key, other: Key) -> Option<(&mut Stream, &mut Stream)> {
        let (one, other) = self.entries.get2_mut(one, other)?;
        Some((&mut one.stream, &mut other.stream))
    }

    /// Returns all streams in name order.
    pub(super) fn sorted(&self) -> Vec<(&str, Key)> {
        let names = self.by_name.iter().map(|(name, key)| (&**name, *key));
        let mut sorted: Vec<_> = names.collect();
        sorted.sort_unstable();
        sorted
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &Stream)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.stream))
    }

    /// Returns the stream that stores messages to a subject, and caches it for the next call.
    pub(super) fn find_stream_of(&mut self, subject: &[u8]) -> Option<Key> {
        let found = self.stream_of(subject);
        let (last, stream_of) = &mut self.last_lookup;
        if last != subject {
            last.clear();
            last.extend_from_slice(subject);
            *stream_of = found;
            self.note_prefix(subject, found);
        }
        found
    }

    /// Caches the stream of all subjects that begin like this one, if no filter decides on the rest.
    fn note_prefix(&mut self, subject: &[u8], found: Option<Key>) {
        if self.stream_of_prefix(subject).is_none()
            && let Some(bytes) = self.by_subject.deciding_prefix(subject)
        {
            let (prefix, stream_of) = self.last_prefix.get_or_insert_default();
            prefix.clear();
            prefix.extend_from_slice(&subject[..bytes]);
            *stream_of = found;
        }
    }

    /// Returns the stream of a subject, if the subject begins with the last prefix.
    fn stream_of_prefix(&self, subject: &[u8]) -> Option<Option<Key>> {
        let (prefix, stream_of) = self.last_prefix.as_ref()?;
        let rest = subject.strip_prefix(&**prefix)?;
        (!rest.is_empty() && !has_empty_token(rest)).then_some(*stream_of)
    }

    /// Returns whether a stream may store messages to subjects of JetStream itself.
    pub(super) fn may_store_own(&self) -> bool {
        self.own_filters > 0
    }

    /// Returns the stream that stores messages to a subject, if it was the last one looked up.
    pub(super) fn last_stream_of(&self, subject: &[u8]) -> Option<Key> {
        let (last, stream_of) = &self.last_lookup;
        stream_of.filter(|_| last == subject)
    }

    /// Returns the stream that stores messages to a subject.
    pub(super) fn stream_of(&self, subject: &[u8]) -> Option<Key> {
        let (last, stream_of) = &self.last_lookup;
        if last == subject && !subject.is_empty() {
            return *stream_of;
        }
        if let Some(stream_of) = self.stream_of_prefix(subject) {
            return stream_of;
        }
        let mut found = None;
        self.by_subject.filters_matching(subject, &mut |stream_of| {
            found = found.or(stream_of.0);
        });
        found
    }

    /// Returns the streams that copy from a stream of this name.
    pub(super) fn readers(&self, origin: &str) -> &[Key] {
        self.readers.get(origin).map_or(&[], Vec::as_slice)
    }

    /// Returns a mirror that answers direct gets in place of a stream of this name.
    pub(super) fn mirror_of(&self, origin: &str) -> Option<Key> {
        // A scan suffices: mirrors are few, and this is called only if there is no such stream.
        let stands_in = |stream: &Stream| {
            let config = stream.config();
            let mirror = config.mirror.as_ref().filter(|_| config.mirror_direct);
            mirror.is_some_and(|mirror| mirror.name == origin)
        };
        let mut all = self.iter();
        all.find_map(|(key, stream)| stands_in(stream).then_some(key))
    }

    pub(super) fn insert(&mut self, stream: Stream, documents: Option<Documents>) -> Key {
        self.ids += 1;
        let id = StreamId(self.ids);
        let name = stream.config().name.as_str().into();
        let key = self.entries.insert(StreamEntry {
            stream,
            documents,
            answers: PendingAnswers::default(),
            id,
            is_touched: false,
            backoff: None,
        });
        self.by_name.insert(name, key);
        self.by_id.insert(id, key);
        self.enter(key);
        self.touch(key);
        key
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<(Stream, PendingAnswers)> {
        self.leave(key);
        let entry = self.entries.try_remove(key)?;
        self.by_name.remove(entry.stream.config().name.as_str());
        self.by_id.remove(&entry.id);
        self.timers.set(key, None);
        self.touched.retain(|other| *other != key);
        Some((entry.stream, entry.answers))
    }

    /// Removes a stream's subjects and origins from the tables. Call it before they change.
    pub(super) fn leave(&mut self, key: Key) {
        self.last_lookup.0.clear();
        self.last_prefix = None;
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        for subject in &entry.stream.config().subjects {
            self.own_filters -= usize::from(may_match_own(subject));
            if let Some(node) = self.by_subject.find(subject.as_bytes()) {
                self.by_subject.value_mut(node).0 = None;
                self.by_subject.release(node);
            }
        }
        self.readers.retain(|_, readers| {
            readers.retain(|reader| *reader != key);
            !readers.is_empty()
        });
    }

    /// Adds a stream's subjects and origins to the tables. Call it after they have changed.
    pub(super) fn enter(&mut self, key: Key) {
        self.last_lookup.0.clear();
        self.last_prefix = None;
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        for subject in &entry.stream.config().subjects {
            self.own_filters += usize::from(may_match_own(subject));
            let node = self.by_subject.insert(subject.as_bytes());
            self.by_subject.value_mut(node).0 = Some(key);
        }
        for origin in entry.stream.origins() {
            let readers = self.readers.entry(origin.into()).or_default();
            if !readers.contains(&key) {
                readers.push(key);
            }
        }
    }

    /// Returns whether a stream other than `except` stores a subject that one of the filters matches.
    pub(super) fn is_any_stored(
        &self,
        filters: &[String],
        except: Option<Key>,
    ) -> Result<bool, ApiError> {
        let mut steps = OVERLAP_STEPS_MAX;
        for filter in filters {
            let Ok(filter) = Filter::parse(filter.as_bytes()) else {
                continue;
            };
            let is_other = |stream_of: &SubjectOwner| stream_of.0 != except;
            let answers = self.by_subject.overlapping(filter, &mut steps, is_other);
            if answers.map_err(too_many_filters)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the streams marked as touched.
    pub(super) fn touched(&self) -> &[Key] {
        &self.touched
    }

    /// Moves the streams marked as touched into `touched`, and clears the marks.
    pub(super) fn take_touched(&mut self, touched: &mut Vec<Key>) {
        touched.append(&mut self.touched);
        for key in touched {
            if let Some(entry) = self.entries.get_mut(*key) {
                entry.is_touched = false;
            }
        }
    }

    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Updates the time at which a stream is due.
    pub(super) fn set_timer(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let next_sync = match entry.backoff {
            Some((_, until)) => Some(until),
            None => entry.stream.next_sync_at(),
        };
        let timers = [entry.stream.next_timeout(), next_sync];
        self.timers.set(key, timers.into_iter().flatten().min());
    }

    /// Sets the disk failure of a stream, with the time of the next attempt. Returns the earlier failure.
    pub(super) fn set_backoff(
        &mut self,
        key: Key,
        backoff: Option<(DiskError, Duration)>,
    ) -> Option<DiskError> {
        let entry = self.entries.get_mut(key)?;
        let was = std::mem::replace(&mut entry.backoff, backoff);
        if was.is_some() || backoff.is_some() {
            self.set_timer(key);
        }
        was.map(|(error, _)| error)
    }

    /// Returns the time at which the first stream is due.
    pub(super) fn next_timer(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Returns a stream that is due, and removes its timer.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<Key> {
        self.timers.pop(now)
    }
}

/// Returns whether a filter may match a subject of JetStream itself.
fn may_match_own(filter: &str) -> bool {
    filter.starts_with(['*', '>']) || filter.as_bytes().starts_with(OWN_PREFIX)
}

/// Returns whether the filter matches some subject that the stream stores.
pub(super) fn has_subject(stream: &Stream, filter: &str) -> bool {
    let subjects = &stream.config().subjects;
    Filter::parse(filter.as_bytes()).is_ok() && subjects.iter().any(|s| super::overlap(s, filter))
}
