//! Streams: what was acknowledged is stored, unless something explains that it is not.

mod consumer;

use std::collections::BTreeMap;

use consumer::Consumer;
pub(crate) use consumer::ConsumerKind;

use crate::violation::{Invariant, Outcome, violation};

/// How a stream is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// In a file, without limits.
    Plain,
    /// In a file, with a small number of messages.
    Limited,
    /// In a file, with the newest message of each subject.
    Latest,
    /// A work queue in a file.
    Work,
    /// In a file, until all consumers have acknowledged.
    Interest,
    /// In memory, without limits.
    Memory,
}

/// Messages of a [`Limited`](StreamKind::Limited) stream.
pub(crate) const LIMIT: u64 = 6;

/// The streams of a world, by name.
pub(crate) const STREAMS: [(&str, StreamKind); 6] = [
    ("PLAIN", StreamKind::Plain),
    ("LIMITED", StreamKind::Limited),
    ("LATEST", StreamKind::Latest),
    ("WORK", StreamKind::Work),
    ("INTEREST", StreamKind::Interest),
    ("MEMORY", StreamKind::Memory),
];

/// A message that was published to a stream.
#[derive(Clone, Debug)]
struct Published {
    subject: String,
    /// The step in which its publisher began to write it.
    at: u64,
    /// The highest sequence that was acknowledged then.
    floor: u64,
    /// Whether it has an id, by which a second copy is recognized.
    has_id: bool,
    acknowledged: Option<u64>,
}

/// A purge that was requested.
#[derive(Clone, Debug)]
struct Purge {
    /// The highest sequence that was acknowledged when it was requested.
    floor: u64,
    /// The step after which it has no effect any more.
    ended_at: Option<u64>,
    is_answered: bool,
}

/// A stream as its clients know it.
#[derive(Clone, Debug)]
pub(crate) struct StreamModel {
    pub(crate) name: &'static str,
    pub(crate) kind: StreamKind,
    pub(crate) account: usize,
    is_created: bool,
    published: BTreeMap<u64, Published>,
    acknowledged: BTreeMap<u64, u64>,
    /// Sequences whose deletion was requested, and whether it was confirmed.
    deleted: BTreeMap<u64, bool>,
    purges: Vec<Purge>,
    consumers: [Consumer; 2],
}

/// A stored record: its subject, and the number of its message.
pub(crate) type Stored = BTreeMap<u64, (String, u64)>;

impl StreamModel {
    pub(crate) fn new(name: &'static str, kind: StreamKind, account: usize) -> Self {
        StreamModel {
            name,
            kind,
            account,
            is_created: false,
            published: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            deleted: BTreeMap::new(),
            purges: Vec::new(),
            consumers: Default::default(),
        }
    }

    pub(crate) fn is_created(&self) -> bool {
        self.is_created
    }

    pub(crate) fn has_consumer(&self, kind: ConsumerKind) -> bool {
        self.consumers[kind as usize].created_at.is_some()
    }

    pub(crate) fn created(&mut self) {
        self.is_created = true;
    }

    pub(crate) fn consumer_created(&mut self, kind: ConsumerKind, at: u64) {
        self.consumers[kind as usize].created_at.get_or_insert(at);
    }

    /// Returns the highest acknowledged sequence.
    pub(crate) fn newest(&self) -> u64 {
        self.acknowledged
            .last_key_value()
            .map_or(0, |(sequence, _)| *sequence)
    }

    /// Returns the highest sequence that was acknowledged for a subject.
    pub(crate) fn newest_of(&self, subject: &str) -> u64 {
        let is_of = |message: &u64| {
            let published = self.published.get(message);
            published.is_some_and(|published| published.subject == subject)
        };
        let mut newest_first = self.acknowledged.iter().rev();
        let newest = newest_first.find(|(_, message)| is_of(message));
        newest.map_or(0, |(sequence, _)| *sequence)
    }

    /// Checks the newest record of a subject, its sequence and its message, that a client has read. `floor` was
    /// acknowledged before it requested it.
    pub(crate) fn read(&self, subject: &str, floor: u64, read: Option<(u64, u64)>) -> Outcome {
        if let Some((sequence, message)) = read {
            self.check_record(sequence, subject, message)?;
        }
        let sequence = read.map_or(0, |(sequence, _)| sequence);
        let published = self.acknowledged.get(&floor);
        let published = published.and_then(|message| self.published.get(message));
        // A memory stream that has started again has no records.
        let is_there = published.is_some_and(|published| !self.is_removed(floor, published));
        if sequence < floor && is_there {
            let text = format!(
                "{}: the newest record of {subject} has sequence {sequence}, and {floor} was acknowledged before",
                self.name
            );
            return violation(Invariant::Visibility, text);
        }
        Ok(())
    }

    /// Returns the sequences that were acknowledged to publishers.
    pub(crate) fn sequences(&self) -> Vec<u64> {
        self.acknowledged.keys().copied().collect()
    }

    /// Notes that a client has begun to publish a message, maybe again.
    pub(crate) fn publish(&mut self, message: u64, subject: &str, at: u64, has_id: bool) {
        let floor = self.newest();
        let published = || Published {
            subject: subject.to_owned(),
            at,
            floor,
            has_id,
            acknowledged: None,
        };
        self.published.entry(message).or_insert_with(published);
    }

    /// Returns some message that may be published again, with its subject.
    pub(crate) fn repeatable(&self) -> Option<(u64, String)> {
        let mut newest = self.published.iter().rev().take(5);
        let (id, published) = newest.find(|(_, published)| published.has_id)?;
        Some((*id, published.subject.clone()))
    }

    /// Checks the acknowledgement of a message.
    pub(crate) fn acknowledge(
        &mut self,
        message: u64,
        sequence: u64,
        is_duplicate: bool,
    ) -> Outcome {
        let name = self.name;
        let Some(published) = self.published.get_mut(&message) else {
            let text = format!("{name}: message {message} was never published");
            return violation(Invariant::Durability, text);
        };
        if let Some(before) = published.acknowledged
            && before != sequence
            && !self.deleted.contains_key(&before)
            && self.purges.is_empty()
        {
            let text =
                format!("{name}: message {message} has the sequences {before} and {sequence}");
            return violation(Invariant::Durability, text);
        }
        if !is_duplicate && sequence <= published.floor {
            let text = format!(
                "{name}: message {message} has sequence {sequence}, and {} was acknowledged before",
                published.floor
            );
            return violation(Invariant::Durability, text);
        }
        published.acknowledged = Some(sequence);
        match self.acknowledged.insert(sequence, message) {
            Some(other) if other != message => {
                let text =
                    format!("{name}: messages {other} and {message} have sequence {sequence}");
                violation(Invariant::Durability, text)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn delete(&mut self, sequence: u64) {
        self.deleted.entry(sequence).or_default();
    }

    pub(crate) fn deleted(&mut self, sequence: u64) {
        self.deleted.insert(sequence, true);
    }

    /// Notes a request to purge, and returns its number.
    pub(crate) fn purge(&mut self) -> usize {
        let floor = self.newest();
        self.purges.push(Purge {
            floor,
            ended_at: None,
            is_answered: false,
        });
        self.purges.len() - 1
    }

    pub(crate) fn purged(&mut self, purge: usize, at: u64) {
        if let Some(purge) = self.purges.get_mut(purge) {
            purge.ended_at = Some(at);
            purge.is_answered = true;
        }
    }

    /// Checks a delivery of a consumer.
    pub(crate) fn deliver(
        &mut self,
        kind: ConsumerKind,
        sequence: u64,
        subject: &str,
        message: u64,
    ) -> Outcome {
        let name = self.name;
        self.check_record(sequence, subject, message)?;
        let consumer = &mut self.consumers[kind as usize];
        if consumer.settled.contains(&sequence) {
            let text = format!(
                "{name}: sequence {sequence} was delivered after its confirmed acknowledgement"
            );
            return violation(Invariant::Durability, text);
        }
        consumer.delivered.insert(sequence);
        Ok(())
    }

    pub(crate) fn begin_ack(&mut self, kind: ConsumerKind, sequence: u64) {
        self.consumers[kind as usize].acknowledged.insert(sequence);
    }

    pub(crate) fn confirm_ack(&mut self, kind: ConsumerKind, sequence: u64) {
        self.consumers[kind as usize].confirmed.insert(sequence);
    }

    /// Records that no request is in transit any more. A request without an answer either has taken effect or
    /// never will.
    pub(crate) fn end_requests(&mut self, at: u64) {
        for purge in &mut self.purges {
            purge.ended_at.get_or_insert(at);
        }
        for consumer in &mut self.consumers {
            consumer.settled.extend(consumer.confirmed.iter());
        }
    }

    /// Notes that the server has started again.
    pub(crate) fn restart(&mut self, at: u64) {
        self.end_requests(at);
        if self.kind == StreamKind::Memory {
            *self = StreamModel::new(self.name, self.kind, self.account);
        }
        if self.kind == StreamKind::Interest {
            self.forget_unwanted();
        }
    }

    /// Forgets acknowledged messages that were published while the stream had no consumer. The server neither
    /// stores nor syncs anything for them, so after a power cut it may use their sequences again.
    fn forget_unwanted(&mut self) {
        let created_at = self.consumers[ConsumerKind::Pull as usize].created_at;
        let StreamModel {
            published,
            acknowledged,
            ..
        } = self;
        // Without a record, a message is not recognized either.
        for published in published.values_mut() {
            published.has_id = false;
        }
        acknowledged.retain(|_, message| {
            let published = published.get(message).map_or(0, |published| published.at);
            created_at.is_some_and(|at| published > at)
        });
    }

    fn check_record(&self, sequence: u64, subject: &str, message: u64) -> Outcome {
        let name = self.name;
        let published = self.published.get(&message);
        if published.is_none_or(|published| published.subject != subject) {
            let text = format!(
                "{name}: sequence {sequence} to {subject} is the unknown message {message}"
            );
            return violation(Invariant::Durability, text);
        }
        match self.acknowledged.get(&sequence) {
            Some(expected) if *expected != message => {
                let text =
                    format!("{name}: sequence {sequence} is message {message}, not {expected}");
                violation(Invariant::Durability, text)
            }
            _ => Ok(()),
        }
    }

    /// Checks what a stream has stored; `None` if there is no such stream.
    pub(crate) fn check(&self, stored: Option<&Stored>) -> Outcome {
        let name = self.name;
        let Some(stored) = stored else {
            return match self.is_created {
                true => violation(Invariant::Durability, format!("the stream {name} is gone")),
                false => Ok(()),
            };
        };
        let mut seen = BTreeMap::new();
        for (sequence, (subject, message)) in stored {
            self.check_record(*sequence, subject, *message)?;
            if let Some(other) = seen.insert(*message, *sequence) {
                let text =
                    format!("{name}: message {message} has the sequences {other} and {sequence}");
                return violation(Invariant::Durability, text);
            }
            if self.deleted.get(sequence) == Some(&true) {
                let text = format!("{name}: sequence {sequence} is there after its deletion");
                return violation(Invariant::Durability, text);
            }
            let mut purges = self.purges.iter().filter(|purge| purge.is_answered);
            if let Some(purge) = purges.find(|purge| *sequence <= purge.floor) {
                let text = format!(
                    "{name}: sequence {sequence} is there after a purge up to {}",
                    purge.floor
                );
                return violation(Invariant::Durability, text);
            }
        }
        for (sequence, message) in &self.acknowledged {
            if !stored.contains_key(sequence) && !self.explains(*sequence, *message, stored) {
                let text = format!(
                    "{name}: message {message} was acknowledged with sequence {sequence} and is not stored"
                );
                return violation(Invariant::Durability, text);
            }
        }
        Ok(())
    }

    /// Whether something explains that a message is not stored.
    fn explains(&self, sequence: u64, message: u64, stored: &Stored) -> bool {
        let Some(published) = self.published.get(&message) else {
            return false;
        };
        let newest = stored.last_key_value().map_or(0, |(sequence, _)| *sequence);
        let newest = newest.max(self.newest());
        let mut later = stored.range(sequence + 1..);
        let mut later_acknowledged = self.acknowledged.range(sequence + 1..);
        let has_same_subject = |message: &u64| {
            self.published
                .get(message)
                .is_some_and(|it| it.subject == published.subject)
        };
        let pull = &self.consumers[ConsumerKind::Pull as usize];
        let by_kind = match self.kind {
            StreamKind::Plain | StreamKind::Memory => false,
            StreamKind::Limited => newest - sequence >= LIMIT,
            StreamKind::Latest => {
                later.any(|(_, (subject, _))| *subject == published.subject)
                    || later_acknowledged.any(|(_, message)| has_same_subject(message))
            }
            StreamKind::Work => pull.acknowledged.contains(&sequence),
            // Without a consumer, a message is not stored.
            StreamKind::Interest => {
                pull.acknowledged.contains(&sequence)
                    || pull.created_at.is_none_or(|at| published.at <= at)
            }
        };
        by_kind || self.is_removed(sequence, published)
    }

    /// Whether a client has requested to remove a record, alone or by a purge.
    fn is_removed(&self, sequence: u64, published: &Published) -> bool {
        let is_purged = |purge: &Purge| purge.ended_at.is_none_or(|at| published.at <= at);
        self.deleted.contains_key(&sequence) || self.purges.iter().any(is_purged)
    }

    /// Checks that the consumers have delivered everything.
    pub(crate) fn check_delivered(&self, stored: &Stored) -> Outcome {
        let name = self.name;
        let created = self.consumers.iter().filter(|it| it.created_at.is_some());
        for consumer in created {
            let mut missing = stored.keys();
            if let Some(sequence) = missing.find(|it| !consumer.delivered.contains(*it)) {
                let text = format!("{name}: sequence {sequence} is stored and was never delivered");
                return violation(Invariant::Liveness, text);
            }
        }
        let is_emptied = matches!(self.kind, StreamKind::Work | StreamKind::Interest);
        if is_emptied && self.has_consumer(ConsumerKind::Pull) && !stored.is_empty() {
            let text = format!(
                "{name}: {} messages are stored after their acknowledgements",
                stored.len()
            );
            return violation(Invariant::Liveness, text);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
