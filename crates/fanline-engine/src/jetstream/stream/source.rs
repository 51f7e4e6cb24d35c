//! Mirrors and sources: records that come from another stream of the same server.
//!
//! They are read straight from the origin's log, what is durable of it: a copy never knows more than the
//! origin after a crash.

use std::collections::{BTreeMap, VecDeque};

use num_bigint::BigInt;
use serde::Serialize;

use super::append::{Admitted, Rollup};
use super::headers::{Block, find};
use super::{Stream, counter};
use crate::jetstream::{
    ApiError, External, Now, Port, Retention, StreamConfig, StreamSource, SubjectTransform,
};
use crate::store::{Filters, NewRecord, Search, StoreError};
use crate::topic::Filter;
use crate::transform::Transform;

/// So many records are copied before others get their turn.
const PULL_MAX: usize = 1_000;

const SOURCE_HEADER: &str = "Nats-Stream-Source";
const COUNTER_SOURCES_HEADER: &str = "Nats-Counter-Sources";

/// A stream to copy from.
pub(super) struct Source {
    config: StreamSource,
    is_mirror: bool,
    /// Of the origin's records, those to take.
    filters: Filters,
    /// What becomes of their subjects: the first that matches.
    renames: Vec<Rename>,
    /// The origin's next sequence; `None` until the origin has been asked where to begin.
    next: Option<u64>,
    /// What tells the origin from others that have had its name.
    identity: String,
    /// The last one that was taken.
    taken: u64,
    lag: u64,
    active: Option<i64>,
    /// Records to be removed from the origin (the first) once the copy (the second) is durable.
    to_remove: VecDeque<(u64, u64)>,
}

struct Rename {
    filter: Box<[u8]>,
    transform: Option<Transform>,
}

/// How far a mirror or a source is, as `StreamInfo` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// The origin's name.
    pub name: String,
    /// Where it is, if it is elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// How many of the origin's sequences are still to come.
    pub lag: u64,
    /// The origin's sequence that was taken last; a mirror's is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Nanoseconds since it was last heard of; -1 for never.
    pub active: i64,
    /// What is taken.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// What is taken, and what becomes of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
}

/// A record on its way from origin to copy.
struct Copied {
    sequence: u64,
    unix_nanos: i64,
    expires_at: Option<i64>,
    subject: Vec<u8>,
    headers: Vec<u8>,
    payload: Vec<u8>,
}

/// The mirror's origin, or the sources, of a configuration.
pub(super) fn all(config: &StreamConfig) -> Result<Vec<Source>, ApiError> {
    match &config.mirror {
        Some(mirror) => Ok(vec![
            Source::new(mirror, true).map_err(ApiError::mirror_invalid_transform_destination)?,
        ]),
        None => config
            .sources
            .iter()
            .map(|source| {
                Source::new(source, false).map_err(ApiError::source_invalid_transform_destination)
            })
            .collect(),
    }
}

impl Source {
    fn new(
        config: &StreamSource,
        is_mirror: bool,
    ) -> Result<Self, crate::transform::TransformError> {
        let mut renames = Vec::new();
        for rename in &config.subject_transforms {
            let transform = match rename.dest.is_empty() {
                true => None,
                false => Some(Transform::new(&rename.src, &rename.dest)?),
            };
            let filter = if rename.src.is_empty() {
                ">"
            } else {
                &rename.src
            };
            renames.push(Rename {
                filter: filter.as_bytes().into(),
                transform,
            });
        }
        if renames.is_empty() && !config.filter_subject.is_empty() {
            let filter = config.filter_subject.as_bytes().into();
            renames.push(Rename {
                filter,
                transform: None,
            });
        }
        Ok(Source {
            filters: Filters::new(renames.iter().map(|rename| &*rename.filter))?,
            config: config.clone(),
            is_mirror,
            renames,
            next: None,
            identity: String::new(),
            taken: 0,
            lag: 0,
            active: None,
            to_remove: VecDeque::new(),
        })
    }

    /// The subject of a copy.
    fn rename(&self, subject: &[u8], random: u32) -> Vec<u8> {
        let matching = self.renames.iter().find(|rename| {
            Filter::parse(&rename.filter).is_ok_and(|filter| filter.matches(subject))
        });
        let mut renamed = Vec::new();
        match matching.and_then(|rename| rename.transform.as_ref()) {
            Some(transform) if transform.apply(subject, random, &mut renamed) => renamed,
            _ => subject.to_vec(),
        }
    }

    /// The filters and what is made of them, as the header of a copy names them.
    fn named(&self) -> (String, String) {
        let filters: Vec<_> = self
            .renames
            .iter()
            .map(|rename| String::from_utf8_lossy(&rename.filter).into_owned())
            .collect();
        let destinations: Vec<_> = self
            .renames
            .iter()
            .map(|rename| {
                rename
                    .transform
                    .as_ref()
                    .map_or(&b">"[..], Transform::destination)
            })
            .map(|destination| String::from_utf8_lossy(destination).into_owned())
            .collect();
        let or_all = |names: Vec<String>| {
            if names.is_empty() {
                ">".to_owned()
            } else {
                // As nats-server does: a comma may be a part of a subject.
                names.join("\x0c")
            }
        };
        (or_all(filters), or_all(destinations))
    }

    /// Whether a copy's header says that it came this way; then the origin's sequence.
    fn sequence_of(&self, header: &[u8]) -> Option<u64> {
        let mut words = std::str::from_utf8(header).ok()?.split(' ');
        let (name, sequence) = (words.next()?, words.next()?);
        let (filters, destinations) = self.named();
        let is_it = name == self.config.name
            && words.next().is_none_or(|word| word == filters)
            && words.next().is_none_or(|word| word == destinations);
        if is_it { sequence.parse().ok() } else { None }
    }
}

impl Stream {
    /// The names of the streams of this server that it copies from.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        let local = self
            .sources
            .iter()
            .filter(|source| source.config.external.is_none());
        local.map(|source| source.config.name.as_str())
    }

    /// Eight characters that tell it from others that have had its name, before and after a restart.
    pub fn identity(&self) -> String {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        const CHARS: usize = 8;
        let mixed = self.config.name.bytes().fold(
            self.created
                .unsigned_abs()
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3),
        );
        let mut rest = mixed ^ (mixed >> 32);
        let mut digit = || {
            let at = usize::try_from(rest % 62).unwrap_or(0);
            rest /= 62;
            char::from(DIGITS[at])
        };
        (0..CHARS).map(|_| digit()).collect()
    }

    /// How far its mirror or sources are.
    pub fn source_status(&self, now: Now) -> Vec<SourceStatus> {
        let status = |source: &Source| SourceStatus {
            name: source.config.name.clone(),
            external: source.config.external.clone(),
            lag: source.lag,
            seq: Some(source.taken).filter(|seq| !source.is_mirror && *seq > 0),
            active: source
                .active
                .map_or(-1, |at| now.unix_nanos.saturating_sub(at)),
            filter_subject: source.config.filter_subject.clone(),
            subject_transforms: source.config.subject_transforms.clone(),
        };
        self.sources.iter().map(status).collect()
    }

    /// Copies what is new in an origin; true when there is more than fits one turn. To be called when the
    /// origin has stored or synced something, and when this stream has synced something.
    pub fn pull(&mut self, origin: &mut Stream, now: Now, port: &mut dyn Port) -> bool {
        self.clock = now;
        let mut has_more = false;
        let mut sources = std::mem::take(&mut self.sources);
        for source in &mut sources {
            let is_it =
                source.config.name == origin.config.name && source.config.external.is_none();
            if is_it {
                // A disk that cannot be read now is asked again next time.
                has_more |= self.pull_source(source, origin, port).unwrap_or(false);
                self.remove_taken(source, origin);
            }
        }
        self.sources = sources;
        has_more
    }

    fn pull_source(
        &mut self,
        source: &mut Source,
        origin: &mut Stream,
        port: &mut dyn Port,
    ) -> Result<bool, StoreError> {
        let mut next = match (source.next, &source.config.opt_start_time) {
            (Some(next), _) => next,
            (None, Some(time)) => origin.store.sequence_at(time.unix_nanos())?,
            (None, None) => source.config.opt_start_seq.max(1),
        };
        source.active = Some(self.clock.unix_nanos);
        if source.identity.is_empty() {
            source.identity = origin.identity();
        }
        let durable = origin.store.durable();
        let mut copied = 0;
        let mut is_searching = false;
        while copied < PULL_MAX {
            let found = match origin.store.search(&mut source.filters, next)? {
                Search::Found(sequence) => Some(sequence),
                Search::Nothing => None,
                Search::NotBelow(sequence) => {
                    next = next.max(sequence);
                    is_searching = true;
                    break;
                }
            };
            let Some(sequence) = found.filter(|sequence| *sequence <= durable) else {
                next = next.max(durable + 1);
                break;
            };
            match origin.store.read(sequence) {
                Ok(Some(record)) => {
                    let copy = Copied {
                        sequence,
                        unix_nanos: record.unix_nanos,
                        expires_at: record.expires_at,
                        subject: source.rename(record.subject, self.random()),
                        headers: without_conditions(record.headers),
                        payload: record.payload.to_vec(),
                    };
                    let origin_subject = record.subject.to_vec();
                    if self
                        .store_copy(source, copy, &origin_subject, port)
                        .is_err()
                    {
                        // There is no room, or a counter cannot be read: it is tried again.
                        break;
                    }
                    source.taken = sequence;
                }
                Ok(None) | Err(StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
            next = sequence + 1;
            copied += 1;
        }
        source.next = Some(next);
        source.lag = (origin.store.last_sequence() + 1).saturating_sub(next);
        Ok(copied == PULL_MAX || is_searching)
    }

    fn store_copy(
        &mut self,
        source: &mut Source,
        copy: Copied,
        origin_subject: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        let origin_sequence = copy.sequence;
        let own_sequence = if source.is_mirror {
            self.store_mirrored(&copy, port)?
        } else {
            self.store_sourced(source, copy, origin_subject, port)?
        };
        source.to_remove.push_back((origin_sequence, own_sequence));
        Ok(())
    }

    fn store_mirrored(&mut self, copy: &Copied, port: &mut dyn Port) -> Result<u64, ApiError> {
        let previous = self.previous_of(&copy.subject);
        let record = NewRecord {
            unix_nanos: copy.unix_nanos,
            subject: &copy.subject,
            headers: &copy.headers,
            payload: &copy.payload,
            expires_at: copy.expires_at,
        };
        match self.store.append_at(copy.sequence, &record) {
            // It was copied before.
            Err(StoreError::SequenceTaken { .. }) => return Ok(copy.sequence),
            result => result.map_err(ApiError::stream_store_failed)?,
        }
        self.consumers.handle_append(copy.sequence, &copy.subject);
        let admitted = Admitted {
            subject: &copy.subject,
            headers: &copy.headers,
            payload: &copy.payload,
            expires_at: copy.expires_at,
            ..Admitted::default()
        };
        self.follow_up(&admitted, copy.sequence, previous, port);
        Ok(copy.sequence)
    }

    fn store_sourced(
        &mut self,
        source: &Source,
        mut copy: Copied,
        origin_subject: &[u8],
        port: &mut dyn Port,
    ) -> Result<u64, ApiError> {
        if self.config.allow_msg_counter {
            self.add_up(source, &mut copy, origin_subject)?;
        }
        let (filters, destinations) = source.named();
        let origin = format!(
            "{} {} {filters} {destinations} ",
            source.config.name, copy.sequence
        );
        let identity = source.identity.as_bytes();
        let origin = [origin.as_bytes(), origin_subject, b" ", identity].concat();
        let mut headers = Vec::new();
        let headers = Block::filtered(&mut headers, &copy.headers, |n| {
            n != SOURCE_HEADER.as_bytes()
        })
        .add(SOURCE_HEADER, &origin)
        .end();
        let rollup = find(&copy.headers, b"Nats-Rollup").filter(|_| self.config.allow_rollup_hdrs);
        let admitted = Admitted {
            subject: &copy.subject,
            headers,
            payload: &copy.payload,
            expires_at: copy.expires_at.filter(|_| self.config.allow_msg_ttl),
            rollup: rollup.map(|text| match text.eq_ignore_ascii_case(b"all") {
                true => Rollup::All,
                false => Rollup::Subject,
            }),
            ..Admitted::default()
        };
        Ok(self.append(&admitted, port)?.0)
    }

    /// A counter's copy adds what the origin's value has grown by since the last copy.
    fn add_up(
        &mut self,
        source: &Source,
        copy: &mut Copied,
        origin_subject: &[u8],
    ) -> Result<(), ApiError> {
        type Counted = BTreeMap<String, BTreeMap<String, String>>;
        let value = counter::value(&copy.payload)?;
        let known = self.store.subject(&copy.subject).map(|known| known.last);
        let record = match known {
            Some(last) => self
                .store
                .read(last)
                .map_err(ApiError::stream_store_failed)?,
            None => None,
        };
        let mut sum = BigInt::default();
        let mut counted = Counted::new();
        if let Some(record) = record {
            sum = counter::value(record.payload)?;
            if let Some(header) = find(record.headers, COUNTER_SOURCES_HEADER.as_bytes()) {
                counted =
                    serde_json::from_slice(header).map_err(|_| ApiError::MESSAGE_COUNTER_BROKEN)?;
            }
        }
        let subject = String::from_utf8_lossy(origin_subject).into_owned();
        let before = counted.entry(source.config.name.clone()).or_default();
        let before = before.insert(subject, value.to_string());
        let before = before
            .and_then(|text| BigInt::parse_bytes(text.as_bytes(), 10))
            .unwrap_or_default();
        let grown_by = value - before;
        sum += &grown_by;
        copy.payload = counter::payload(&sum).into_bytes();
        let all = serde_json::to_vec(&counted).map_err(|_| ApiError::MESSAGE_COUNTER_BROKEN)?;
        let mut headers = Vec::new();
        let own = [COUNTER_SOURCES_HEADER.as_bytes(), b"Nats-Incr"];
        Block::filtered(&mut headers, &copy.headers, |name| !own.contains(&name))
            .add("Nats-Incr", grown_by.to_string().as_bytes())
            .add(COUNTER_SOURCES_HEADER, &all)
            .end();
        copy.headers = headers;
        Ok(())
    }

    /// An origin that keeps what nobody has taken yet gives up what is safe here.
    fn remove_taken(&self, source: &mut Source, origin: &mut Stream) {
        if origin.config.retention != Retention::WorkQueue {
            source.to_remove.clear();
            return;
        }
        let durable = self.store.durable();
        while let Some((sequence, copy)) = source.to_remove.front().copied()
            && copy <= durable
        {
            source.to_remove.pop_front();
            // What cannot be removed now is copied once more after a restart, no worse.
            let _ = origin.remove_record(sequence, false);
        }
    }

    /// Finds out from the log how far it had come.
    pub(super) fn recover_sources(&mut self) -> Result<(), StoreError> {
        let last = self.store.last_sequence();
        let mut missing = 0;
        for source in &mut self.sources {
            if source.is_mirror && last > 0 {
                source.next.get_or_insert(last + 1);
                source.taken = last;
            }
            missing += usize::from(source.next.is_none());
        }
        let mut sequence = last;
        let first = self.store.first_sequence();
        while missing > 0 && sequence >= first.max(1) {
            match self.store.read(sequence) {
                Ok(Some(record)) => {
                    let header = find(record.headers, SOURCE_HEADER.as_bytes()).unwrap_or_default();
                    let open = self
                        .sources
                        .iter_mut()
                        .filter(|source| source.next.is_none());
                    for source in open {
                        if let Some(taken) = source.sequence_of(header) {
                            (source.next, source.taken) = (Some(taken + 1), taken);
                            missing -= 1;
                        }
                    }
                }
                Ok(None) | Err(StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
            sequence -= 1;
        }
        Ok(())
    }

    /// Puts other sources in the place of those there are; what stays goes on where it is.
    pub(super) fn replace_sources(&mut self, mut sources: Vec<Source>) -> Result<(), StoreError> {
        let mut before = std::mem::take(&mut self.sources);
        for source in &mut sources {
            if let Some(at) = before.iter().position(|old| old.config == source.config) {
                std::mem::swap(source, &mut before[at]);
            }
        }
        self.sources = sources;
        self.recover_sources()
    }
}

/// A copy does not repeat what its origin's publisher expected.
fn without_conditions(headers: &[u8]) -> Vec<u8> {
    if headers.is_empty() {
        return Vec::new();
    }
    let mut kept = Vec::new();
    let block = Block::filtered(&mut kept, headers, |name| {
        !name.starts_with(b"Nats-Expected-")
    });
    block.end_or_empty().to_vec()
}
