//! How a link begins: who is at the other end, and what may cross.

use std::sync::Arc;
use std::time::Duration;

use super::super::SessionId;
use super::super::Shard;
use super::Seat;
use crate::auth::Peer;
use crate::auth::{Access, AccountId, Decision, Grant};
use crate::codec::leaf::{
    Agreed, Dialled, InfoTold, Leaf, LeafCompression, LeafConnect, LeafError, LeafInfo,
    LeafListener, PROTOCOL, Phase, RETRY_AFTER_CLASH, RETRY_AFTER_VERSION, Side, Welcome,
};
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::remote::LinkSet;

impl Shard {
    /// A link to another server: one that has come here, or one that was dialled.
    ///
    /// Only the first shard serves them.
    pub fn open_leaf(
        &mut self,
        cid: u64,
        peer: Peer,
        dialled: Option<Dialled>,
        agreed: Agreed,
        now: Duration,
    ) -> SessionId {
        let is_greeted = peer.is_greeted;
        let id = self.insert_session(cid, peer, true, agreed.greeted_at.unwrap_or(now));
        let side = dialled.map_or(Side::Listening, |dialled| Side::Dialling(dialled.into()));
        let is_dialled = matches!(side, Side::Dialling(_));
        self.broker.exchange.sessions[id.index()].kind.leaf =
            Some(Box::new(Leaf::new(side, agreed.compressed)));
        if is_dialled {
            self.answer_hub(id);
        } else if !is_greeted {
            let line = self.leaf_greeting(cid, &self.broker.exchange.sessions[id.index()].peer);
            self.broker.exchange.send(id, &line);
        }
        id
    }

    /// The INFO that a link begins with at this side, for those who get it before their TLS begins.
    pub fn leaf_greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        let listener = self.leaf_listener();
        let told = InfoTold {
            client_id: cid,
            nonce: &peer.nonce,
            needs_auth: self.leaf_access().is_required(),
            welcome: None,
        };
        crate::codec::leaf::info_line(&self.broker.exchange.info, &listener, &told)
    }

    /// Whether leafs are told a nonce to be signed.
    pub fn leafs_need_nonce(&self) -> bool {
        // A proxy signs it, too.
        self.leaf_access().needs_nonce() || !self.broker.exchange.access.proxies().is_empty()
    }

    /// Whether links that come here are compressed.
    pub fn leaf_compression(&self) -> LeafCompression {
        self.leaf_listener().compression.clone()
    }

    fn leaf_listener(&self) -> Arc<LeafListener> {
        let listener = self.broker.exchange.info.leafs.as_ref();
        listener.map_or_else(Arc::default, Arc::clone)
    }

    /// Who may come as a leaf.
    pub(in crate::shard) fn leaf_access(&self) -> Arc<Access> {
        let listener = self.leaf_listener();
        Arc::clone(
            listener
                .access
                .as_ref()
                .unwrap_or(&self.broker.exchange.access),
        )
    }

    /// Says who this server is to the hub that was dialled.
    fn answer_hub(&mut self, id: SessionId) {
        let Some(leaf) = &self.broker.exchange.sessions[id.index()].kind.leaf else {
            return;
        };
        let Side::Dialling(dialled) = &leaf.side else {
            return;
        };
        let Dialled {
            remote,
            info,
            credentials,
        } = &**dialled;
        let (account, cluster) = (remote.account.clone(), info.cluster.clone());
        let awaits_welcome = info.info_on_connect;
        let connect = LeafConnect {
            version: self.broker.exchange.info.version.clone(),
            user: credentials.user.clone(),
            pass: credentials.pass.clone(),
            auth_token: credentials.auth_token.clone(),
            nkey: credentials.nkey.clone(),
            jwt: credentials.jwt.clone(),
            sig: credentials.sig.clone(),
            server_id: self.broker.exchange.info.server_id.clone(),
            domain: self.broker.exchange.info.domain.clone().unwrap_or_default(),
            name: self.broker.exchange.info.server_name.clone(),
            is_hub: remote.is_hub,
            cluster: self.broker.exchange.info.cluster_name().into(),
            headers: self.broker.exchange.info.headers,
            jetstream: self.broker.exchange.info.jetstream,
            deny_pub: remote.deny_imports.clone(),
            isolate: remote.requests_isolation,
            compress_mode: leaf.compression(None).into(),
            remote_account: account.clone(),
            protocol: PROTOCOL,
            ..LeafConnect::default()
        };
        if !cluster.is_empty() && cluster == self.broker.exchange.info.cluster_name() {
            return self.clash(
                id,
                &LeafError::SameCluster,
                CloseReason::ClusterNamesIdentical,
            );
        }
        let Some(account_id) = self.broker.exchange.access.account_id(&account) else {
            let error = LeafError::UnknownAccount(account);
            return self.clash(id, &error, CloseReason::MissingAccount);
        };
        self.broker.exchange.routers.ensure(account_id);
        self.broker.exchange.sessions[id.index()].account = account_id;
        self.broker.exchange.send(id, &connect.line());
        if !awaits_welcome {
            self.finish_dialling(id, None);
        }
    }

    /// Closes a link for a reason that will not pass soon.
    fn clash(&mut self, id: SessionId, error: &LeafError, reason: CloseReason) {
        if let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf {
            leaf.retry_after = Some(match error {
                LeafError::Version(_) => RETRY_AFTER_VERSION,
                _ => RETRY_AFTER_CLASH,
            });
        }
        self.refuse_leaf(id, error, reason);
    }

    /// INFO of the other side.
    pub(super) fn leaf_info(&mut self, id: SessionId, json: &[u8]) {
        let Some(info) = LeafInfo::parse(json) else {
            return self.end(id, CloseReason::ProtocolViolation);
        };
        let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf else {
            return;
        };
        if let Side::Listening = leaf.side {
            // It has nothing to say that CONNECT did not.
            return;
        }
        if !info.leafnode_urls.is_empty() {
            leaf.urls.clone_from(&info.leafnode_urls);
        }
        // Others tell where the hub is, and nothing of what may cross.
        let has_rules = info.import.is_some() || info.export.is_some();
        if info.connect_info || (leaf.is_ready() && has_rules) {
            self.finish_dialling(id, Some(info));
        }
    }

    /// The hub has let this server in, or has changed what it may do.
    fn finish_dialling(&mut self, id: SessionId, welcome: Option<LeafInfo>) {
        let has_jetstream = self.broker.exchange.info.jetstream;
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.takes_headers = self.broker.exchange.info.headers;
        let Some(leaf) = &mut session.kind.leaf else {
            return;
        };
        let Side::Dialling(dialled) = &leaf.side else {
            return;
        };
        let hub = &dialled.info;
        let remote = Arc::clone(&dialled.remote);
        let (name, cluster) = (hub.server_name.clone(), hub.cluster.clone());
        session.takes_headers &= hub.headers;
        let takes_traces = hub.proto >= u64::from(PROTOCOL);
        let mut rules = crate::codec::leaf::Rules::default();
        rules.deny(&remote.deny_imports, &remote.deny_exports);
        if has_jetstream
            && hub.jetstream
            && self
                .broker
                .exchange
                .access
                .keeps_jetstream_apart(session.account)
        {
            rules.part_jetstream();
        }
        if let Some(welcome) = &welcome {
            let told = rules.obey(welcome.export.as_ref(), welcome.import.as_ref());
            if told.is_err() {
                return self.end(id, CloseReason::ProtocolViolation);
            }
            leaf.remote_account.clone_from(&welcome.remote_account);
        }
        if leaf.urls.is_empty() {
            leaf.urls.clone_from(&hub.leafnode_urls);
        }
        (leaf.name, leaf.cluster) = (name, cluster);
        leaf.takes_traces = takes_traces;
        leaf.isolates = remote.isolates;
        leaf.rules = rules;
        self.leaf_is_ready(id);
    }

    /// CONNECT of the other side.
    pub(super) fn leaf_connect(&mut self, id: SessionId, json: &[u8]) {
        let is_awaited = self.broker.exchange.sessions[id.index()].awaits_auth;
        let leaf = self.broker.exchange.sessions[id.index()].kind.leaf.as_ref();
        if !is_awaited || leaf.is_none_or(|leaf| !matches!(leaf.side, Side::Listening)) {
            return self.end(id, CloseReason::ProtocolViolation);
        }
        let Some(connect) = LeafConnect::parse(json) else {
            return self.end(id, CloseReason::ProtocolViolation);
        };
        if let Err((error, reason)) = self.examine(&connect) {
            return self.refuse_leaf(id, &error, reason);
        }
        let listener = self.leaf_listener();
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.takes_headers = connect.headers && self.broker.exchange.info.headers;
        let options = &mut session.options;
        options.user = connect.user;
        options.pass = connect.pass;
        options.auth_token = connect.auth_token;
        options.nkey = connect.nkey;
        options.jwt = connect.jwt;
        options.sig = connect.sig;
        options.proxy_sig = connect.proxy_sig;
        options.name.clone_from(&connect.name);
        options.version = connect.version;
        let Some(leaf) = &mut session.kind.leaf else {
            return;
        };
        leaf.name = connect.name;
        leaf.cluster = connect.cluster;
        leaf.remote_account = connect.remote_account;
        leaf.takes_traces = connect.protocol >= PROTOCOL;
        leaf.is_remote_hub = connect.is_hub;
        leaf.isolates = connect.isolate || listener.isolates;
        leaf.rules.deny(&[], &connect.deny_pub);
        leaf.has_jetstream = connect.jetstream;
        if !self.believes_proxy(id) {
            return self.refuse_proxy(id);
        }
        match self.decide(id) {
            Decision::Admitted(grant) => self.let_leaf_in(id, grant),
            Decision::Refused => self.refuse_credentials(id),
            Decision::Later(check) => self.broker.exchange.sessions[id.index()].check = Some(check),
        }
    }

    /// Whether it is a leaf at all, and one that may come.
    fn examine(&self, connect: &LeafConnect) -> Result<(), (LeafError, CloseReason)> {
        if !connect.lang.is_empty() {
            return Err((LeafError::Client, CloseReason::WrongPort));
        }
        if !connect.gateway.is_empty() {
            let error = LeafError::Gateway(connect.gateway.clone());
            return Err((error, CloseReason::WrongPort));
        }
        let listener = self.leaf_listener();
        if let Some(least) = &listener.min_version
            && version(&connect.version) < version(least)
        {
            let error = LeafError::Version(least.clone());
            return Err((error, CloseReason::MinimumVersionRequired));
        }
        if connect.cluster.contains(char::is_whitespace) {
            let error = LeafError::ClusterWithSpaces;
            return Err((error, CloseReason::ProtocolViolation));
        }
        if !connect.cluster.is_empty()
            && connect.cluster == self.broker.exchange.info.cluster_name()
        {
            let error = LeafError::SameCluster;
            return Err((error, CloseReason::ClusterNamesIdentical));
        }
        Ok(())
    }

    /// Tells what came of the check of a leaf's credentials.
    pub(in crate::shard) fn leaf_decided(&mut self, id: SessionId, outcome: Option<Grant>) {
        let kind = self.broker.exchange.sessions[id.index()].peer.kind;
        // Meanwhile the directory may have changed.
        match outcome.and_then(|grant| self.leaf_access().renew(&grant, kind)) {
            Some(grant) => self.let_leaf_in(id, grant),
            None => self.refuse_credentials(id),
        }
    }

    pub(in crate::shard) fn let_leaf_in(&mut self, id: SessionId, grant: Grant) {
        if self.refuses_way(id, &grant, self.leaf_needs_proxy(&grant)) {
            return;
        }
        let Some(account) = self.account_of(&grant) else {
            return self.refuse_credentials(id);
        };
        let most = self.broker.exchange.access.account(account);
        let most = most.and_then(|account| account.limits.leafnodes_max);
        let there = self.broker.exchange.shared.leafs.seats.get(&account);
        let there = there.map_or(0, |seat| seat.ready.len() as u64);
        if most.is_some_and(|most| there >= most) {
            let error = Some(ClientError::AccountConnectionsExceeded);
            return self.refuse(id, error, CloseReason::MaximumAccountConnectionsExceeded);
        }
        self.broker.exchange.routers.ensure(account);
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.account = account;
        session.has_connected = true;
        let mut welcome = Welcome::default();
        if let Some(leaf) = &mut session.kind.leaf
            && leaf.has_jetstream
            && self.broker.exchange.info.jetstream
            && self.broker.exchange.access.keeps_jetstream_apart(account)
        {
            leaf.rules.part_jetstream();
        }
        if let Some(leaf) = &mut session.kind.leaf
            && let Some(rights) = &grant.rights
        {
            leaf.rules.grant(Arc::clone(rights));
            let [publish, subscribe] = rights.told();
            (welcome.export, welcome.import) = (Some(publish.into()), Some(subscribe.into()));
        }
        let expires_in = grant.expires_in;
        self.follow_account_expiry(id, &grant);
        self.broker.exchange.sessions[id.index()].grant = grant;
        self.end_older(id);
        let name = self.broker.exchange.account_name(account);
        welcome.account = &name;
        let session = &self.broker.exchange.sessions[id.index()];
        let told = InfoTold {
            client_id: session.cid,
            nonce: "",
            needs_auth: self.leaf_access().is_required(),
            welcome: Some(welcome),
        };
        let line =
            crate::codec::leaf::info_line(&self.broker.exchange.info, &self.leaf_listener(), &told);
        self.broker.exchange.send(id, &line);
        self.leaf_is_ready(id);
        self.expire_in(id, expires_in);
    }

    /// Whether who has this has it through a proxy only.
    fn leaf_needs_proxy(&self, grant: &Grant) -> bool {
        self.leaf_listener().needs_proxy || self.leaf_access().needs_proxy(grant)
    }

    /// The account here of somebody who may come in.
    fn account_of(&self, grant: &Grant) -> Option<AccountId> {
        let listener = self.leaf_listener();
        let name = match (&listener.access, &listener.account) {
            _ if !grant.names_user() => listener.account.as_deref(),
            (Some(own), _) => own.account(grant.account).map(|own| own.name.as_str()),
            (None, _) => return Some(grant.account),
        };
        name.map_or(Some(AccountId::GLOBAL), |name| {
            self.broker.exchange.access.account_id(name)
        })
    }

    /// The same server with the same accounts needs only one link: the newer one stays.
    fn end_older(&mut self, id: SessionId) {
        let session = &self.broker.exchange.sessions[id.index()];
        let (account, Some(leaf)) = (session.account, &session.kind.leaf) else {
            return;
        };
        let is_same = |other: &SessionId| {
            let other = self.broker.exchange.sessions[other.index()]
                .kind
                .leaf
                .as_ref();
            other.is_some_and(|other| {
                matches!(other.side, Side::Listening)
                    && !leaf.name.is_empty()
                    && (&other.name, &other.cluster, &other.remote_account)
                        == (&leaf.name, &leaf.cluster, &leaf.remote_account)
            })
        };
        let seat = self.broker.exchange.shared.leafs.seats.get(&account);
        let older: Vec<SessionId> = seat
            .into_iter()
            .flat_map(|seat| seat.ready.iter().copied())
            .filter(|other| *other != id && is_same(other))
            .collect();
        for other in older {
            let reason = CloseReason::DuplicateRemoteLeafnode;
            self.refuse_leaf(other, &LeafError::Duplicate, reason);
        }
    }

    /// From now on messages and interest cross.
    fn leaf_is_ready(&mut self, id: SessionId) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(leaf) = &mut session.kind.leaf else {
            return;
        };
        let was_ready = std::mem::replace(&mut leaf.phase, Phase::Ready) == Phase::Ready;
        if !was_ready {
            session.awaits_auth = false;
            let ping_at = session.ping_at;
            self.broker.exchange.rearm(id, ping_at);
            let exchange = &mut self.broker.exchange;
            let random = &mut exchange.secrets;
            let seat = exchange.shared.leafs.seats.entry(account);
            let seat = seat.or_insert_with(|| Seat::new(random));
            seat.ready.push(id);
            if let Some(leaf) = &mut exchange.sessions[id.index()].kind.leaf {
                leaf.reconnects = seat.note_known(leaf.known_as());
            }
            self.broker
                .exchange
                .routers
                .of(account)
                .watch(LinkSet::Leafs, true);
            let name = self.broker.exchange.account_name(account);
            let line = format!("Leafnode connection created for account: {name}");
            self.broker.exchange.shared.leafs.lines.push((id, line));
        }
        self.broker.exchange.tell_leaf_all(id);
    }

    /// A link has ended.
    pub(in crate::shard) fn forget_leaf(&mut self, id: SessionId) {
        let session = &self.broker.exchange.sessions[id.index()];
        if session.kind.leaf.is_none() {
            return;
        }
        let account = session.account;
        let Some(seat) = self.broker.exchange.shared.leafs.seats.get_mut(&account) else {
            return;
        };
        seat.ready.retain(|other| *other != id);
        if seat.ready.is_empty() {
            self.broker
                .exchange
                .routers
                .of(account)
                .watch(LinkSet::Leafs, false);
        }
        // It may have been one of several ways to a server.
        self.look_again_at_circles(account);
    }

    /// Another directory says who may come: who would not be let in by it is sent away.
    pub(in crate::shard) fn renew_leafs(&mut self) {
        for id in self.leaf_ids() {
            let session = &self.broker.exchange.sessions[id.index()];
            let Some(leaf) = session.kind.leaf.as_ref().filter(|leaf| leaf.is_ready()) else {
                continue;
            };
            if session.ending.is_some() {
                continue;
            }
            if let Some(remote) = leaf.remote() {
                if self.broker.exchange.access.account_id(&remote.account) != Some(session.account)
                {
                    self.end(id, CloseReason::MissingAccount);
                }
                continue;
            }
            let kind = session.peer.kind;
            let renewed = self.leaf_access().renew(&session.grant, kind);
            if let Some(grant) = &renewed
                && self.refuses_way(id, grant, self.leaf_needs_proxy(grant))
            {
                continue;
            }
            let session = &self.broker.exchange.sessions[id.index()];
            let is_same = renewed.as_ref().is_some_and(|renewed| {
                let (now, before) = (&renewed.rights, &session.grant.rights);
                now.as_ref().map(|rights| rights.told())
                    == before.as_ref().map(|rights| rights.told())
                    && self.account_of(renewed) == Some(session.account)
            });
            match renewed {
                Some(grant) if is_same => {
                    self.follow_account_expiry(id, &grant);
                    self.broker.exchange.sessions[id.index()]
                        .grant
                        .account_expiry = grant.account_expiry;
                }
                // It comes again at once, with what it may do now.
                Some(_) => self.end(id, CloseReason::ServerShutdown),
                None => self.refuse_credentials(id),
            }
        }
    }
}

/// A version as numbers; what cannot be read is the oldest.
fn version(text: &str) -> [u32; 3] {
    let text = text.trim_start_matches('v');
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(text.split(['.', '-'])) {
        *number = part.parse().unwrap_or_default();
    }
    numbers
}
