//! The other servers of the cluster, as their events in the system account describe them. Their connections count
//! for the limits of accounts.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use fanline_engine::ConnectionStatus;
use fanline_engine::auth::AccountId;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use tracing::{debug, info};

use super::super::collect;
use super::System;
use crate::client::{ClientError, Message, OutgoingMessage, Subscription};
use crate::ipc::{Command, ConnectionQuery};

/// A server that was silent for this long has gone, and its connections do not count any more.
const SILENCE_MAX: Duration = Duration::from_secs(150);
/// Interval of the checks for silent servers.
const SWEEP_EVERY: Duration = Duration::from_secs(90);
/// Largest number of servers that are remembered. Further ones do not count.
const PEERS_MAX: usize = 4096;

/// The other servers by their ids.
#[derive(Default)]
pub(super) struct Peers(RefCell<BTreeMap<String, Peer>>);

struct Peer {
    heard_at: Instant,
    /// Numbers of connections by account.
    connections: HashMap<String, Connections>,
}

/// Connections of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Connections {
    clients: u32,
    leafnodes: u32,
}

/// An event of another server.
#[derive(Clone, Copy)]
enum PeerEvent {
    Statistics,
    Connections,
    Shutdown,
}

/// The part of `STATSZ` and `CONNS` that matters here.
#[derive(Deserialize)]
struct Heard {
    server: Server,
    #[serde(default)]
    acc: String,
    #[serde(default)]
    conns: u32,
    #[serde(default)]
    leafnodes: u32,
}

#[derive(Deserialize)]
struct Server {
    id: String,
}

impl Peers {
    /// Returns the number of servers.
    pub(super) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns the number of servers with connections of an account.
    pub(super) fn with_connections(&self, account: &str) -> usize {
        let peers = self.0.borrow();
        let has = |peer: &&Peer| {
            peer.connections
                .get(account)
                .is_some_and(|counts| counts.clients > 0)
        };
        peers.values().filter(has).count()
    }

    /// Returns the numbers of connections of an account to the other servers.
    fn connections(&self, account: &str) -> Connections {
        let peers = self.0.borrow();
        let counts = peers
            .values()
            .filter_map(|peer| peer.connections.get(account));
        counts.fold(Connections::default(), |sum, counts| Connections {
            clients: sum.clients.saturating_add(counts.clients),
            leafnodes: sum.leafnodes.saturating_add(counts.leafnodes),
        })
    }

    /// Records that a server has sent an event. Returns whether it was not known.
    fn hear(&self, id: &str) -> bool {
        let mut peers = self.0.borrow_mut();
        if let Some(peer) = peers.get_mut(id) {
            peer.heard_at = Instant::now();
            return false;
        }
        let has_room = peers.len() < PEERS_MAX;
        if has_room {
            let peer = Peer {
                heard_at: Instant::now(),
                connections: HashMap::new(),
            };
            peers.insert(id.to_owned(), peer);
        }
        has_room
    }

    fn record(&self, id: &str, account: String, connections: Connections) {
        if let Some(peer) = self.0.borrow_mut().get_mut(id) {
            peer.connections.insert(account, connections);
        }
    }

    /// Forgets a server. Returns the accounts of its connections.
    fn forget(&self, id: &str) -> Vec<String> {
        let gone = self.0.borrow_mut().remove(id);
        gone.map_or_else(Vec::new, |peer| peer.connections.into_keys().collect())
    }

    /// Returns the ids of servers that were silent for too long.
    fn silent(&self) -> Vec<String> {
        let peers = self.0.borrow();
        let silent = |peer: &Peer| peer.heard_at.elapsed() > SILENCE_MAX;
        let silent = peers.iter().filter(|(_, peer)| silent(peer));
        silent.map(|(id, _)| id.clone()).collect()
    }
}

impl System {
    /// Subscribes to the events of the other servers of the cluster. Starts a task for each kind of event.
    pub(super) async fn follow_peers(self: &Rc<Self>) -> Result<(), ClientError> {
        for (subject, event) in [
            ("$SYS.SERVER.*.STATSZ".to_owned(), PeerEvent::Statistics),
            ("$SYS.SERVER.*.SHUTDOWN".to_owned(), PeerEvent::Shutdown),
            (
                "$SYS.SERVER.ACCOUNT.*.CONNS".to_owned(),
                PeerEvent::Connections,
            ),
            (self.counts_inbox(), PeerEvent::Connections),
        ] {
            let events = self.client.subscribe(&subject).await?;
            tokio::task::spawn_local(Rc::clone(self).handle_peer_events(events, event));
        }
        tokio::task::spawn_local(Rc::clone(self).sweep_peers());
        Ok(())
    }

    /// Returns the reply subject of requests for connection counts.
    fn counts_inbox(&self) -> String {
        format!("$SYS._INBOX_.{}", self.monitor.server_id())
    }

    async fn handle_peer_events(self: Rc<Self>, mut events: Subscription, event: PeerEvent) {
        while let Some(message) = events.next().await {
            match event {
                PeerEvent::Shutdown => {
                    if let Some(id) = message.subject().split('.').nth(2) {
                        self.forget_peer(id).await;
                    }
                }
                PeerEvent::Statistics | PeerEvent::Connections => self.hear(&message, event).await,
            }
        }
    }

    /// Handles an event with the identity of its server.
    async fn hear(&self, message: &Message, event: PeerEvent) {
        let Ok(heard) = serde_json::from_slice::<Heard>(message.payload()) else {
            debug!("an event at {} cannot be read", message.subject());
            return;
        };
        let id = &heard.server.id;
        if id == self.monitor.server_id() {
            return;
        }
        if self.peers.hear(id) {
            // The new server learns of this one, and tells it its connections.
            self.broadcast.request(false);
            self.request_counts().await;
        }
        if let PeerEvent::Connections = event {
            let connections = Connections {
                clients: heard.conns,
                leafnodes: heard.leafnodes,
            };
            self.peers.record(id, heard.acc.clone(), connections);
            self.apply_limit(&heard.acc).await;
        }
    }

    /// Requests the connection counts of limited accounts from all servers.
    async fn request_counts(&self) {
        let access = self.monitor.shared.access();
        let limited = access.accounts().iter();
        let limited = limited.filter(|account| {
            let limits = &account.limits;
            limits.connections_max.is_some() || limits.leafnodes_max.is_some()
        });
        for account in limited {
            let name = &account.name;
            let request = OutgoingMessage {
                subject: format!("$SYS.REQ.ACCOUNT.{name}.CONNS"),
                reply: Some(self.counts_inbox()),
                payload: json!({ "acc": name }).to_string().into(),
                ..OutgoingMessage::default()
            };
            // Fails if the name is no token of a subject, and when the server stops.
            let _ = self.client.publish_message(&request).await;
        }
    }

    async fn forget_peer(&self, id: &str) {
        for account in self.peers.forget(id) {
            self.apply_limit(&account).await;
        }
    }

    /// Forgets servers that are silent for too long.
    async fn sweep_peers(self: Rc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            for id in self.peers.silent() {
                debug!("Detected orphan remote server: {id:?}");
                self.forget_peer(&id).await;
            }
        }
    }

    /// Applies the limits of accounts that have changed.
    pub(super) async fn follow_access(self: Rc<Self>) {
        let mut before = self.monitor.shared.access();
        loop {
            self.monitor.shared.access_changed.notified().await;
            let access = self.monitor.shared.access();
            for account in access.accounts() {
                let old = before.account_id(&account.name);
                let old = old.and_then(|id| before.account(id));
                if old.map(|old| old.limits) != Some(account.limits) {
                    self.apply_limit(&account.name).await;
                }
            }
            before = access;
        }
    }

    /// Applies an account's limits to the connections of all servers. If there are too many, closes the youngest ones of
    /// this server. The other servers may do so, too.
    async fn apply_limit(&self, name: &str) {
        let access = self.monitor.shared.access();
        let Some(id) = access.account_id(name) else {
            return;
        };
        let Some(limits) = access.account(id).map(|account| account.limits) else {
            return;
        };
        if limits.connections_max.is_none() && limits.leafnodes_max.is_none() {
            return;
        }
        let elsewhere = self.peers.connections(name);
        let Connections { clients, leafnodes } = elsewhere;
        let command = || Command::SetRemoteConnections(id, clients, leafnodes);
        self.monitor.shared.send_to_all(command);
        let Ok(leafs) = collect::leafs(&self.monitor.shared, false).await else {
            return;
        };
        let leafs = leafs.iter().filter(|leaf| leaf.account == name);
        let leafs: Vec<_> = leafs.map(|leaf| (Duration::ZERO, leaf.id)).collect();
        if let Some(max) = limits.connections_max
            && let Ok(own) = self.connections_in(id).await
        {
            let own = own.iter().map(|status| (status.opened_at, status.cid));
            // The leaf connections to this server take the place of clients.
            let others = u32::try_from(leafs.len()).unwrap_or(u32::MAX);
            let others = others.saturating_add(clients);
            self.close_excess(name, own.collect(), others, max).await;
        }
        if let Some(max) = limits.leafnodes_max {
            self.close_excess(name, leafs, leafnodes, max).await;
        }
    }

    /// Closes the youngest of these connections if they and those elsewhere are too many. `own` has the time at which
    /// each was opened, if it is known, and its id.
    async fn close_excess(
        &self,
        account: &str,
        mut own: Vec<(Duration, u64)>,
        elsewhere: u32,
        max: u64,
    ) {
        let all = own.len() as u64 + u64::from(elsewhere);
        let excess = usize::try_from(all.saturating_sub(max)).unwrap_or(usize::MAX);
        own.sort_unstable_by_key(|opened| Reverse(*opened));
        own.truncate(excess);
        if !own.is_empty() {
            info!(
                "Closing {} connections of account {account}: the cluster has {all} of {max}",
                own.len()
            );
        }
        for (_, cid) in own {
            let shared = &self.monitor.shared;
            // A connection that has ended meanwhile is not found.
            let _ = collect::of_all(shared, |to| Command::CloseOverLimit(cid, to)).await;
        }
    }

    /// Returns the clients of an account.
    pub(super) async fn connections_in(
        &self,
        account: AccountId,
    ) -> Result<Vec<ConnectionStatus>, ()> {
        let query = ConnectionQuery {
            open: true,
            ..ConnectionQuery::default()
        };
        let command = |to| Command::Connections(query.clone(), to);
        let reports = collect::of_all(&self.monitor.shared, command).await;
        let open = reports
            .map_err(drop)?
            .into_iter()
            .flat_map(|report| report.open);
        Ok(open
            .filter(|status| status.account == account && !status.kind.is_leaf())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_all_servers_are_summed_up() {
        let peers = Peers::default();
        let counts = |clients, leafnodes| Connections { clients, leafnodes };
        assert!(peers.hear("NA") && peers.hear("NB") && !peers.hear("NA"));
        peers.record("NA", "A".into(), counts(2, 0));
        peers.record("NB", "A".into(), counts(3, 4));
        peers.record("NB", "B".into(), counts(0, 1));
        peers.record("NX", "A".into(), counts(9, 9));
        assert_eq!((peers.len(), peers.connections("A")), (2, counts(5, 4)));
        assert_eq!(
            (peers.with_connections("A"), peers.with_connections("B")),
            (2, 0)
        );
        peers.record("NA", "A".into(), counts(1, 1));
        assert_eq!(peers.connections("A"), counts(4, 5));
        assert_eq!(peers.forget("NA"), ["A"]);
        assert!(peers.forget("NA").is_empty() && peers.silent().is_empty());
        assert_eq!(peers.connections("A"), counts(3, 4));
    }
}
