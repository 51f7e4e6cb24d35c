//! All consumers of a stream.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use slab::Slab;

use super::ack::{Ack, AckTokens};
use super::groups::Groups;
use super::info::ConsumerInfo;
use super::machine::Consumer;
use super::serve::{DELIVERED_BYTES_MAX, ServeResult};
use super::shared::{CallContext, CallWithStore, CommonState, Context, nanos};
use super::state::State;
use super::status::{Remaining, Status};
use super::{ConsumerId, RestoreError};
use crate::jetstream::api::requires_newer_level;
use crate::jetstream::{
    AckPolicy, ApiError, ConsumerConfig, Message, Now, Retention, SAVE_DELAY_MAX,
};
use crate::random::Seed;
use crate::store::StoreError;
use crate::subject::Filter;
use crate::timers::Timers;

/// Maximum number of acknowledgements that wait for confirmation. Further ones are not confirmed, so that
/// their senders retry.
const CONFIRMATIONS_MAX: usize = 65_536;

/// All consumers of a stream.
///
/// # Calling order
///
/// Call [`handle_append`](Self::handle_append) for each stored record and
/// [`handle_removed`](Self::handle_removed) for each removed one, before other methods. Call the other
/// `handle_*` methods and commands for their events. Then call [`settle`](Self::settle) once, which delivers
/// records. Afterward [`take_unneeded`](Self::take_unneeded) and [`take_unused`](Self::take_unused) return work for
/// the stream, and [`next_timeout`](Self::next_timeout) returns the time at which to call
/// [`handle_timeout`](Self::handle_timeout).
///
/// # Cost
///
/// A record costs one step for each distinct set of filters that matches it, plus the work of the consumers
/// that wait for it. Ten thousand idle consumers cost nothing. A delivery allocates nothing after the buffers
/// have reached their final size.
pub struct Consumers {
    shared: CommonState,
    groups: Groups,
    entries: Slab<ConsumerEntry>,
    by_name: HashMap<Box<str>, ConsumerId>,
    /// Push consumers by deliver subject.
    by_subject: HashMap<Box<[u8]>, Vec<ConsumerId>>,
    /// Deliver subjects that were added (`true`) or removed (`false`) since they were last taken.
    receivers: Vec<(Box<[u8]>, bool)>,
    /// Consumers to serve in the next call of [`settle`](Self::settle).
    ready: VecDeque<ConsumerId>,
    /// Consumers that wait for the next sync of the log.
    waiting_for_disk: Vec<ConsumerId>,
    /// Sequence up to which the log was durable in the last call of [`handle_durable`](Self::handle_durable).
    durable: u64,
    /// Time of each consumer's next timer. It may be too early, but never too late.
    timers: Timers<ConsumerId>,
    /// Time at which to save changed states.
    save_at: Option<Duration>,
    calls: u64,
}

struct ConsumerEntry {
    consumer: Consumer,
    is_ready: bool,
    /// Whether the consumer's group will wake the consumer for the next matching record.
    is_waiting: bool,
}

impl ConsumerEntry {
    fn save(&mut self, state: &mut Vec<u8>, save: &mut dyn FnMut(&Consumer, &[u8])) {
        if std::mem::take(&mut self.consumer.is_unsaved) {
            self.consumer.encode_state(state);
            save(&self.consumer, state);
        }
    }
}

impl Consumers {
    /// Creates an empty set for a stream.
    pub fn new(stream: &str, account: &str, retention: Retention, seed: Seed) -> Self {
        let mut consumers = Consumers {
            shared: CommonState::new(stream, account, seed),
            groups: Groups::default(),
            entries: Slab::new(),
            by_name: HashMap::new(),
            by_subject: HashMap::new(),
            receivers: Vec::new(),
            ready: VecDeque::new(),
            waiting_for_disk: Vec::new(),
            durable: 0,
            timers: Timers::default(),
            save_at: None,
            calls: 0,
        };
        consumers.set_retention(retention);
        consumers
    }

    /// Sets the retention policy of the stream.
    pub fn set_retention(&mut self, retention: Retention) {
        self.shared.reports_unneeded = retention != Retention::Limits;
    }

    /// Returns the number of consumers.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no consumer.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the consumer with this name.
    pub fn find(&self, name: &str) -> Option<ConsumerId> {
        self.by_name.get(name).copied()
    }

    /// Returns a consumer.
    pub fn get(&self, id: ConsumerId) -> Option<&Consumer> {
        self.entries.get(id.0).map(|entry| &entry.consumer)
    }

    /// Iterates over all consumers.
    pub fn iter(&self) -> impl Iterator<Item = (ConsumerId, &Consumer)> {
        self.entries
            .iter()
            .map(|(at, entry)| (ConsumerId(at), &entry.consumer))
    }

    /// Creates a consumer, which begins where its deliver policy determines. The caller has checked and
    /// completed the configuration, whose name must not be in use. `created` is in nanoseconds since 1970
    /// UTC.
    ///
    /// # Errors
    /// The store cannot be read to determine where to begin. No consumer is created then.
    pub fn create(
        &mut self,
        config: ConsumerConfig,
        created: i64,
        context: &mut Context<'_>,
    ) -> Result<ConsumerId, StoreError> {
        let id = self.insert(config, created, context.now);
        let started = self.with(id, context, |consumer, call| {
            consumer.start(call.store, call.context.groups)
        });
        match started {
            Some(Err(error)) => {
                self.remove(id);
                Err(error)
            }
            _ => {
                self.shared.unsaved.push(id);
                self.begin(id, context);
                Ok(id)
            }
        }
    }

    /// Recovers a consumer from its saved state.
    ///
    /// # Errors
    /// The state is invalid, or the store cannot be read. No consumer is created then.
    /// The caller can use [`create`](Self::create) instead, which begins where the deliver policy determines.
    pub fn restore(
        &mut self,
        config: ConsumerConfig,
        created: i64,
        state: &[u8],
        context: &mut Context<'_>,
    ) -> Result<ConsumerId, RestoreError> {
        let state = State::decode(state)?;
        let id = self.insert(config, created, context.now);
        let now = context.now;
        let counted = self.with(id, context, |consumer, call| {
            consumer.restore(state, call.store, call.context.at, now.unix_nanos);
            consumer.count(call.store, call.context.groups.get(consumer.group))
        });
        if let Some(Err(error)) = counted {
            self.remove(id);
            return Err(error.into());
        }
        if self.get(id).is_some_and(|consumer| consumer.is_unsaved) {
            self.shared.unsaved.push(id);
        }
        self.begin(id, context);
        Ok(id)
    }

    /// Returns whether the state of some consumer differs from the saved one.
    pub fn has_unsaved(&self) -> bool {
        !self.shared.unsaved.is_empty()
    }

    fn insert(&mut self, config: ConsumerConfig, created: i64, now: Now) -> ConsumerId {
        let entry = self.entries.vacant_entry();
        let id = ConsumerId(entry.key());
        self.by_name.insert(config.name.as_str().into(), id);
        enter_subject(&mut self.by_subject, &mut self.receivers, &config, id);
        let stream = &self.shared.stream;
        let consumer = Consumer::new(id, config, created, &mut self.groups, stream, now);
        entry.insert(ConsumerEntry {
            consumer,
            is_ready: false,
            is_waiting: false,
        });
        id
    }

    fn begin(&mut self, id: ConsumerId, context: &mut Context<'_>) {
        self.with(id, context, |consumer, call| {
            if let Some(push) = &consumer.push {
                let is_active = push.has_receiver(call.context.port);
                consumer.set_active(is_active, &mut call.context);
            }
        });
        self.make_ready(id);
    }

    /// Applies a new configuration. The caller has checked that the consumer can change to it.
    ///
    /// # Errors
    /// The store cannot be read to count undelivered records.
    pub fn update(
        &mut self,
        id: ConsumerId,
        config: ConsumerConfig,
        context: &mut Context<'_>,
    ) -> Result<(), StoreError> {
        let Some(entry) = self.entries.get_mut(id.0) else {
            return Ok(());
        };
        let was = &entry.consumer.config;
        leave_subject(&mut self.by_subject, &mut self.receivers, was, id);
        enter_subject(&mut self.by_subject, &mut self.receivers, &config, id);
        // The consumer has left its old group, which will not wake it.
        entry.is_waiting = false;
        let updated = entry
            .consumer
            .update(config, &mut self.groups, context.store);
        self.begin(id, context);
        updated
    }

    /// Deletes a consumer. Clients with waiting requests are notified, but not subscribers of a push
    /// consumer.
    pub fn delete(&mut self, id: ConsumerId, context: &mut Context<'_>) -> Option<Consumer> {
        self.with(id, context, |consumer, call| {
            consumer.end_requests(|_| Status::ConsumerDeleted, &mut call.context);
        });
        self.remove(id)
    }

    /// Notifies clients with waiting requests that the server stops.
    pub fn notify_shutdown(&mut self, context: &mut Context<'_>) {
        self.end_requests(Status::ServerShutdown, context);
    }

    /// Notifies clients with waiting requests that another server delivers the records now.
    pub fn notify_leadership_change(&mut self, context: &mut Context<'_>) {
        self.end_requests(|_| Status::LeadershipChange, context);
    }

    /// Ends all waiting requests with a status.
    fn end_requests(&mut self, last: fn(Remaining) -> Status<'static>, context: &mut Context<'_>) {
        let ids: Vec<ConsumerId> = self.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.with(id, context, |consumer, call| {
                consumer.end_requests(last, &mut call.context);
            });
        }
    }

    fn remove(&mut self, id: ConsumerId) -> Option<Consumer> {
        let entry = self.entries.try_remove(id.0)?;
        let consumer = entry.consumer;
        self.by_name.remove(consumer.name());
        let was = &consumer.config;
        leave_subject(&mut self.by_subject, &mut self.receivers, was, id);
        self.groups.leave(consumer.group, id);
        self.timers.set(id, None);
        // The id may be reused, so all lists drop it.
        self.ready.retain(|other| *other != id);
        self.shared.unsaved.retain(|other| *other != id);
        self.shared.unused.retain(|other| *other != id);
        Some(consumer)
    }

    /// Pauses a consumer until a time in nanoseconds since 1970 UTC; `None` or a past time resumes it.
    pub fn pause(&mut self, id: ConsumerId, until: Option<i64>, context: &mut Context<'_>) {
        self.and_ready(id, context, |consumer, call| {
            consumer.set_paused(until, &mut call.context);
        });
    }

    /// Unpins the pinned client.
    pub fn unpin(&mut self, id: ConsumerId, context: &mut Context<'_>) {
        self.and_ready(id, context, |consumer, call| {
            consumer.unpin("admin", &mut call.context)
        });
    }

    /// Resets a consumer to `sequence`; 0 means the record after the last acknowledged one. Returns the
    /// resulting sequence.
    ///
    /// # Errors
    /// `10204` if the deliver policy does not allow the sequence, `10014` if there is no such consumer.
    pub fn reset(
        &mut self,
        id: ConsumerId,
        sequence: u64,
        context: &mut Context<'_>,
    ) -> Result<u64, ApiError> {
        self.and_ready(id, context, |consumer, call| consumer.reset(sequence, call))
            .unwrap_or(Err(ApiError::CONSUMER_NOT_FOUND))
    }

    /// Returns the description of a consumer.
    pub fn info(&mut self, id: ConsumerId, context: &mut Context<'_>) -> Option<ConsumerInfo> {
        self.with(id, context, Consumer::info)
    }

    /// Handles a stored record.
    pub fn handle_append(&mut self, sequence: u64, subject: &[u8]) {
        let Consumers {
            groups,
            entries,
            ready,
            ..
        } = self;
        groups.append(sequence, subject, &mut |id| {
            if let Some(entry) = entries.get_mut(id.0) {
                entry.is_waiting = false;
                if !entry.is_ready {
                    entry.is_ready = true;
                    ready.push_back(id);
                }
            }
        });
    }

    /// Wakes consumers that wait for durable records, if the log is durable up to a higher sequence than in
    /// the last call.
    pub fn handle_durable(&mut self, durable: u64) {
        if durable > std::mem::replace(&mut self.durable, durable) {
            self.handle_synced();
        }
    }

    /// Wakes consumers that wait for a sync.
    pub fn handle_synced(&mut self) {
        for id in std::mem::take(&mut self.waiting_for_disk) {
            self.make_ready(id);
        }
    }

    /// Handles the removal of a record, whatever its reason.
    pub fn handle_removed(&mut self, sequence: u64, subject: &[u8]) {
        self.groups.remove(sequence, subject);
    }

    /// Handles a purge. Call it instead of [`handle_removed`](Self::handle_removed) for each record.
    ///
    /// # Errors
    /// The store cannot be read. The reported number of undelivered records is wrong until the next count.
    pub fn handle_purged(&mut self, context: &mut Context<'_>) -> Result<(), StoreError> {
        self.groups.remove_many();
        let ids: Vec<ConsumerId> = self.iter().map(|(id, _)| id).collect();
        for id in ids {
            let counted = self.and_ready(id, context, |consumer, call| {
                consumer.handle_purged(call.store, &mut call.context)
            });
            counted.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Handles a pull request to `CONSUMER.MSG.NEXT.<stream>.<consumer>`.
    pub fn handle_pull(
        &mut self,
        id: ConsumerId,
        request: &Message<'_>,
        context: &mut Context<'_>,
    ) {
        self.and_ready(id, context, |consumer, call| {
            consumer.catch_up(call);
            if requires_newer_level(request.headers) {
                call.context
                    .send(request.reply, b"", Status::RequiredApiLevel);
            } else {
                consumer.handle_pull(request.payload, request.reply, &mut call.context);
            }
        });
    }

    /// Handles an acknowledgement to `$JS.ACK.<stream>.<consumer>.>`. Returns whether its consumer exists and
    /// expects acknowledgements. If the acknowledgement has a reply subject, it is
    /// [confirmed](Self::take_confirmations) later.
    pub fn handle_ack(&mut self, message: &Message<'_>, context: &mut Context<'_>) -> bool {
        let Some(tokens) = AckTokens::of(message.subject) else {
            return false;
        };
        let Some(id) = self.acknowledged(&tokens) else {
            return false;
        };
        let Some(subject) = tokens.parse() else {
            return true;
        };
        let ack = Ack::parse(message.payload);
        let is_accepted = self.and_ready(id, context, |consumer, call| {
            consumer.catch_up(call);
            if consumer.rules.durable_only && matches!(ack, Ack::Done | Ack::Terminate(_)) {
                consumer.restore_delivery(subject.stream_sequence, call);
            }
            let is_known = subject.stream_sequence <= consumer.delivered.stream_sequence;
            consumer.handle_ack(&subject, ack, message.reply, &mut call.context);
            is_known || !matches!(ack, Ack::Done | Ack::Terminate(_))
        });
        // The acknowledgement of a record that was never delivered is not confirmed. If it requests more
        // records, its reply subject receives these instead of a confirmation.
        let is_answered = is_accepted == Some(true) && !matches!(ack, Ack::Next(_));
        let confirmations = &mut self.shared.confirmations;
        if is_answered && !message.reply.is_empty() && confirmations.len() < CONFIRMATIONS_MAX {
            confirmations.push((id, message.reply.into()));
        }
        true
    }

    /// Handles the acknowledgements in `run` that follow one to the subject `first`, up to the first one that is
    /// for another consumer or needs more than the removal of its record. Returns that one.
    pub fn handle_acks<'a>(
        &mut self,
        first: &[u8],
        mut run: &mut dyn Iterator<Item = Message<'a>>,
        context: &mut Context<'_>,
    ) -> Option<Message<'a>> {
        let tokens = AckTokens::of(first);
        let Some(id) = tokens.and_then(|tokens| self.acknowledged(&tokens)) else {
            return run.next();
        };
        let rest = self.and_ready(id, context, |consumer, call| {
            consumer.catch_up(call);
            Iterator::find(&mut run, |message| !consumer.handle_next_ack(message, call))
        });
        rest.flatten()
    }

    /// Returns the consumer of an acknowledgement, if it expects acknowledgements.
    fn acknowledged(&self, tokens: &AckTokens<'_>) -> Option<ConsumerId> {
        let id = self.find(std::str::from_utf8(tokens.consumer()).ok()?)?;
        let policy = self.get(id)?.config().ack_policy;
        matches!(policy, AckPolicy::All | AckPolicy::Explicit).then_some(id)
    }

    /// Handles the answer to a flow control request, to `$JS.FC.<stream>.<consumer>.<id>`. Returns whether
    /// its consumer exists and uses flow control.
    pub fn handle_flow_control(&mut self, subject: &[u8], context: &mut Context<'_>) -> bool {
        let mut tokens = subject.split(|b| *b == b'.').skip(3);
        let name = tokens
            .next()
            .and_then(|name| std::str::from_utf8(name).ok());
        let id = name.and_then(|name| self.find(name));
        let config = id.and_then(|id| self.get(id)).map(Consumer::config);
        let has_flow_control = config.is_some_and(|config| config.flow_control);
        let Some(id) = id.filter(|_| has_flow_control && tokens.count() == 1) else {
            return false;
        };
        self.and_ready(id, context, |consumer, call| {
            consumer.handle_flow_control(subject, &mut call.context);
        });
        true
    }

    /// Handles a change of interest in a filter, which may match deliver subjects.
    pub fn handle_interest(&mut self, filter: &[u8], context: &mut Context<'_>) {
        let Ok(filter) = Filter::parse(filter) else {
            return;
        };
        let affected: Vec<ConsumerId> = if filter.is_literal() {
            self.by_subject
                .get(filter.as_bytes())
                .cloned()
                .unwrap_or_default()
        } else {
            let matching = self
                .by_subject
                .iter()
                .filter(|(subject, _)| filter.matches(subject));
            matching.flat_map(|(_, ids)| ids.iter().copied()).collect()
        };
        for id in affected {
            self.begin(id, context);
        }
    }

    /// Delivers records. When consumers have delivered the maximum number of bytes for one call, the other
    /// consumers continue in the next call, which [`next_timeout`](Self::next_timeout) requests immediately.
    pub fn settle(&mut self, context: &mut Context<'_>) {
        self.calls += 1;
        self.shared.delivered_bytes = 0;
        for _ in 0..self.ready.len() {
            // The remaining consumers are served first in the next call.
            if self.shared.delivered_bytes > DELIVERED_BYTES_MAX {
                break;
            }
            let Some(id) = self.ready.pop_front() else {
                break;
            };
            if let Some(entry) = self.entries.get_mut(id.0) {
                entry.is_ready = false;
            }
            match self.with(id, context, Consumer::serve) {
                Some(ServeResult::More) => self.make_ready(id),
                Some(ServeResult::WaitsForRecords) => self.wait(id),
                Some(ServeResult::WaitsForDisk) => self.waiting_for_disk.push(id),
                Some(ServeResult::Blocked) | None => {}
            }
            self.set_timer(id, context.now);
        }
        if !self.shared.unsaved.is_empty() && self.save_at.is_none() {
            self.save_at = Some(context.now.since_start.saturating_add(SAVE_DELAY_MAX));
        }
    }

    /// Runs due timers, except saving states. Redeliveries happen in [`settle`](Self::settle).
    pub fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.calls += 1;
        while let Some(id) = self.timers.pop(context.now.since_start) {
            self.and_ready(id, context, |consumer, call| {
                consumer.catch_up(call);
                consumer.handle_timeout(&mut call.context);
            });
        }
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout), [`settle`](Self::settle), or
    /// [`save`](Self::save) must be called next, counted from the server's start.
    pub fn next_timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        [self.timers.next(), self.save_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Calls `save` with each state that is due, in the format of [`restore`](Self::restore). A state is due
    /// 250 ms after its change; with `all`, all changed states are passed.
    pub fn save(&mut self, now: Now, all: bool, save: &mut dyn FnMut(&Consumer, &[u8])) {
        if !all && self.save_at.is_none_or(|at| at > now.since_start) {
            return;
        }
        self.save_at = None;
        let mut state = Vec::new();
        for id in self.shared.unsaved.drain(..) {
            if let Some(entry) = self.entries.get_mut(id.0) {
                entry.save(&mut state, save);
            }
        }
    }

    /// Returns whether acknowledgements wait for confirmation.
    pub fn has_confirmations(&self) -> bool {
        !self.shared.confirmations.is_empty()
    }

    /// Returns the acknowledgements to confirm with an empty message, as pairs of a consumer and a reply
    /// subject.
    pub fn take_confirmations(&mut self) -> Vec<(ConsumerId, Box<[u8]>)> {
        std::mem::take(&mut self.shared.confirmations)
    }

    /// Passes the changed states of the consumers of these acknowledgements to `save`.
    pub fn save_confirmed(
        &mut self,
        confirmed: &[(ConsumerId, Box<[u8]>)],
        save: &mut dyn FnMut(&Consumer, &[u8]),
    ) {
        let mut state = Vec::new();
        for (id, _) in confirmed {
            if let Some(entry) = self.entries.get_mut(id.0) {
                entry.save(&mut state, save);
            }
        }
    }

    /// Moves to `unneeded` the sequences of records that a consumer has ceased to need. There are no such
    /// sequences if the retention policy is `limits`. A work queue removes these records. A stream with
    /// interest retention removes those that no other consumer [needs](Self::needs).
    pub fn take_unneeded(&mut self, unneeded: &mut Vec<u64>) {
        unneeded.append(&mut self.shared.unneeded);
    }

    /// Moves the consumers that were unused for too long to `unused`. The caller deletes them.
    pub fn take_unused(&mut self, unused: &mut Vec<ConsumerId>) {
        unused.append(&mut self.shared.unused);
    }

    /// Calls `each` with every deliver subject that was added (`true`) or removed (`false`) since the last
    /// call of this function.
    pub fn take_receivers(&mut self, each: &mut dyn FnMut(Box<[u8]>, bool)) {
        for (subject, is_there) in self.receivers.drain(..) {
            each(subject, is_there);
        }
    }

    /// Returns whether a consumer's filter matches a subject.
    pub fn wants_subject(&mut self, subject: &[u8]) -> bool {
        self.groups.wants_subject(subject)
    }

    /// Returns whether some consumer must still deliver this record, or waits for its acknowledgement.
    pub fn needs(&mut self, sequence: u64, subject: &[u8]) -> bool {
        self.any(subject, &mut |consumer| consumer.needs(sequence))
    }

    /// Returns whether some consumer has acknowledged a record. Consumers with a maximum number of deliveries
    /// do not count, because they forget a record that reaches this maximum without an acknowledgement.
    pub fn has_acknowledged(&mut self, sequence: u64, subject: &[u8]) -> bool {
        let has =
            |consumer: &Consumer| consumer.config.max_deliver <= 0 && !consumer.needs(sequence);
        self.any(subject, &mut |consumer| has(consumer))
    }

    /// Returns the highest stream sequence that a consumer has examined.
    pub fn last_examined(&self) -> u64 {
        let all = self
            .entries
            .iter()
            .map(|(_, entry)| entry.consumer.last_examined());
        all.max().unwrap_or(0)
    }

    fn any(&mut self, subject: &[u8], is_so: &mut dyn FnMut(&Consumer) -> bool) -> bool {
        let entries = &self.entries;
        self.groups.any(subject, &mut |id| {
            entries
                .get(id.0)
                .is_some_and(|entry| is_so(&entry.consumer))
        })
    }

    /// Returns the number of consumers to serve in the next call of `settle`.
    #[cfg(test)]
    pub(super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    fn with<R>(
        &mut self,
        id: ConsumerId,
        context: &mut Context<'_>,
        run: impl FnOnce(&mut Consumer, &mut CallWithStore<'_>) -> R,
    ) -> Option<R> {
        let entry = self.entries.get_mut(id.0)?;
        let mut call = CallWithStore {
            store: context.store,
            context: CallContext {
                now: context.now,
                at: nanos(context.now),
                number: self.calls,
                port: context.port,
                groups: &self.groups,
                shared: &mut self.shared,
            },
        };
        Some(run(&mut entry.consumer, &mut call))
    }

    fn and_ready<R>(
        &mut self,
        id: ConsumerId,
        context: &mut Context<'_>,
        run: impl FnOnce(&mut Consumer, &mut CallWithStore<'_>) -> R,
    ) -> Option<R> {
        let result = self.with(id, context, run)?;
        self.make_ready(id);
        Some(result)
    }

    fn make_ready(&mut self, id: ConsumerId) {
        if let Some(entry) = self.entries.get_mut(id.0).filter(|entry| !entry.is_ready) {
            entry.is_ready = true;
            self.ready.push_back(id);
        }
    }

    fn wait(&mut self, id: ConsumerId) {
        if let Some(entry) = self.entries.get_mut(id.0).filter(|entry| !entry.is_waiting) {
            entry.is_waiting = true;
            self.groups.wait(entry.consumer.group, id);
        }
    }

    /// Sets the timer of a consumer, unless an earlier time is set. The timer is therefore not moved at every
    /// delivery, but only when it is due.
    fn set_timer(&mut self, id: ConsumerId, now: Now) {
        let entry = self.entries.get_mut(id.0);
        let due = entry.and_then(|entry| entry.consumer.next_deadline(nanos(now), now.unix_nanos));
        if let Some(due) = due {
            self.timers.set_earlier(id, Duration::from_nanos(due));
        }
    }
}

type BySubject = HashMap<Box<[u8]>, Vec<ConsumerId>>;
type Receivers = Vec<(Box<[u8]>, bool)>;

fn enter_subject(
    by_subject: &mut BySubject,
    receivers: &mut Receivers,
    config: &ConsumerConfig,
    id: ConsumerId,
) {
    if config.is_push() {
        let subject: Box<[u8]> = config.deliver_subject.as_bytes().into();
        receivers.push((subject.clone(), true));
        by_subject.entry(subject).or_default().push(id);
    }
}

fn leave_subject(
    by_subject: &mut BySubject,
    receivers: &mut Receivers,
    config: &ConsumerConfig,
    id: ConsumerId,
) {
    let subject = config.deliver_subject.as_bytes();
    if config.is_push() {
        receivers.push((subject.into(), false));
    }
    if let Some(ids) = by_subject.get_mut(subject) {
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            by_subject.remove(subject);
        }
    }
}
