//! Publishing and subscribing in a cluster: which clients must receive a message, and which must not.

use std::collections::{BTreeMap, BTreeSet};

use super::frames::{Interest, Place};
use super::setup::ACCOUNTS;
use crate::client::ClientKey;
use crate::model::{Claim, matches};
use crate::violation::{Invariant, Outcome, violation};

/// A subscription: its client and its number there.
pub(super) type SubscriptionKey = (ClientKey, u64);

/// A queue group: the index of its account, and its name. Members with different filters are one group for a message
/// that all these filters match.
type Group = (usize, String);

/// Where a client is: the number of its server, and the index of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) node: usize,
    pub(super) account: usize,
}

/// A published message.
#[derive(Clone, Debug)]
struct Message {
    publisher: ClientKey,
    home: Home,
    subject: String,
    /// The step in which its publisher began to write it.
    at: u64,
    /// Whether the server has certainly read it.
    is_certain: bool,
    /// Groups that have received it.
    groups: BTreeSet<Group>,
    /// Servers to which it has crossed, except as a message that was passed on.
    crossed: BTreeSet<usize>,
    /// Servers that have received it because the members of a group at another place had left.
    passed_on: BTreeSet<usize>,
}

/// A subscription as its client knows it.
#[derive(Clone, Debug)]
struct Subscription {
    home: Home,
    filter: String,
    queue: Option<String>,
    /// Whether the client receives what it publishes.
    echoes: bool,
    /// The step in which the client received the PONG after its SUB.
    visible_at: Option<u64>,
    /// The step in which all servers certainly knew it.
    known_at: Option<u64>,
    /// Whether the client has begun to unsubscribe.
    is_ending: bool,
    /// Most messages, once UNSUB has set it.
    max: Option<u64>,
    count: u64,
    /// How often each message was received since all was quiet.
    received: BTreeMap<u64, u64>,
    /// The newest message of each publisher.
    newest: BTreeMap<ClientKey, u64>,
}

/// A delivery that a client reports.
#[derive(Clone, Debug)]
pub(super) struct Delivered<'a> {
    pub(super) key: SubscriptionKey,
    pub(super) subject: &'a str,
    pub(super) message: u64,
    pub(super) account: usize,
}

/// All subscriptions, and the messages since all was quiet.
#[derive(Debug, Default)]
pub(super) struct ClusterModel {
    messages: BTreeMap<u64, Message>,
    subscriptions: BTreeMap<SubscriptionKey, Subscription>,
    /// Pairs of servers between which messages may have been lost since all was quiet.
    cut: BTreeSet<(usize, usize)>,
    /// Groups that members have begun to leave since all was quiet. A message for a member that has left is passed on
    /// to another shard or server, and later messages may overtake it.
    left: BTreeSet<Group>,
    /// Groups with members that have disconnected since all was quiet, perhaps before they have read their messages.
    bereft: BTreeSet<Group>,
    /// Interest at each server of clients that have disconnected since all was quiet, which it may not know yet.
    departed: Vec<(usize, Place)>,
    /// Messages checked so far.
    pub(super) checked: u64,
    /// Messages that crossed a route.
    pub(super) crossings: u64,
}

impl ClusterModel {
    /// Notes that a client has begun to publish a message.
    pub(super) fn publish(
        &mut self,
        publisher: ClientKey,
        home: Home,
        subject: &str,
        message: u64,
        at: u64,
    ) {
        let content = Message {
            publisher,
            home,
            subject: subject.to_owned(),
            at,
            is_certain: false,
            groups: BTreeSet::new(),
            crossed: BTreeSet::new(),
            passed_on: BTreeSet::new(),
        };
        self.messages.insert(message, content);
    }

    /// Notes that a client has begun to subscribe.
    pub(super) fn subscribe(
        &mut self,
        key: SubscriptionKey,
        home: Home,
        filter: &str,
        queue: Option<&str>,
        echoes: bool,
    ) {
        let subscription = Subscription {
            home,
            filter: filter.to_owned(),
            queue: queue.map(str::to_owned),
            echoes,
            visible_at: None,
            known_at: None,
            is_ending: false,
            max: None,
            count: 0,
            received: BTreeMap::new(),
            newest: BTreeMap::new(),
        };
        self.subscriptions.insert(key, subscription);
    }

    /// Notes that a client has begun to unsubscribe, either immediately or after some messages.
    pub(super) fn unsubscribe(&mut self, key: SubscriptionKey) {
        if let Some(subscription) = self.subscriptions.get_mut(&key) {
            subscription.is_ending = true;
            self.left.extend(subscription.group());
        }
    }

    /// Notes what a PONG proves.
    pub(super) fn claim(&mut self, client: ClientKey, claim: &Claim, at: u64) {
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
    pub(super) fn disconnect(&mut self, client: ClientKey) {
        let is_of = |key: &SubscriptionKey| key.0 == client;
        for (_, subscription) in self.subscriptions.iter().filter(|(key, _)| is_of(key)) {
            self.left.extend(subscription.group());
            self.bereft.extend(subscription.group());
            self.departed
                .push((subscription.home.node, subscription.place()));
        }
        self.subscriptions.retain(|key, _| !is_of(key));
    }

    /// Notes that messages between two servers may be lost from now on, until all is quiet.
    pub(super) fn cut(&mut self, pair: (usize, usize)) {
        self.cut.insert(pair);
    }

    /// Notes the end of a server without its clients, which have disconnected.
    pub(super) fn crash(&mut self, node: usize, nodes: usize) {
        for other in 0..nodes {
            self.cut.insert((node.min(other), node.max(other)));
        }
    }

    /// Checks that a message may cross from one server to another.
    pub(super) fn cross(
        &mut self,
        id: u64,
        [from, to]: [usize; 2],
        account: Option<&str>,
        is_passed_on: bool,
    ) -> Outcome {
        self.crossings += 1;
        let Some(message) = self.messages.get_mut(&id) else {
            let text = format!("message {id} crossed from {from} to {to} after all was quiet");
            return violation(Invariant::Hops, text);
        };
        let name = ACCOUNTS[message.home.account];
        if account.is_some_and(|account| account != name) {
            let text = format!("message {id} of {name} crossed in the account {account:?}");
            return violation(Invariant::Isolation, text);
        }
        // A server whose last member of a group has left passes the message on, to groups alone.
        if is_passed_on {
            message.passed_on.insert(to);
            return Ok(());
        }
        if message.home.node != from {
            let text = format!(
                "message {id} of server {} crossed from {from} to {to}",
                message.home.node
            );
            return violation(Invariant::Hops, text);
        }
        if !message.crossed.insert(to) {
            let text = format!("message {id} crossed from {from} to {to} twice");
            return violation(Invariant::Hops, text);
        }
        Ok(())
    }

    /// Checks a delivery.
    pub(super) fn deliver(&mut self, delivered: &Delivered<'_>) -> Outcome {
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
        if message.home.account != account || subscription.home.account != account {
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
        // A message that comes back does not name its publisher.
        let is_back =
            subscription.queue.is_some() && message.passed_on.contains(&subscription.home.node);
        if !subscription.echoes && message.publisher == key.0 && !is_back {
            let text = format!("{key:?} received its own message {id} without echo");
            return violation(Invariant::Correctness, text);
        }
        subscription.count += 1;
        if subscription.max.is_some_and(|max| subscription.count > max) {
            let text = format!("{key:?} received message {id}, more than its maximum");
            return violation(Invariant::Unsubscribed, text);
        }
        let times = subscription.received.entry(id).or_default();
        *times += 1;
        if *times > 1 {
            let text = format!("{key:?} received message {id} {times} times");
            return violation(Invariant::Visibility, text);
        }
        let group = subscription.group();
        let newest = subscription.newest.entry(message.publisher).or_default();
        let is_left = |group: &Group| self.left.contains(group);
        let may_be_late = group.as_ref().is_some_and(is_left);
        if *newest >= id && !may_be_late {
            let text = format!("{key:?} received message {id} after {newest}");
            return violation(Invariant::Order, text);
        }
        *newest = id.max(*newest);
        if let Some(group) = group
            && !message.groups.insert(group)
        {
            let text = format!("{key:?} received message {id}, and another member too");
            return violation(Invariant::Queue, text);
        }
        Ok(())
    }

    /// Checks that all messages were delivered. The caller has made sure that the servers and their clients have read
    /// and written everything, and that each server has routes to each other one.
    pub(super) fn check_quiet(
        &mut self,
        at: u64,
        is_connected: impl Fn(ClientKey) -> bool,
    ) -> Outcome {
        for (id, message) in &self.messages {
            if !message.is_certain && !is_connected(message.publisher) {
                continue;
            }
            self.checked += 1;
            for (key, subscription) in &self.subscriptions {
                if self.is_owed(key.0, subscription, message) {
                    subscription.check(*id, message, *key)?;
                }
            }
        }
        self.messages.clear();
        self.cut.clear();
        self.departed.clear();
        self.left.clear();
        self.bereft.clear();
        for subscription in self.subscriptions.values_mut() {
            subscription.received.clear();
            // Such a member leaves at any time.
            let leaves = subscription.max.is_some() && !subscription.is_spent();
            self.left.extend(subscription.group().filter(|_| leaves));
            if subscription.visible_at.is_some() {
                subscription.known_at.get_or_insert(at);
            }
        }
        Ok(())
    }

    /// Whether a message has to reach a subscription, or its group.
    fn is_owed(&self, client: ClientKey, subscription: &Subscription, message: &Message) -> bool {
        let (node, other) = (subscription.home.node, message.home.node);
        let since = match node == other {
            true => subscription.visible_at,
            false => subscription.known_at,
        };
        // A chosen member may be at a server to which the message was lost.
        let is_lost = match subscription.group() {
            Some(group) => !self.cut.is_empty() || self.bereft.contains(&group),
            None => self.cut.contains(&(node.min(other), node.max(other))),
        };
        subscription.home.account == message.home.account
            && !subscription.is_ending
            && !subscription.is_spent()
            && since.is_some_and(|since| since < message.at)
            && !(is_lost && (node != other || subscription.queue.is_some()))
            && (subscription.echoes || client != message.publisher)
            && matches(&subscription.filter, &message.subject)
    }

    /// Returns the interest of all clients of a server. At a quiet moment, it is what the server announces to its
    /// peers; otherwise it also contains what has yet to become visible or to end.
    pub(super) fn interest_of(&self, node: usize) -> Interest {
        let mut interest = Interest::new();
        let own = self.subscriptions.values();
        let is_own = |it: &&Subscription| it.home.node == node && !it.is_spent();
        for subscription in own.filter(is_own) {
            let weight = interest.entry(subscription.place()).or_default();
            *weight = match subscription.queue {
                None => 1,
                Some(_) => *weight + 1,
            };
        }
        interest
    }

    /// Returns all places in which a server may have interest of its clients.
    pub(super) fn possible_interest_of(&self, node: usize) -> BTreeSet<Place> {
        let departed = self.departed.iter().filter(|(of, _)| *of == node);
        let departed = departed.map(|(_, place)| place.clone());
        departed.chain(self.interest_of(node).into_keys()).collect()
    }

    /// Returns the number of subscriptions.
    pub(super) fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }
}

impl Subscription {
    fn group(&self) -> Option<Group> {
        Some((self.home.account, self.queue.clone()?))
    }

    /// Whether the subscription has received as many messages as it may.
    fn is_spent(&self) -> bool {
        self.max.is_some_and(|max| self.count >= max)
    }

    fn place(&self) -> Place {
        let account = ACCOUNTS[self.home.account].to_owned();
        let queue = self.queue.clone().unwrap_or_default();
        (account, self.filter.clone(), queue)
    }

    /// Checks that a message has reached the subscription, or its group.
    fn check(&self, id: u64, message: &Message, key: SubscriptionKey) -> Outcome {
        let is_there = match self.group() {
            Some(group) => message.groups.contains(&group),
            None => self.received.contains_key(&id),
        };
        if is_there {
            return Ok(());
        }
        let text = format!(
            "message {id} to {} of step {} at server {} did not reach {key:?} on {} in {:?} at server {}, visible since step {:?}, known since {:?}",
            message.subject,
            message.at,
            message.home.node,
            self.filter,
            self.queue,
            self.home.node,
            self.visible_at,
            self.known_at
        );
        let invariant = match self.queue {
            Some(_) => Invariant::Queue,
            None if self.home.node == message.home.node => Invariant::Visibility,
            None => Invariant::Hops,
        };
        violation(invariant, text)
    }
}

#[cfg(test)]
mod tests;
