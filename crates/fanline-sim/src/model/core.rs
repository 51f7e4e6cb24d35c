//! Plain publishing and subscribing: which clients must receive a message, and which must not.

use std::collections::{BTreeMap, BTreeSet};

use super::matches;
use crate::accounts::EXPORTED;
use crate::client::ClientKey;
use crate::violation::{Invariant, Outcome, violation};

/// A subscription: its client and its number there.
pub(crate) type SubscriptionKey = (ClientKey, u64);

/// A queue group: the index of its account, and its name. Members may have different filters. If the filters
/// match the same message, the members are one group for that message.
type Group = (usize, String);

/// A published message.
#[derive(Clone, Debug)]
struct Message {
    publisher: ClientKey,
    account: usize,
    subject: String,
    /// The step in which its publisher began to write it.
    at: u64,
    /// Whether the server has certainly read it.
    is_certain: bool,
    /// Groups that have received it.
    groups: BTreeSet<Group>,
}

/// A subscription as its client knows it.
#[derive(Clone, Debug)]
struct Subscription {
    account: usize,
    filter: String,
    queue: Option<String>,
    /// Whether the client receives what it publishes.
    echoes: bool,
    /// The step in which the client received the PONG after its SUB.
    visible_at: Option<u64>,
    /// Whether the client has begun to unsubscribe.
    is_ending: bool,
    /// Most messages, once UNSUB has set it.
    max: Option<u64>,
    count: u64,
    /// Messages received since all was quiet.
    received: BTreeSet<u64>,
    /// The newest message of each publisher.
    newest: BTreeMap<ClientKey, u64>,
}

/// A delivery that a client reports.
#[derive(Clone, Debug)]
pub(crate) struct Delivered<'a> {
    pub(crate) key: SubscriptionKey,
    pub(crate) subject: &'a str,
    pub(crate) message: u64,
    pub(crate) account: usize,
}

/// What a PONG proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The subscription is visible.
    Visible(u64),
    /// The subscription has ended.
    Gone(u64),
    /// The subscription has a maximum.
    Limited(u64, u64),
    /// The message was read.
    Published(u64),
}

/// The import of the second account, which reloads add and remove.
#[derive(Clone, Copy, Debug, Default)]
struct ImportState {
    /// Whether the last reload has it.
    is_wanted: bool,
    /// Whether some thread may have it.
    is_possible: bool,
    /// The step since which all threads have it.
    sure_since: Option<u64>,
}

impl ImportState {
    fn carries(message: &Message, account: usize) -> bool {
        message.account == 0 && account == 1 && message.subject.starts_with(EXPORTED)
    }
}

/// All subscriptions, and the messages since all was quiet.
#[derive(Debug, Default)]
pub(crate) struct CoreModel {
    import: ImportState,
    messages: BTreeMap<u64, Message>,
    subscriptions: BTreeMap<SubscriptionKey, Subscription>,
    /// Groups with members that have disconnected since the last quiet moment. Messages for these groups may
    /// be lost.
    disturbed: BTreeSet<Group>,
    /// Groups that members have begun to leave since the last quiet moment. The server passes a message for a
    /// member that has left to another shard, and later messages may overtake this message.
    reordered: BTreeSet<Group>,
    /// Messages checked so far.
    pub(crate) checked: u64,
}

impl CoreModel {
    /// Notes that a client has begun to publish a message.
    pub(crate) fn publish(
        &mut self,
        publisher: ClientKey,
        account: usize,
        subject: &str,
        message: u64,
        at: u64,
    ) {
        let subject = subject.to_owned();
        let message_of = Message {
            publisher,
            account,
            subject,
            at,
            is_certain: false,
            groups: BTreeSet::new(),
        };
        self.messages.insert(message, message_of);
    }

    /// Notes that a client has begun to subscribe.
    pub(crate) fn subscribe(
        &mut self,
        key: SubscriptionKey,
        account: usize,
        filter: &str,
        queue: Option<&str>,
        echoes: bool,
    ) {
        let subscription = Subscription {
            account,
            filter: filter.to_owned(),
            queue: queue.map(str::to_owned),
            echoes,
            visible_at: None,
            is_ending: false,
            max: None,
            count: 0,
            received: BTreeSet::new(),
            newest: BTreeMap::new(),
        };
        self.subscriptions.insert(key, subscription);
    }

    /// Records that a client has begun to unsubscribe, either immediately or after `max` messages.
    pub(crate) fn unsubscribe(&mut self, key: SubscriptionKey) {
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            subscription.is_ending = true;
            self.reordered.extend(subscription.group());
        }
    }

    /// Notes what a PONG proves.
    pub(crate) fn claim(&mut self, client: ClientKey, claim: &Claim, at: u64) {
        match claim {
            Claim::Published(message) => {
                if let Some(message) = self.messages.get_mut(message) {
                    message.is_certain = true;
                }
            }
            Claim::Visible(sid) => {
                if let Some(subscription) = self.subscriptions.get_mut(&(client, *sid)) {
                    subscription.visible_at = Some(at);
                }
            }
            Claim::Gone(sid) => {
                self.subscriptions.remove(&(client, *sid));
            }
            Claim::Limited(sid, max) => {
                if let Some(subscription) = self.subscriptions.get_mut(&(client, *sid)) {
                    subscription.max = Some(subscription.count.max(*max));
                    subscription.is_ending = false;
                }
            }
        }
    }

    /// Notes the end of a client.
    pub(crate) fn disconnect(&mut self, client: ClientKey) {
        let is_of = |key: &SubscriptionKey| key.0 == client;
        for (_, subscription) in self.subscriptions.iter().filter(|(key, _)| is_of(key)) {
            self.disturbed.extend(subscription.group());
            self.reordered.extend(subscription.group());
        }
        self.subscriptions.retain(|key, _| !is_of(key));
    }

    /// Notes that a reload has begun.
    pub(crate) fn begin_reload(&mut self, has_import: bool) {
        self.import.is_wanted = has_import;
        self.import.is_possible |= has_import;
        if !has_import {
            self.import.sure_since = None;
        }
    }

    /// Notes that all threads have applied all reloads.
    pub(crate) fn end_reloads(&mut self, at: u64) {
        if self.import.is_wanted {
            self.import.sure_since.get_or_insert(at);
        }
    }

    /// Notes the end of the server with all its clients.
    pub(crate) fn end_server(&mut self) {
        self.import.is_possible = self.import.is_wanted;
        self.import.sure_since = None;
        self.subscriptions.clear();
        self.messages.clear();
        self.disturbed.clear();
        self.reordered.clear();
    }

    /// Checks a delivery.
    pub(crate) fn deliver(&mut self, delivered: &Delivered<'_>) -> Outcome {
        let Delivered {
            key,
            subject,
            message: id,
            account,
        } = *delivered;
        let Some(subscription) = self.subscriptions.get_mut(&key) else {
            let text = format!("{key:?} has no subscription and received message {id}");
            return violation(Invariant::Unsubscribed, text);
        };
        let Some(message) = self.messages.get_mut(&id) else {
            let text = format!("{key:?} received message {id} after all was quiet");
            return violation(Invariant::Visibility, text);
        };
        let is_imported =
            self.import.is_possible && ImportState::carries(message, subscription.account);
        if message.account != account || subscription.account != account && !is_imported {
            let text = format!("{key:?} received message {id} of account {account}");
            return violation(Invariant::Isolation, text);
        }
        if message.subject != subject || !matches(&subscription.filter, subject) {
            let text = format!(
                "{key:?} on {} received message {id} of {subject}",
                subscription.filter
            );
            return violation(Invariant::Visibility, text);
        }
        if !subscription.echoes && message.publisher == key.0 {
            let text = format!("{key:?} received its own message {id} without echo");
            return violation(Invariant::Correctness, text);
        }
        subscription.count += 1;
        if subscription.max.is_some_and(|max| subscription.count > max) {
            let text = format!(
                "{key:?} received message {id}, more than {:?}",
                subscription.max
            );
            return violation(Invariant::Unsubscribed, text);
        }
        if !subscription.received.insert(id) {
            let text = format!("{key:?} received message {id} twice");
            return violation(Invariant::Visibility, text);
        }
        let newest = subscription.newest.entry(message.publisher).or_default();
        let group = subscription.queue.clone();
        let group = group.map(|queue| (subscription.account, queue));
        let may_be_late = group.is_some_and(|group| self.reordered.contains(&group));
        if *newest >= id && !may_be_late {
            let text = format!("{key:?} received message {id} after {newest}");
            return violation(Invariant::Order, text);
        }
        *newest = id.max(*newest);
        if let Some(group) = subscription.group()
            && !message.groups.insert(group)
        {
            let text = format!("{key:?} received message {id}, and another member too");
            return violation(Invariant::Queue, text);
        }
        Ok(())
    }

    /// Checks that all messages were delivered. The caller has made sure that the server and its clients have
    /// read and written all their data.
    pub(crate) fn check_quiet(&mut self, is_connected: impl Fn(ClientKey) -> bool) -> Outcome {
        for (id, message) in &self.messages {
            if !message.is_certain && !is_connected(message.publisher) {
                continue;
            }
            self.checked += 1;
            for (key, subscription) in &self.subscriptions {
                if subscription.queue.is_none()
                    && subscription.is_owed(key.0, message, self.import)
                    && !subscription.received.contains(id)
                {
                    let text = format!(
                        "message {id} to {} of step {} did not reach {key:?} on {}, visible since step {:?}",
                        message.subject, message.at, subscription.filter, subscription.visible_at
                    );
                    return violation(Invariant::Visibility, text);
                }
                if let Some(group) = subscription.group()
                    && subscription.is_owed(key.0, message, self.import)
                    && !self.disturbed.contains(&group)
                    && !message.groups.contains(&group)
                {
                    let text = format!(
                        "message {id} to {} of step {} reached no member of {group:?}, such as {key:?}, visible since step {:?}",
                        message.subject, message.at, subscription.visible_at
                    );
                    return violation(Invariant::Queue, text);
                }
            }
        }
        self.messages.clear();
        self.disturbed.clear();
        self.reordered.clear();
        self.import.is_possible = self.import.is_wanted;
        for subscription in self.subscriptions.values_mut() {
            subscription.received.clear();
        }
        Ok(())
    }

    /// Returns the number of subscriptions.
    pub(crate) fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }
}

impl Subscription {
    fn group(&self) -> Option<Group> {
        Some((self.account, self.queue.clone()?))
    }

    /// Whether a message has to reach the subscription, or its group.
    fn is_owed(&self, client: ClientKey, message: &Message, import: ImportState) -> bool {
        let is_imported = ImportState::carries(message, self.account)
            && import.sure_since.is_some_and(|since| since < message.at);
        (self.account == message.account || is_imported)
            && !self.is_ending
            && self.visible_at.is_some_and(|at| at < message.at)
            && self.max.is_none_or(|max| self.count < max)
            && (self.echoes || client != message.publisher)
            && matches(&self.filter, &message.subject)
    }
}

#[cfg(test)]
mod tests;
