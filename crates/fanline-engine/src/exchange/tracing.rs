//! The trace of a message on its way through a shard; see [`crate::trace`].
//!
//! When a message enters another account, the account that owns the subject decides whether the trace
//! continues. Another shard that receives the message in that account does not trace it.

use slab::Slab;

use super::remote::LinkSet;
use super::router::{Routers, SubId, Subscription, Subscriptions};
use super::session::Session;
use super::text::text;
use crate::auth::{Access, AccountId};
use crate::codec::nats::error::ClientError;
use crate::trace::{CLIENT, Event, ROUTER, Trace};

/// The trace of a message that is being delivered.
pub(crate) struct Traced {
    pub(crate) trace: Trace,
    /// The account in which the message was published.
    pub(crate) account: AccountId,
    /// Number of accounts that the message has entered since the trace stopped; 0 while the trace continues.
    hidden: usize,
    /// Subscriptions whose filters are not resolved yet, each with the index of its event in the trace.
    unnamed: Vec<(usize, SubId)>,
}

/// How a traced message is sent to another server.
pub(super) enum Onward {
    AsItCame,
    /// With its hop in the headers; the other server continues the trace.
    Over(String),
    Not,
}

impl Traced {
    pub(crate) fn new(trace: Trace, account: AccountId) -> Self {
        Traced {
            trace,
            account,
            hidden: 0,
            unnamed: Vec::new(),
        }
    }

    fn push(&mut self, event: Event) {
        if self.hidden == 0 {
            self.trace.events.push(event);
        }
    }

    /// Returns whether the message itself is not delivered.
    pub(super) fn is_only(&self) -> bool {
        self.trace.request.is_only
    }

    /// Records an upcoming delivery.
    pub(super) fn record_delivery<K>(
        &mut self,
        id: SubId,
        sub: &Subscription,
        session: &Session<K>,
    ) {
        if self.hidden == 0 {
            self.unnamed.push((self.trace.events.len(), id));
        }
        let is_other_account = session.account != self.account;
        self.push(Event {
            r#type: "eg",
            kind: Some(CLIENT),
            cid: Some(session.cid),
            name: session.options.name.clone(),
            // The account's number, which is replaced by its name later.
            acc: match is_other_account {
                true => session.account.0.to_string(),
                false => String::new(),
            },
            queue: text(sub.queue()),
            ..Event::default()
        });
    }

    /// Records that the message crosses to another shard.
    pub(super) fn record_shard(&mut self, shard: u16) {
        let hop = self.trace.hop_to(shard);
        self.push(Event {
            r#type: "eg",
            kind: Some(ROUTER),
            cid: Some(0),
            name: format!("shard-{shard}"),
            hop: Some(hop),
            ..Event::default()
        });
    }

    /// Records that the message crosses a link in an account. `traced_as` is the link's name, if the other server
    /// continues traces.
    pub(super) fn record_link<K>(
        &mut self,
        session: &Session<K>,
        set: LinkSet,
        account: AccountId,
        traced_as: Option<&str>,
    ) -> Onward {
        let is_seen = self.account == account && self.hidden == 0;
        match traced_as.filter(|_| is_seen && session.takes_headers) {
            Some(name) => {
                let hop = self.trace.next_link_hop();
                self.push(Event {
                    r#type: "eg",
                    kind: Some(set.trace_kind()),
                    cid: Some(session.cid),
                    name: name.into(),
                    hop: Some(hop.clone()),
                    is_link: true,
                    ..Event::default()
                });
                Onward::Over(hop)
            }
            // The message requests only a trace, and must not be delivered. The other server does not
            // continue the trace, so it would deliver the message.
            None if self.is_only() => Onward::Not,
            None => Onward::AsItCame,
        }
    }

    /// Records that the publish was refused.
    pub(crate) fn record_refusal(&mut self, error: &ClientError) {
        if let Some(ingress) = self.trace.events.first_mut() {
            ingress.error = error.to_string();
        }
    }

    /// Records that the subject was mapped to another one.
    pub(crate) fn record_mapping(&mut self, to: &[u8]) {
        self.push(Event {
            r#type: "sm",
            to: text(to),
            ..Event::default()
        });
    }

    /// Records that the message enters another account. If `allows_trace`, the trace continues there.
    pub(crate) fn enter_account(&mut self, event: Event, allows_trace: bool) {
        self.push(event);
        self.hidden += usize::from(!allows_trace || self.hidden > 0);
    }

    /// Records that the delivery in the other account is complete.
    pub(crate) fn leave_account(&mut self) {
        self.hidden = self.hidden.saturating_sub(1);
    }

    /// Resolves the filters of subscriptions. Must run before a subscription is removed.
    pub(crate) fn name_subscriptions<K>(
        &mut self,
        subs: &Subscriptions,
        sessions: &Slab<Session<K>>,
        routers: &Routers,
        access: &Access,
    ) {
        for (at, id) in self.unnamed.drain(..) {
            let sub = subs.get(id);
            let account = sessions[sub.session() as usize].account;
            if let Some(event) = self.trace.events.get_mut(at) {
                event.sub = text(&routers[account].filter_of(sub));
                if !event.acc.is_empty() {
                    let account = access.account(account);
                    event.acc = account.map_or_else(String::new, |account| account.name.clone());
                }
            }
        }
    }
}
