//! What is done to a connection of any kind, known by its id: bytes are queued for it, its timer is armed, its
//! subscriptions come and go, and it ends.

use std::time::Duration;

use super::client::parse_limits;
use super::timers::{auth_timeout, ping_interval};
use super::{Broker, Kind, Session};
use crate::auth::{AccountId, Grant, Peer};
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::message::Origin;
use crate::exchange::restriction::Restriction;
use crate::exchange::router::RouteMemo;
use crate::exchange::run::Intake;
use crate::exchange::session::{Pings, SessionId};
use crate::limits::{CONNECT_BYTES_MAX, Limits, MqttLimits};
use crate::outbox::{Chunk, Outbox};
use crate::subject::Filter;

/// When a new client is pinged for the first time, to learn its round trip; up to a fifth more.
const FIRST_PING: Duration = Duration::from_secs(2);

/// So many subscriptions of a client that ends are forgotten in one go: a few milliseconds' work.
pub(crate) const FORGOTTEN_AT_ONCE: usize = 4096;

impl Broker {
    /// A session that nothing has happened to yet.
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
        let ping_at = now + FIRST_PING.min(ping_interval(limits, &peer)) + jitter;
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
            // Before its CONNECT it may do no more than after it.
            restriction: Restriction::new(&Grant::default(), &peer),
            kind,
            cid,
            is_insider: false,
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

    /// Puts a session into an account. What it was subscribed to in another one is gone.
    pub(crate) fn bind(&mut self, id: SessionId, account: AccountId) {
        if self.exchange.sessions[id.index()].account == account {
            return;
        }
        self.drop_subscriptions(id);
        self.exchange.uncount_connection(id);
        self.exchange.routers.ensure(account);
        let session = &mut self.exchange.sessions[id.index()];
        let before = std::mem::replace(&mut session.account, account);
        // It says where the last topic was found in the other account.
        session.memo = RouteMemo::default();
        self.exchange.totals_of(before).opened -= 1;
        self.exchange.totals_of(account).opened += 1;
    }

    /// What the publishes of one client have in common until it says something else.
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

    /// Puts the counts where they belong.
    pub(crate) fn end_intake(&mut self, intake: &Intake<'_>) {
        let session = &mut self.exchange.sessions[intake.id.index()];
        session.memo = intake.memo;
        session.in_msgs += intake.msgs;
        session.in_bytes += intake.bytes;
    }

    pub(crate) fn send_error(&mut self, id: SessionId, error: &ClientError) {
        // MQTT has words of its own, and none for what leaves the connection open.
        if self.exchange.sessions[id.index()].kind.is_mqtt() {
            return;
        }
        let line = format!("-ERR '{error}'\r\n");
        self.exchange.send(id, line.as_bytes());
    }

    /// Tells a client what it did wrong, and ends the connection.
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

    /// Decides that a connection ends. From now on nothing is delivered to it. Its subscriptions are gone at once,
    /// unless there are thousands, none of them in a group, whose messages another member should have: those go by
    /// and by, with [`forget_some`](Self::forget_some).
    pub(crate) fn end(&mut self, id: SessionId, reason: CloseReason) {
        if self.exchange.begin_end(id, reason) {
            self.finish_end(id, reason);
        }
    }

    /// Ends what the exchange has found to have too much waiting.
    #[inline]
    pub(crate) fn end_overrun(&mut self) {
        while let Some(id) = self.exchange.outputs.overrun.pop() {
            self.finish_end(id, CloseReason::SlowConsumerPendingBytes);
        }
    }

    /// Gives back what belongs to a session that is ending.
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
        if !self.exchange.sessions[id.index()].may_leave_slowly() {
            self.drop_subscriptions(id);
        }
        match self.exchange.sessions[id.index()].kind {
            Kind::Client(_) => {}
            Kind::Mqtt(_) => self.mqtt_of(id).handle_end(reason),
            Kind::Leaf(_) => self.leaf(id).leave(),
        }
        self.exchange.tell_leafs();
        // What is told of a connection that has ended is what it had.
        self.exchange.sessions[id.index()].subscriptions = subscriptions;
    }

    /// Forgets some of what a client wanted whose connection ends. Returns whether there is more.
    pub(crate) fn forget_some(&mut self, id: SessionId) -> bool {
        let Some(session) = self.exchange.sessions.get(id.index()) else {
            return false;
        };
        let had = session.subscriptions;
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(sub) = self.exchange.subs.first_of_session(id.0) else {
                break;
            };
            self.exchange.drop_subscription(sub);
        }
        self.exchange.tell_leafs();
        self.exchange.sessions[id.index()].subscriptions = had;
        self.exchange.subs.first_of_session(id.0).is_some()
    }

    pub(crate) fn drop_subscriptions(&mut self, id: SessionId) {
        while let Some(sub) = self.exchange.subs.first_of_session(id.0) {
            self.exchange.drop_subscription(sub);
        }
    }

    /// Counts a session in its account. Refuses it when the account has all the connections that it may have.
    pub(crate) fn count_connection(&mut self, id: SessionId) {
        if !self.exchange.count_connection(id) {
            let error = Some(ClientError::AccountConnectionsExceeded);
            self.refuse(id, error, CloseReason::MaximumAccountConnectionsExceeded);
        }
    }

    /// Whether a client may have one more subscription.
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
        // What the server itself is asked for does not depend on what clients may have.
        !is_full || session.is_insider
    }

    /// Makes a subscription, unless the session has one with this sid. False when the filter is none.
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

/// What an MQTT client is granted.
pub(crate) fn mqtt_settings(limits: &Limits) -> MqttLimits {
    MqttLimits {
        packet_bytes_max: limits.payload_bytes_max.saturating_add(CONNECT_BYTES_MAX),
        ..limits.mqtt.clone()
    }
}
