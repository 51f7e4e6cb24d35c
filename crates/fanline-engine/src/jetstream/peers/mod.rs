//! The streams of the other servers of a cluster.
//!
//! Each stream is on one server. The servers of a cluster find them by interest, and agree on new ones by
//! requests to each other in the system account ([decision record
//! 0040](../../../../../docs/decisions/0040-streams-of-a-cluster.md)):
//!
//! - A server subscribes to `$SYS.JETSTREAM.<its id>.>` in the system account. This interest tells the others that
//!   it has JetStream, and their requests go to it.
//! - For each stream the server subscribes to the requests that name it, and to `$JS.OWNER.<its id>.<stream>`. The
//!   server that a client is connected to leaves a request to the owner that this marker names.
//! - In each account with JetStream, the server joins a queue group of the requests that no stream's server may
//!   answer. So a server without JetStream passes each of them on to one server that has it.
//! - The server that a client is connected to creates the stream, after all other servers have confirmed that its
//!   name and subjects are free.

mod absent;
mod claim;
mod filters;
mod gather;
mod pending;
mod placement;
mod question;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hashbrown::HashMap;
use serde_json::Value;

use super::accounts::JetStreams;
use super::{ApiError, Message, Now, Ports, api};
use crate::auth::AccountId;
use pending::{Pending, Request, Step};

pub(super) use filters::stream_filters;
pub(crate) use filters::{is_all_requests, is_for_delegates};
pub use filters::{is_of_service, requests_of_server, service_of};
pub(super) use question::AccountSums;

/// Time for which a server waits for the others to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The cluster of a server, as JetStream needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Name of the cluster.
    pub name: String,
    /// Tags of the server, for the placement of streams.
    pub tags: Vec<String>,
    /// Number of replicas of the server's streams; 0 counts as 1. More than one means that a group replicates them.
    pub replicas: i64,
}

/// The other servers of the cluster with JetStream, their streams, and the requests that wait for them.
pub(super) struct Peers {
    /// Id of this server.
    id: String,
    cluster: ClusterSettings,
    /// Whether this server has subscribed to the requests of other servers.
    is_announced: bool,
    /// Accounts whose requests this server answers for servers without JetStream.
    delegates: BTreeSet<AccountId>,
    /// Ids of the other servers.
    ids: BTreeSet<String>,
    /// Names of their streams in each account, with the ids of the servers that have one.
    owners: HashMap<AccountId, BTreeMap<String, BTreeSet<String>>>,
    /// Names of streams whose group may have no leader, by the names of their accounts.
    absent: BTreeMap<String, BTreeSet<String>>,
    pending: BTreeMap<u64, Pending>,
    /// Number of the last pending request.
    last: u64,
}

/// What other servers contribute to an answer.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// Names of streams, with the ids of their servers.
    pub(super) names: BTreeMap<String, String>,
    /// Descriptions of streams.
    pub(super) infos: HashMap<String, Value>,
    /// Totals of the account.
    pub(super) sums: AccountSums,
}

impl Peers {
    pub(super) fn new(id: &str, cluster: ClusterSettings) -> Self {
        Peers {
            id: id.to_owned(),
            cluster,
            is_announced: false,
            delegates: BTreeSet::new(),
            ids: BTreeSet::new(),
            owners: HashMap::new(),
            absent: BTreeMap::new(),
            pending: BTreeMap::new(),
            last: 0,
        }
    }

    /// Returns the ids of the servers that have a stream of this name.
    fn owners(&self, account: AccountId, stream: &str) -> Option<&BTreeSet<String>> {
        self.owners.get(&account)?.get(stream)
    }

    /// Returns the time at which to call [`JetStreams::handle_due_peers`] next.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.pending.values().map(|pending| pending.due).min()
    }

    /// Handles a change of the interest of other servers. Returns the other server and the stream, if it is the
    /// marker of a stream that has appeared.
    fn handle_interest<'a>(
        &mut self,
        account: AccountId,
        filter: &'a str,
        present: bool,
    ) -> Option<(&'a str, &'a str)> {
        if let Some(id) = filters::server_of(filter).filter(|_| account == AccountId::SYSTEM) {
            match present {
                true => self.ids.insert(id.to_owned()),
                false => self.ids.remove(id),
            };
            return None;
        }
        let (id, stream) = filters::owner_of(filter)?;
        let streams = self.owners.entry(account).or_default();
        let owners = streams.entry(stream.to_owned()).or_default();
        if present {
            owners.insert(id.to_owned());
            return Some((id, stream));
        }
        owners.remove(id);
        if owners.is_empty() {
            streams.remove(stream);
        }
        None
    }
}

/// Where a request is answered.
enum Responder {
    /// Here and now.
    Here,
    /// On another server, which receives the request as well; or nowhere.
    Other,
    /// On the server with this id, which gets the request from this one.
    At(String),
    /// Here, after other servers have answered this question.
    After(Step),
    /// Here and now, because no server leads the stream.
    Absent,
}

impl JetStreams {
    /// Subscribes to the requests of other servers, once.
    pub(super) fn announce_to_peers(&mut self, ports: &mut dyn Ports) {
        let Some(peers) = &mut self.peers else {
            return;
        };
        if !std::mem::replace(&mut peers.is_announced, true) {
            let filter = requests_of_server(&peers.id);
            ports.of(AccountId::SYSTEM).subscribe(filter.as_bytes());
        }
    }

    /// Ends the subscription to the requests of other servers.
    pub(super) fn retract_from_peers(&mut self, ports: &mut dyn Ports) {
        let Some(peers) = &mut self.peers else {
            return;
        };
        peers.pending.clear();
        if std::mem::take(&mut peers.is_announced) {
            let filter = requests_of_server(&peers.id);
            ports.of(AccountId::SYSTEM).unsubscribe(filter.as_bytes());
        }
    }

    /// Sets whether this server answers an account's requests for servers without JetStream.
    pub(super) fn set_delegate(
        &mut self,
        account: AccountId,
        is_delegate: bool,
        ports: &mut dyn Ports,
    ) {
        let domain = self.domain().map(str::to_owned);
        let Some(peers) = &mut self.peers else {
            return;
        };
        let is_changed = match is_delegate {
            true => peers.delegates.insert(account),
            false => peers.delegates.remove(&account),
        };
        if is_changed {
            for (filter, group) in filters::delegated(domain.as_deref()) {
                let port = ports.of(account);
                port.set_member(filter.as_bytes(), group, is_delegate);
            }
        }
    }

    /// Handles a change of the interest of other servers.
    pub(super) fn note_peer_interest(&mut self, account: AccountId, filter: &[u8], present: bool) {
        let (Some(peers), Ok(filter)) = (&mut self.peers, std::str::from_utf8(filter)) else {
            return;
        };
        let Some((other, stream)) = peers.handle_interest(account, filter, present) else {
            if !present {
                self.forget_absent_peers();
            }
            return;
        };
        let own = peers.id.clone();
        if self.has_stream_in(account, stream) {
            let answers = own.as_str().min(other);
            let name = self.name_of(account).to_owned();
            self.report(format!(
                "stream {stream} of account {name} exists on this server ({own}) and on server {other}: {answers} \
                 answers requests, and both store messages; delete one of them"
            ));
        }
    }

    /// Handles a message that concerns other servers. Returns whether nothing more is to be done with it.
    pub(super) fn handle_for_peers(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    ) -> bool {
        let Some(peers) = &self.peers else {
            return false;
        };
        if account == AccountId::SYSTEM
            && let Some(rest) = filters::request_path(message.subject, &peers.id)
        {
            let rest = String::from_utf8_lossy(rest).into_owned();
            self.handle_peer_message(&rest, message, now, ports);
            return true;
        }
        let Some(path) = self.request_path(message.subject) else {
            return false;
        };
        match self.responder(account, path, message) {
            Responder::Here => false,
            Responder::Other => true,
            Responder::At(server) => {
                let request = Request::of(message);
                self.forward(account, &request, &server, ports);
                true
            }
            Responder::After(step) => {
                self.begin(account, message, step, now, ports);
                true
            }
            Responder::Absent => {
                let error = ApiError::TEMPORARILY_UNAVAILABLE;
                api::refuse(path.as_bytes(), message, &error, ports.of(account));
                true
            }
        }
    }

    /// Returns where to answer a request.
    fn responder(&self, account: AccountId, path: &str, message: &Message<'_>) -> Responder {
        let Some(peers) = &self.peers else {
            return Responder::Here;
        };
        // The server of the client answers, or one to which that server has passed the request on.
        let is_elsewhere = message.is_from_route && !message.is_delegated;
        let Some(stream) = api::stream_named(path) else {
            return match gather::first_step(path, message.payload) {
                _ if is_elsewhere => Responder::Other,
                Some(step) if !peers.ids.is_empty() || self.has_absent(account) => {
                    Responder::After(step)
                }
                _ => Responder::Here,
            };
        };
        let owners = peers.owners(account, stream);
        let has_stream = self.has_stream_in(account, stream);
        let is_first = owners.is_none_or(|owners| owners.iter().all(|other| *other > peers.id));
        if claim::may_create(path) {
            // Each server that the request reaches could create the stream, so only one of them decides.
            let owner = owners.and_then(BTreeSet::first);
            return match owner {
                _ if is_elsewhere => Responder::Other,
                _ if has_stream && is_first => Responder::Here,
                Some(owner) => Responder::At(owner.clone()),
                None => self.responder_of_missing(account, path, message),
            };
        }
        if has_stream {
            return match self.claim_of_update(account, path, stream, message) {
                _ if !is_first => Responder::Other,
                Some(claim) if !peers.ids.is_empty() || self.has_absent(account) => {
                    Responder::After(Step::Claim(claim))
                }
                _ => Responder::Here,
            };
        }
        match owners {
            // The owner answers a deletion, after which the stream would be missing here.
            Some(_) if message.is_delegated && !path.starts_with("STREAM.DELETE.") => {
                Responder::After(Step::Settle)
            }
            Some(_) => Responder::Other,
            None if is_elsewhere => Responder::Other,
            None if self.is_absent(account, stream) && !message.is_delegated => Responder::Absent,
            None => self.responder_of_missing(account, path, message),
        }
    }

    /// Returns where to answer a request that names a stream of which this server does not know.
    fn responder_of_missing(
        &self,
        account: AccountId,
        path: &str,
        message: &Message<'_>,
    ) -> Responder {
        let has_peers = self
            .peers
            .as_ref()
            .is_some_and(|peers| !peers.ids.is_empty());
        let is_unsettled = message.is_delegated && (has_peers || self.has_absent(account));
        match self.step_to_create(account, path, message) {
            Some(step) => Responder::After(step),
            None if is_unsettled => Responder::After(Step::Settle),
            None => Responder::Here,
        }
    }
}
