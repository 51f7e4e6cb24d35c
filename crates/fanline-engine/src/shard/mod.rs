//! One shard: its sessions, their subscriptions, and what is to be written to whom.

#[cfg(test)]
mod account_tests;
mod backlog;
mod connect;
mod insider;
mod kind;
#[cfg(test)]
mod latency_tests;
mod leafs;
mod mqtt;
mod permit;
#[cfg(test)]
mod permit_tests;
#[cfg(test)]
mod quota_tests;
mod reload;
mod service;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod timers;
mod tracing;
mod verbs;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use backlog::Backlog;
pub use service::JetStreamService;
pub use session::{ConnectionStatus, MqttStatus, SubscriptionStatus};
pub use status::{Ended, ShardStatus};

pub use crate::exchange::batch::{Batch, Place};
pub use crate::exchange::session::SessionId;
pub use crate::exchange::totals::LeafTraffic;
pub use crate::exchange::{SHARDS_MAX, ShardConfig};

use crate::accounts;
use crate::auth::{Access, AccountId};
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::ServerInfo;
use crate::codec::nats::parse::{Parsed, Verb, parse, parse_usual_publish};
use crate::exchange;
use crate::exchange::batch::Said;
use crate::exchange::message::Context;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::router::RouteMemo;
use crate::exchange::run::Intake;
use crate::outbox::{Chunk, Outbox};
use crate::random::Seed;
use kind::Kind;
use mqtt::{Note, Outbound};

/// So many subscriptions of a client that ends are forgotten in one go: a few milliseconds' work.
const FORGOTTEN_AT_ONCE: usize = 4096;

type Broker = accounts::Broker<Kind>;
type Exchange = exchange::Exchange<Kind>;
type FanOut<'a> = exchange::deliver::FanOut<'a, Kind>;
type Session = exchange::session::Session<Kind>;

/// One shard: its sessions, their subscriptions, and what is to be written to whom.
///
/// # In which order to call
///
/// 1. [`open`](Shard::open) for a new connection, [`receive`](Shard::receive) for bytes from it,
///    [`apply`](Shard::apply) for what other shards said, [`handle_timeout`](Shard::handle_timeout)
///    when [`next_timeout`](Shard::next_timeout) has come.
/// 2. After each of these: hand on each batch of [`outgoing`](Shard::outgoing) before anything is
///    written, so that what a client is told is true on every shard; then write the
///    [`outbox`](Shard::outbox) of each session that [`next_dirty`](Shard::next_dirty) names and
///    report with [`written`](Shard::written); then close the connection of each session that
///    [`next_ended`](Shard::next_ended) names, [`forget_some`](Shard::forget_some) of what it wanted until
///    nothing is left, and [`remove`](Shard::remove) it.
pub struct Shard {
    broker: Broker,
    /// What MQTT clients publish.
    mqtt: Outbound,
    /// When room was given back last that a great many subscriptions have needed.
    trimmed_at: Duration,
}

/// What became of some input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// How many bytes are done with. The rest has to be handed in again, with more behind it.
    pub consumed: usize,
    /// How long the frame is that the rest begins, when that is known, else 0.
    pub frame_bytes: usize,
    /// The input was left because much is to be written: write, then hand the rest in again.
    pub must_flush: bool,
    /// The input was left because it is to be decided whether its client may connect:
    /// [`Shard::take_check`] first, then hand the rest in again.
    pub awaits_check: bool,
    /// How many bytes were queued for connections.
    pub produced_bytes: usize,
    /// How many of them tell other servers what a client wants.
    pub told_bytes: usize,
    /// A subscriber of what was published has much waiting: hold the publisher back a little.
    pub congested: Option<SessionId>,
    /// It is known anew how far the other side of a link is: see [`Shard::leaf_level`].
    pub was_measured: bool,
}

/// How much of the input a verb took.
enum Taken {
    Bytes(usize),
    /// It is not whole; see [`Receipt::frame_bytes`].
    Partial {
        frame_bytes: usize,
    },
    /// The rest has to wait for [`Shard::decided`].
    AwaitsCheck(usize),
}

impl Shard {
    /// A shard with no sessions. Reply subjects and client identifiers are derived from `seed`.
    ///
    /// # Panics
    /// When there are more than [`SHARDS_MAX`] shards, or `index` is not one of them.
    pub fn new(
        index: u16,
        config: Arc<ShardConfig>,
        info: ServerInfo,
        seed: impl Into<Seed>,
    ) -> Self {
        Shard {
            broker: Broker::new(Exchange::new(index, config, info, seed.into())),
            mqtt: Outbound::default(),
            trimmed_at: Duration::ZERO,
        }
    }

    /// Takes bytes from a connection: `chunk[range]`, beginning with what was not consumed before.
    pub fn receive(
        &mut self,
        id: SessionId,
        chunk: &Chunk,
        range: Range<usize>,
        now: Duration,
    ) -> Receipt {
        match self.broker.exchange.sessions[id.index()].kind {
            Kind { mqtt: Some(_), .. } => self.receive_mqtt(id, chunk, range, now),
            Kind { leaf: Some(_), .. } => self.receive_leaf(id, chunk, range, now),
            _ => self.receive_client(id, chunk, range, now),
        }
    }

    /// Takes bytes from a plain client; see [`receive`](Shard::receive).
    #[inline]
    fn receive_client(
        &mut self,
        id: SessionId,
        chunk: &Chunk,
        range: Range<usize>,
        now: Duration,
    ) -> Receipt {
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        self.broker.exchange.outputs.begin_batch();
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.sessions[id.index()].active_at = now;
        let mut intake = self.begin_intake(id, chunk);
        if self.broker.exchange.sessions[id.index()].ending.is_some() {
            receipt.consumed = input.len();
        }
        while receipt.consumed < input.len() {
            let rest = &input[receipt.consumed..];
            let from = range.start + receipt.consumed;
            if intake.is_admitted
                && let Some((publish, taken)) = parse_usual_publish(rest, intake.limits)
            {
                self.publish(&mut intake, &publish, from, Context::default());
                receipt.consumed += taken;
            } else {
                self.broker.exchange.end_run(&intake);
                match self.receive_other(&mut intake, rest, from, now) {
                    Taken::Bytes(taken) => receipt.consumed += taken,
                    Taken::Partial { frame_bytes } => {
                        receipt.frame_bytes = frame_bytes;
                        break;
                    }
                    Taken::AwaitsCheck(taken) => {
                        receipt.consumed += taken;
                        receipt.awaits_check = true;
                        break;
                    }
                }
            }
            if !self.broker.exchange.outputs.ended.is_empty()
                && self.broker.exchange.sessions[id.index()].ending.is_some()
            {
                receipt.consumed = input.len();
                break;
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.exchange.end_run(&intake);
        self.end_intake(&intake);
        self.end_overrun();
        self.broker.exchange.tell_leafs();
        receipt.produced_bytes = self.broker.exchange.outputs.produced_bytes;
        receipt.told_bytes = self.broker.exchange.outputs.told_bytes;
        let session = &mut self.broker.exchange.sessions[id.index()];
        if let Some((congested, _)) = self.broker.exchange.outputs.congested {
            session.stalls += 1;
            receipt.congested = Some(congested);
        }
        receipt
    }

    /// Takes one verb of any form.
    #[inline(never)]
    fn receive_other(
        &mut self,
        intake: &mut Intake<'_>,
        input: &[u8],
        from: usize,
        now: Duration,
    ) -> Taken {
        let id = intake.id;
        if !intake.is_admitted && !b"cC".contains(&input[0]) {
            if !self.admit_without_connect(id) {
                self.refuse_credentials(id);
                return Taken::Bytes(input.len());
            }
            *intake = self.begin_intake(id, intake.chunk);
        }
        match parse(input, intake.limits) {
            Parsed::Verb(Verb::Publish(publish), taken) => {
                self.publish(intake, &publish, from, Context::default());
                Taken::Bytes(taken)
            }
            Parsed::Verb(verb, taken) => {
                self.end_intake(intake);
                self.handle(id, verb, &input[..taken], now);
                *intake = self.begin_intake(id, intake.chunk);
                match self.broker.exchange.sessions[id.index()].check {
                    Some(_) => Taken::AwaitsCheck(taken),
                    None => Taken::Bytes(taken),
                }
            }
            Parsed::Partial { frame_bytes } => Taken::Partial { frame_bytes },
            Parsed::Wrong(fault) => {
                self.refuse(id, fault.error, fault.reason);
                Taken::Bytes(input.len())
            }
        }
    }

    /// Takes what other shards said, from `place` on. When the receipt says
    /// [`must_flush`](Receipt::must_flush), there is more: write, then call again.
    pub fn apply(&mut self, batch: &Batch, place: &mut Place) -> Receipt {
        self.broker.exchange.outputs.begin_batch();
        let mut receipt = Receipt::default();
        let mut memo = RouteMemo::default();
        while let Some(said) = batch.read(place) {
            match said {
                Said::Message(crossing) => {
                    self.broker.dispatch_crossing(crossing, None, &mut memo);
                }
                Said::Had { from, account, had } => {
                    self.broker.exchange.quotas.note(from, account, had)
                }
                Said::Note(note) => {
                    if let Some(note) = (note as &dyn Any).downcast_ref::<Note>() {
                        self.take_note(note);
                    }
                }
                Said::Interest {
                    from,
                    account,
                    filter,
                    queue,
                    weight,
                } => {
                    let router = self.broker.exchange.routers.of(account);
                    router.set_remote(from, filter, queue, weight);
                    if weight == 0 {
                        self.broker.exchange.note_unsubscribed();
                    }
                }
            }
            self.end_overrun();
            self.take_answers();
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.exchange.tell_leafs();
        receipt.produced_bytes = self.broker.exchange.outputs.produced_bytes;
        receipt.congested = self.broker.exchange.outputs.congested.map(|(id, _)| id);
        receipt
    }

    /// The batch for another shard, to be taken and handed to its [`apply`](Shard::apply).
    pub fn outgoing(&mut self, shard: usize) -> &mut Batch {
        &mut self.broker.exchange.outgoing[shard]
    }

    /// The next session with something to write.
    pub fn next_dirty(&mut self) -> Option<SessionId> {
        loop {
            let id = self.broker.exchange.outputs.dirty.pop()?;
            if let Some(session) = self.broker.exchange.sessions.get_mut(id.index())
                && std::mem::take(&mut session.is_dirty)
            {
                return Some(id);
            }
        }
    }

    /// Whether [`next_dirty`](Shard::next_dirty) or [`next_ended`](Shard::next_ended) has anything.
    pub fn has_work(&self) -> bool {
        !self.broker.exchange.outputs.dirty.is_empty()
            || !self.broker.exchange.outputs.ended.is_empty()
    }

    /// What waits for a connection.
    pub fn outbox(&mut self, id: SessionId) -> &mut Outbox {
        &mut self.broker.exchange.sessions[id.index()].out
    }

    /// How many bytes wait for a connection, 0 when it is gone.
    pub fn pending_bytes(&self, id: SessionId) -> usize {
        self.broker
            .exchange
            .sessions
            .get(id.index())
            .map_or(0, |s| s.out.pending_bytes())
    }

    /// Tells that as much of an outbox was written as the peer would take.
    pub fn written(&mut self, id: SessionId, now: Duration) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.out.is_empty() {
            self.broker.exchange.outputs.reclaim(session);
            if session.kind.mqtt.is_some() {
                self.recall_next(id);
            }
            return;
        }
        session.out.settle();
        let limits = &self.broker.exchange.config.limits;
        let is_leaf = session.kind.leaf.is_some();
        let is_patient = is_leaf && !limits.leafs_close_at_deadline;
        let deadline = session.out.block(now, is_patient) + limits.write_deadline_of(is_leaf);
        self.broker.exchange.arm_before(id, deadline);
    }

    /// The next session whose connection is to be closed: write what
    /// [`CloseReason::flushes`] says, close, then [`remove`](Shard::remove).
    pub fn next_ended(&mut self) -> Option<(SessionId, CloseReason)> {
        self.end_overrun();
        let id = self.broker.exchange.outputs.ended.pop()?;
        let reason = self.broker.exchange.sessions[id.index()]
            .ending
            .unwrap_or(CloseReason::ClientClosed);
        Some((id, reason))
    }

    /// Tells the time, before [`apply`](Shard::apply): from then on an answer to what it brings is
    /// allowed for so long.
    pub fn note_time(&mut self, now: Duration) {
        self.broker.exchange.outputs.now = now;
    }

    /// How often somebody here has subscribed or unsubscribed. As long as it stays the same on all
    /// shards, so does what [`is_wanted`](Shard::is_wanted) says.
    pub fn interest_changes(&self) -> u64 {
        self.broker.exchange.interest_changes
    }

    /// Whether anybody gets what is published to a topic of an account, on this shard or another one.
    pub fn is_wanted(&mut self, account: AccountId, topic: &[u8]) -> bool {
        let router = self.broker.exchange.routers.of(account);
        let route = router.route(topic, &mut RouteMemo::default());
        !route.plain.is_empty()
            || !route.plain_remote.is_empty()
            || route.has_groups()
            || !route.exits().is_empty()
    }

    /// Who may connect, and what they may do.
    pub fn access(&self) -> &Arc<Access> {
        &self.broker.exchange.access
    }

    /// Whether there are lines for [`take_notices`](Shard::take_notices).
    pub fn has_notices(&self) -> bool {
        !self.broker.exchange.outputs.notices.is_empty()
    }

    /// Lines for the log since the last call, each about a session: who was refused, and what.
    pub fn take_notices(&mut self) -> Vec<(SessionId, String)> {
        std::mem::take(&mut self.broker.exchange.outputs.notices)
    }

    /// Whether there are traces to be taken.
    #[inline]
    pub fn has_traces(&self) -> bool {
        !self.broker.exchange.outputs.trace_lines.is_empty()
    }

    /// Lines for a protocol trace since the last call, each with its session.
    ///
    /// What the server asks of itself is nobody's protocol.
    pub fn take_traces(&mut self) -> Vec<(SessionId, String)> {
        let mut lines = std::mem::take(&mut self.broker.exchange.outputs.trace_lines);
        lines.retain(|(id, _)| !self.is_insider(*id));
        lines
    }

    /// Decides that a connection ends. From now on nothing is delivered to it. Its subscriptions are gone at once,
    /// unless there are thousands, none of them in a group, whose messages another member should have: those go by
    /// and by, with [`forget_some`](Shard::forget_some).
    pub fn end(&mut self, id: SessionId, reason: CloseReason) {
        if self.broker.exchange.begin_end(id, reason) {
            self.finish_end(id, reason);
        }
    }

    /// Ends what the exchange has found to have too much waiting.
    #[inline]
    fn end_overrun(&mut self) {
        while let Some(id) = self.broker.exchange.outputs.overrun.pop() {
            self.finish_end(id, CloseReason::SlowConsumerPendingBytes);
        }
    }

    /// Gives back what belongs to a session that is ending.
    #[inline(never)]
    fn finish_end(&mut self, id: SessionId, reason: CloseReason) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let subscriptions = session.subscriptions;
        if reason.is_slow_consumer() {
            let out = std::mem::take(&mut session.out);
            let backlog = self.backlog_of(id, &out);
            let session = &mut self.broker.exchange.sessions[id.index()];
            (session.out, session.kind.backlog) = (out, Some(Box::new(backlog)));
        }
        if !reason.flushes() {
            self.broker.exchange.sessions[id.index()].out.discard();
        }
        self.broker.exchange.uncount_connection(id);
        if !self.broker.exchange.sessions[id.index()].may_leave_slowly() {
            self.drop_subscriptions(id);
        }
        self.end_mqtt(id, reason);
        self.forget_leaf(id);
        self.broker.exchange.tell_leafs();
        // What is told of a connection that has ended is what it had.
        self.broker.exchange.sessions[id.index()].subscriptions = subscriptions;
    }

    /// Forgets some of what a client wanted whose connection ends. Returns whether there is more.
    pub fn forget_some(&mut self, id: SessionId) -> bool {
        let Some(session) = self.broker.exchange.sessions.get(id.index()) else {
            return false;
        };
        let had = session.subscriptions;
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(sub) = self.broker.exchange.subs.first_of_session(id.0) else {
                break;
            };
            self.broker.exchange.drop_subscription(sub);
        }
        self.broker.exchange.tell_leafs();
        self.broker.exchange.sessions[id.index()].subscriptions = had;
        self.broker.exchange.subs.first_of_session(id.0).is_some()
    }

    fn drop_subscriptions(&mut self, id: SessionId) {
        while let Some(sub) = self.broker.exchange.subs.first_of_session(id.0) {
            self.broker.exchange.drop_subscription(sub);
        }
    }

    /// Tells a client what it did wrong, and ends the connection.
    fn refuse(&mut self, id: SessionId, error: Option<ClientError>, reason: CloseReason) {
        if self.refuse_if_mqtt(id, reason) {
            return;
        }
        if let Some(error) = error {
            self.send_error(id, &error);
        }
        self.end(id, reason);
    }

    fn send_error(&mut self, id: SessionId, error: &ClientError) {
        // MQTT has words of its own, and none for what leaves the connection open.
        if self.broker.exchange.sessions[id.index()]
            .kind
            .mqtt
            .is_some()
        {
            return;
        }
        let line = format!("-ERR '{error}'\r\n");
        self.broker.exchange.send(id, line.as_bytes());
    }
}
