//! Operations on a connection of any kind: opening, its account, its subscriptions, errors, and its end.

use std::time::Duration;

use super::client::parse_limits;
use super::timers::auth_timeout;
use super::{Broker, Kind, Receipt, Session};
use crate::auth::{AccountId, Grant, Peer};
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::message::{Origin, Via};
use crate::exchange::restriction::Restriction;
use crate::exchange::router::{RouteMemo, SubId};
use crate::exchange::run::Intake;
use crate::exchange::session::{Pings, SessionId};
use crate::limits::{CONNECT_BYTES_MAX, Limits, MqttLimits};
use crate::outbox::{Chunk, Outbox};
use crate::subject::Filter;

/// Time until a new client is pinged for the first time, to measure its round trip. Jitter adds up to a
/// fifth.
const FIRST_PING: Duration = Duration::from_secs(2);

/// Largest number of subscriptions of a closed connection that are removed in one step, which takes a few
/// milliseconds.
pub(crate) const REMOVED_AT_ONCE_MAX: usize = 4096;

/// The same for a connection to another server, whose subscriptions take longer.
const REMOVED_OF_LINKS: usize = 1024;

impl Broker {
    /// Inserts a new session.
    pub(crate) fn insert_session(
        &mut self,
        cid: u64,
        peer: Peer,
        kind: Kind,
        awaits_auth: bool,
        now: Duration,
    ) -> SessionId {
        let jitter = Duration::from_millis(u64::from(self.exchange.random.below(400)));
        let limits = &self.exchange.config.limits;
        let is_mqtt = kind.is_mqtt();
        let ping_at = now + FIRST_PING.min(limits.ping_interval_of(peer.kind)) + jitter;
        let deadline = if is_mqtt || awaits_auth {
            now + auth_timeout(limits, &peer)
        } else {
            ping_at
        };
        let session = Session {
            out: Outbox::default(),
            out_msgs: 0,
            out_bytes: 0,
            ending: None,
            is_dirty: false,
            takes_headers: false,
            // Restrictions of the connection apply before CONNECT too.
            restriction: Restriction::new(&Grant::default(), &peer),
            kind,
            cid,
            is_system_client: false,
            account: AccountId::GLOBAL,
            is_counted: false,
            memo: RouteMemo::default(),
            parse_limits: parse_limits(limits, false),
            in_msgs: 0,
            in_bytes: 0,
            subscriptions: 0,
            in_groups: 0,
            stalls: 0,
            awaits_auth,
            check: None,
            grant: Grant::default(),
            has_connected: false,
            options: ConnectOptions {
                verbose: !is_mqtt,
                pedantic: !is_mqtt,
                ..ConnectOptions::default()
            },
            peer,
            opened_at: now,
            active_at: now,
            pings: Pings {
                next_at: ping_at,
                sent_at: now,
                unanswered: 0,
            },
            expires_at: None,
            account_expires_at: None,
            rtt: None,
            backlog: None,
        };
        let id = SessionId::from_index(self.exchange.sessions.insert(session));
        self.exchange.timers.set(id, Some(deadline));
        id
    }

    /// Moves a session to an account. Its subscriptions in another account are dropped.
    pub(crate) fn bind(&mut self, id: SessionId, account: AccountId) {
        if self.exchange.sessions[id.index()].account == account {
            return;
        }
        self.drop_subscriptions(id);
        self.exchange.uncount_connection(id);
        self.exchange.routers.ensure(account);
        let session = &mut self.exchange.sessions[id.index()];
        let before = std::mem::replace(&mut session.account, account);
        // The cached route (`memo`) belongs to the other account.
        session.memo = RouteMemo::default();
        self.exchange.totals_of(before).opened -= 1;
        self.exchange.totals_of(account).opened += 1;
    }

    /// Begins the handling of input.
    #[inline]
    pub(crate) fn begin_input(&mut self, id: SessionId, now: Duration) {
        self.exchange.outputs.begin_batch();
        self.exchange.outputs.now = now;
        self.exchange.sessions[id.index()].active_at = now;
    }

    /// Ends the handling of input with messages, and completes the receipt.
    #[inline]
    pub(crate) fn end_input(&mut self, intake: &Intake<'_>, receipt: &mut Receipt) {
        self.exchange.end_run(intake);
        self.end_intake(intake);
        self.end_overrun();
        self.exchange.announce_to_links();
        self.note_outputs(intake.id, receipt);
    }

    /// Notes in the receipt what the input has queued.
    #[inline]
    pub(crate) fn note_outputs(&mut self, id: SessionId, receipt: &mut Receipt) {
        receipt.produced_bytes = self.exchange.outputs.produced_bytes;
        if let Some((congested, _)) = self.exchange.outputs.congested {
            self.exchange.sessions[id.index()].stalls += 1;
            receipt.congested = Some(congested);
        }
    }

    /// Begins an intake, which holds the values that the client's messages share until it sends another verb.
    pub(crate) fn begin_intake<'a>(&self, id: SessionId, chunk: &'a Chunk) -> Intake<'a> {
        let session = &self.exchange.sessions[id.index()];
        Intake {
            id,
            account: session.account,
            chunk,
            origin: Origin {
                session: Some(id.0),
                echo: session.options.echo,
                groups: None,
                via: Via::Own,
                cluster: b"",
            },
            limits: session.parse_limits,
            memo: session.memo,
            is_admitted: !session.awaits_auth,
            is_restricted: session.restriction.is_some(),
            rights: (session.restriction.as_ref()).and_then(|restriction| restriction.rights_id()),
            is_answered: session.options.verbose || session.options.pedantic,
            may_run: !session.options.verbose
                && !session.options.pedantic
                && !self.exchange.outputs.traces,
            is_mapped: self.accounts.is_mapped(session.account),
            msgs: 0,
            bytes: 0,
        }
    }

    /// Ends an intake: adds its counts to the session.
    pub(crate) fn end_intake(&mut self, intake: &Intake<'_>) {
        let session = &mut self.exchange.sessions[intake.id.index()];
        session.memo = intake.memo;
        session.in_msgs += intake.msgs;
        session.in_bytes += intake.bytes;
    }

    pub(crate) fn send_error(&mut self, id: SessionId, error: &ClientError) {
        // MQTT clients do not understand `-ERR`, and MQTT has no packet for an error that leaves the
        // connection open.
        if self.exchange.sessions[id.index()].kind.is_mqtt() {
            return;
        }
        let line = format!("-ERR '{error}'\r\n");
        self.exchange.send(id, line.as_bytes());
    }

    /// Sends an error to a client, and closes the connection.
    pub(crate) fn refuse(
        &mut self,
        id: SessionId,
        error: Option<ClientError>,
        reason: CloseReason,
    ) {
        if let Some(mut session) = self.mqtt(id) {
            return session.refuse(reason);
        }
        if let Some(error) = error {
            self.send_error(id, &error);
        }
        self.end(id, reason);
    }

    /// Ends a connection: it receives no more messages. Its subscriptions are removed at once, so that other
    /// members of its queue groups receive their messages. Exceptions are a client with thousands of
    /// subscriptions and no queue group, and another server with thousands of them, of which only those of
    /// queue groups are removed at once: [`remove_some_subscriptions`](Self::remove_some_subscriptions) removes
    /// the others in steps.
    pub(crate) fn end(&mut self, id: SessionId, reason: CloseReason) {
        if self.exchange.begin_end(id, reason) {
            self.finish_end(id, reason);
        }
    }

    /// Ends the connections that exceeded their pending limit during deliveries.
    #[inline]
    pub(crate) fn end_overrun(&mut self) {
        while let Some(id) = self.exchange.outputs.overrun.pop() {
            self.finish_end(id, CloseReason::SlowConsumerPendingBytes);
        }
    }

    /// Releases the resources of a session that is ending.
    #[inline(never)]
    fn finish_end(&mut self, id: SessionId, reason: CloseReason) {
        let session = &mut self.exchange.sessions[id.index()];
        let subscriptions = session.subscriptions;
        if reason.is_slow_consumer() {
            let out = std::mem::take(&mut session.out);
            let backlog = self.exchange.backlog_of(id, &out);
            let session = &mut self.exchange.sessions[id.index()];
            (session.out, session.backlog) = (out, Some(Box::new(backlog)));
        }
        if !reason.flushes() {
            self.exchange.sessions[id.index()].out.discard();
        }
        self.exchange.uncount_connection(id);
        match self.exchange.sessions[id.index()].may_end_in_steps() {
            true => self.drop_group_subscriptions(id),
            false => self.drop_subscriptions(id),
        }
        match self.exchange.sessions[id.index()].kind {
            Kind::Client(_) => {}
            Kind::Mqtt(_) => self.mqtt_of(id).handle_end(reason),
            Kind::Leaf(_) => self.leaf(id).leave(),
            Kind::Route(_) => self.route(id).leave(),
            Kind::Gateway(_) => self.gateway(id).leave(),
        }
        self.exchange.announce_to_links();
        // Monitoring shows how many subscriptions a closed connection had.
        self.exchange.sessions[id.index()].subscriptions = subscriptions;
    }

    /// Removes some subscriptions of a connection that is ending. Returns whether there are more.
    pub(crate) fn remove_some_subscriptions(&mut self, id: SessionId) -> bool {
        let Some(session) = self.exchange.sessions.get(id.index()) else {
            return false;
        };
        let (had, is_leaf, account) = (
            session.subscriptions,
            session.kind.is_leaf(),
            session.account,
        );
        let portion = match session.kind.is_link() {
            true => REMOVED_OF_LINKS,
            false => REMOVED_AT_ONCE_MAX,
        };
        for _ in 0..portion {
            let Some(sub) = self.exchange.subs.first_of_session(id.0) else {
                break;
            };
            self.exchange.drop_subscription(sub);
        }
        self.exchange.announce_to_links();
        self.exchange.sessions[id.index()].subscriptions = had;
        let is_more = self.exchange.subs.first_of_session(id.0).is_some();
        if is_leaf && !is_more {
            // The removed loop subject may have paused another connection.
            self.check_paused_connections(account);
        }
        is_more
    }

    /// Removes the subscriptions in queue groups, whose other members then receive the messages.
    fn drop_group_subscriptions(&mut self, id: SessionId) {
        if self.exchange.sessions[id.index()].in_groups == 0 {
            return;
        }
        let subs = &self.exchange.subs;
        let in_group = |sub: &SubId| !subs.get(*sub).queue().is_empty();
        let all: Vec<SubId> = subs.of_session(id.0).filter(in_group).collect();
        for sub in all {
            self.exchange.drop_subscription(sub);
        }
    }

    pub(crate) fn drop_subscriptions(&mut self, id: SessionId) {
        while let Some(sub) = self.exchange.subs.first_of_session(id.0) {
            self.exchange.drop_subscription(sub);
        }
    }

    /// Counts a session in its account. Refuses the session if the account has reached its connection limit.
    pub(crate) fn count_connection(&mut self, id: SessionId) {
        if !self.exchange.count_connection(id) {
            let error = Some(ClientError::AccountConnectionsExceeded);
            self.refuse(id, error, CloseReason::MaximumAccountConnectionsExceeded);
        }
    }

    /// Returns whether a client may add one more subscription.
    pub(crate) fn has_room_for_subscription(&self, id: SessionId) -> bool {
        let session = &self.exchange.sessions[id.index()];
        let max = self
            .exchange
            .config
            .limits
            .subscriptions_max
            .unwrap_or(usize::MAX);
        let own = session.grant.limits.subscriptions_max;
        let max = own.map_or(max, |own| max.min(usize::try_from(own).unwrap_or(max)));
        let is_full = session.subscriptions >= max
            || !self.exchange.quotas.allow_subscription(session.account);
        // Limits of clients do not apply to system clients.
        !is_full || session.is_system_client
    }

    /// Subscribes, unless the session has a subscription with this sid. Returns false if the filter is
    /// invalid.
    pub(crate) fn enter_subscription(
        &mut self,
        id: SessionId,
        filter: &[u8],
        queue: &[u8],
        sid: &[u8],
    ) -> bool {
        if self.exchange.subs.find(id.0, sid).is_some() {
            return true;
        }
        let Ok(parsed) = Filter::parse(filter) else {
            return false;
        };
        let is_filtered = self.is_filtered(id, filter, queue);
        (self.exchange).subscribe(id, parsed, queue, sid, is_filtered);
        true
    }
}

/// Returns the limits of an MQTT connection.
pub(crate) fn mqtt_settings(limits: &Limits) -> MqttLimits {
    MqttLimits {
        packet_bytes_max: limits.payload_bytes_max.saturating_add(CONNECT_BYTES_MAX),
        ..limits.mqtt.clone()
    }
}
