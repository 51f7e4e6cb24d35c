//! The handshake of a leaf connection, and its admission.

use std::sync::Arc;

use super::accounts::LeafAccount;
use super::{Dialled, LeafSession, Phase, Rules, Side};
use crate::auth::{AccountId, Decision, Grant};
use crate::codec::leaf::{
    InfoRecipient, LeafConnect, LeafError, LeafInfo, PROTOCOL, RETRY_AFTER_CLASH,
    RETRY_AFTER_VERSION, Welcome, info_line,
};
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::remote::LinkSet;
use crate::exchange::session::SessionId;

impl LeafSession<'_> {
    /// Sends the first line of this side: INFO, or CONNECT to a hub.
    pub(crate) fn begin(&mut self) {
        let session = &self.broker.exchange.sessions[self.id.index()];
        if let Side::Dialling(_) = self.state().side {
            self.send_connect();
        } else if !session.peer.is_greeted {
            let line = self.broker.leaf_greeting(session.cid, &session.peer);
            self.broker.exchange.send(self.id, &line);
        }
    }

    /// Sends CONNECT to a hub.
    fn send_connect(&mut self) {
        let leaf = self.state();
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
            return self
                .refuse_lastingly(&LeafError::SameCluster, CloseReason::ClusterNamesIdentical);
        }
        let Some(account_id) = self.broker.exchange.access.account_id(&account) else {
            let error = LeafError::UnknownAccount(account);
            return self.refuse_lastingly(&error, CloseReason::MissingAccount);
        };
        self.broker.exchange.routers.ensure(account_id);
        self.session_mut().account = account_id;
        self.broker.exchange.send(self.id, &connect.line());
        if !awaits_welcome {
            self.finish_dialling(None);
        }
    }

    /// Closes a connection for a lasting reason, so that the remote is dialed again after a longer delay.
    fn refuse_lastingly(&mut self, error: &LeafError, reason: CloseReason) {
        self.state_mut().retry_after = Some(match error {
            LeafError::Version(_) => RETRY_AFTER_VERSION,
            _ => RETRY_AFTER_CLASH,
        });
        self.refuse(error, reason);
    }

    /// Handles INFO.
    pub(crate) fn info(&mut self, json: &[u8]) {
        let Some(info) = LeafInfo::parse(json) else {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        };
        let leaf = self.state_mut();
        if let Side::Listening = leaf.side {
            // A server that dials sends its properties in CONNECT, and its INFO is ignored.
            return;
        }
        if !info.leafnode_urls.is_empty() {
            leaf.urls.clone_from(&info.leafnode_urls);
        }
        // Any other INFO only announces URLs.
        let has_rules = info.import.is_some() || info.export.is_some();
        if info.connect_info || (leaf.is_ready() && has_rules) {
            self.finish_dialling(Some(info));
        }
    }

    /// Completes the handshake with a hub, or applies permissions that the hub has changed.
    fn finish_dialling(&mut self, welcome: Option<LeafInfo>) {
        if !self.state().is_ready() && self.refuse_over_limit(self.session().account) {
            return;
        }
        let has_jetstream = self.broker.exchange.info.jetstream;
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.takes_headers = self.broker.exchange.info.headers;
        let leaf = session.kind.expect_leaf_mut();
        let Side::Dialling(dialled) = &leaf.side else {
            return;
        };
        let hub = &dialled.info;
        let remote = Arc::clone(&dialled.remote);
        let (name, cluster) = (hub.server_name.clone(), hub.cluster.clone());
        session.takes_headers &= hub.headers;
        let takes_traces = hub.proto >= u64::from(PROTOCOL);
        let mut rules = Rules::default();
        rules.deny(&remote.deny_imports, &remote.deny_exports);
        if has_jetstream
            && hub.jetstream
            && self
                .broker
                .exchange
                .access
                .separates_jetstream(session.account)
        {
            rules.separate_jetstream();
        }
        if let Some(welcome) = &welcome {
            let applied = rules.apply_announced(welcome.export.as_ref(), welcome.import.as_ref());
            if applied.is_err() {
                return self.broker.end(self.id, CloseReason::ProtocolViolation);
            }
            leaf.remote_account.clone_from(&welcome.remote_account);
        }
        if leaf.urls.is_empty() {
            leaf.urls.clone_from(&hub.leafnode_urls);
        }
        (leaf.name, leaf.cluster) = (name, cluster.into());
        leaf.takes_traces = takes_traces;
        leaf.isolates = remote.isolates;
        leaf.rules = rules;
        self.become_ready();
    }

    /// Handles CONNECT.
    pub(crate) fn connect(&mut self, json: &[u8]) {
        let is_awaited = self.session().awaits_auth;
        if !is_awaited || !matches!(self.state().side, Side::Listening) {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        let Some(connect) = LeafConnect::parse(json) else {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        };
        if let Err((error, reason)) = self.examine(&connect) {
            return self.refuse(&error, reason);
        }
        let listener = self.broker.leaf_listener();
        let session = &mut self.broker.exchange.sessions[self.id.index()];
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
        let leaf = session.kind.expect_leaf_mut();
        leaf.name = connect.name;
        leaf.cluster = connect.cluster.into();
        leaf.remote_account = connect.remote_account;
        leaf.takes_traces = connect.protocol >= PROTOCOL;
        leaf.is_remote_hub = connect.is_hub;
        leaf.isolates = connect.isolate || listener.isolates;
        leaf.rules.deny(&[], &connect.deny_pub);
        leaf.has_jetstream = connect.jetstream;
        if !self.any().comes_through_trusted_proxy() {
            return self.any().refuse_proxy();
        }
        match self.any().decide() {
            Decision::Admitted(grant) => self.admit(grant),
            Decision::Refused => self.any().refuse_credentials(),
            Decision::Later(check) => self.session_mut().check = Some(check),
        }
    }

    /// Checks that the peer is a leaf node, and that its version and cluster are acceptable.
    fn examine(&self, connect: &LeafConnect) -> Result<(), (LeafError, CloseReason)> {
        if !connect.lang.is_empty() {
            return Err((LeafError::Client, CloseReason::WrongPort));
        }
        if !connect.gateway.is_empty() {
            let error = LeafError::Gateway(connect.gateway.clone());
            return Err((error, CloseReason::WrongPort));
        }
        let listener = self.broker.leaf_listener();
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
        // A leaf node without a cluster sends its server's name, which it may share with a hub without a cluster.
        if self.broker.exchange.info.cluster.as_deref() == Some(&connect.cluster) {
            let error = LeafError::SameCluster;
            return Err((error, CloseReason::ClusterNamesIdentical));
        }
        Ok(())
    }

    pub(crate) fn admit(&mut self, grant: Grant) {
        if self.refuse_without_proxy_if_required(&grant) {
            return;
        }
        let Some(account) = self.account_of(&grant) else {
            return self.any().refuse_credentials();
        };
        if self.refuse_over_limit(account) {
            return;
        }
        self.broker.exchange.routers.ensure(account);
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.account = account;
        session.has_connected = true;
        let mut welcome = Welcome::default();
        let leaf = session.kind.expect_leaf_mut();
        if leaf.has_jetstream
            && self.broker.exchange.info.jetstream
            && self.broker.exchange.access.separates_jetstream(account)
        {
            leaf.rules.separate_jetstream();
        }
        if let Some(rights) = &grant.rights {
            leaf.rules.grant(Arc::clone(rights));
            let [publish, subscribe] = rights.lists();
            (welcome.export, welcome.import) = (Some(publish.into()), Some(subscribe.into()));
        }
        let expires_in = grant.expires_in;
        self.any().follow_account_expiry(&grant);
        self.session_mut().grant = grant;
        self.end_older();
        let name = self.broker.exchange.account_name(account);
        welcome.account = &name;
        let session = &self.broker.exchange.sessions[self.id.index()];
        let recipient = InfoRecipient {
            client_id: session.cid,
            nonce: "",
            needs_auth: self.broker.leaf_access().is_required(),
            welcome: Some(welcome),
        };
        let line = info_line(
            &self.broker.exchange.info,
            &self.broker.leaf_listener().port(),
            &recipient,
        );
        self.broker.exchange.send(self.id, &line);
        self.become_ready();
        self.any().expire_in(expires_in);
    }

    /// Refuses the server if its account has as many leaf connections to the servers of the cluster as it may have.
    /// Returns whether it refused the server.
    fn refuse_over_limit(&mut self, account: AccountId) -> bool {
        let own = self.broker.exchange.shared.leafs.accounts.get(&account);
        let own = own.map_or(0, |in_account| in_account.ready.len());
        let refuses = !self.broker.exchange.quotas.allow_leafnode(account, own);
        if refuses {
            let error = Some(ClientError::AccountConnectionsExceeded);
            let reason = CloseReason::MaximumAccountConnectionsExceeded;
            self.broker.refuse(self.id, error, reason);
        }
        refuses
    }

    /// Returns whether a grant requires a proxy.
    fn needs_proxy(&self, grant: &Grant) -> bool {
        self.broker.leaf_listener().needs_proxy || self.broker.leaf_access().needs_proxy(grant)
    }

    /// Returns the account of an admitted server.
    fn account_of(&self, grant: &Grant) -> Option<AccountId> {
        let listener = self.broker.leaf_listener();
        let name = match (&listener.access, &listener.account) {
            _ if !grant.names_user() => listener.account.as_deref(),
            (Some(own), _) => own.account(grant.account).map(|own| own.name.as_str()),
            (None, _) => return Some(grant.account),
        };
        name.map_or(Some(AccountId::GLOBAL), |name| {
            self.broker.exchange.access.account_id(name)
        })
    }

    /// Closes older connections of the same server: those with the same name, cluster, and remote account.
    fn end_older(&mut self) {
        let account = self.session().account;
        let leaf = self.state();
        let is_same = |other: &SessionId| {
            let other = self.broker.exchange.sessions[other.index()].kind.leaf();
            other.is_some_and(|other| {
                matches!(other.side, Side::Listening)
                    && !leaf.name.is_empty()
                    && (&other.name, &other.cluster, &other.remote_account)
                        == (&leaf.name, &leaf.cluster, &leaf.remote_account)
            })
        };
        let in_account = self.broker.exchange.shared.leafs.accounts.get(&account);
        let older: Vec<SessionId> = in_account
            .into_iter()
            .flat_map(|in_account| in_account.ready.iter().copied())
            .filter(|other| *other != self.id && is_same(other))
            .collect();
        for other in older {
            let reason = CloseReason::DuplicateRemoteLeafnode;
            (self.broker.leaf(other)).refuse(&LeafError::Duplicate, reason);
        }
    }

    /// Begins to exchange messages and interest.
    fn become_ready(&mut self) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let account = session.account;
        let leaf = session.kind.expect_leaf_mut();
        let was_ready = std::mem::replace(&mut leaf.phase, Phase::Ready) == Phase::Ready;
        if !was_ready {
            session.awaits_auth = false;
            let ping_at = session.pings.next_at;
            self.broker.exchange.rearm(self.id, ping_at);
            let exchange = &mut self.broker.exchange;
            exchange.count_leafnode(self.id);
            let random = &mut exchange.secrets;
            let in_account = exchange.shared.leafs.accounts.entry(account);
            let in_account = in_account.or_insert_with(|| LeafAccount::new(random));
            in_account.ready.push(self.id);
            let leaf = exchange.sessions[self.id.index()].kind.expect_leaf_mut();
            leaf.reconnects = in_account.count_connection(leaf.key());
            self.broker
                .exchange
                .routers
                .of(account)
                .watch(LinkSet::Leafs, true);
            let name = self.broker.exchange.account_name(account);
            let line = format!("Leafnode connection created for account: {name}");
            self.broker
                .exchange
                .shared
                .leafs
                .log_lines
                .push((self.id, line));
        }
        self.broker.exchange.announce_all_to_leaf(self.id);
    }

    /// Handles that the connection is about to be closed.
    pub(crate) fn leave(&mut self) {
        let account = self.session().account;
        let Some(in_account) = self.broker.exchange.shared.leafs.accounts.get_mut(&account) else {
            return;
        };
        in_account.ready.retain(|other| *other != self.id);
        if in_account.ready.is_empty() {
            self.broker
                .exchange
                .routers
                .of(account)
                .watch(LinkSet::Leafs, false);
        }
        // The closed connection may have been one of several paths to a server.
        self.broker.check_paused_connections(account);
    }

    /// Applies reloaded users and accounts. Closes the connection if the new configuration does not admit the
    /// other server.
    pub(crate) fn renew(&mut self) {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let leaf = session.kind.expect_leaf();
        if !leaf.is_ready() || session.ending.is_some() {
            return;
        }
        if let Some(remote) = leaf.remote() {
            let account = self.broker.exchange.access.account_id(&remote.account);
            if account != Some(session.account) {
                self.broker.end(self.id, CloseReason::MissingAccount);
            }
            return;
        }
        let kind = session.peer.kind;
        let renewed = self.broker.leaf_access().renew(&session.grant, kind);
        if let Some(grant) = &renewed
            && self.refuse_without_proxy_if_required(grant)
        {
            return;
        }
        let session = &self.broker.exchange.sessions[self.id.index()];
        let is_same = renewed.as_ref().is_some_and(|renewed| {
            let (now, before) = (&renewed.rights, &session.grant.rights);
            now.as_ref().map(|rights| rights.lists())
                == before.as_ref().map(|rights| rights.lists())
                && self.account_of(renewed) == Some(session.account)
        });
        match renewed {
            Some(grant) if is_same => {
                self.any().follow_account_expiry(&grant);
                let session = &mut self.broker.exchange.sessions[self.id.index()];
                session.grant.account_expiry = grant.account_expiry;
            }
            // The server reconnects at once, and receives its new permissions.
            Some(_) => self.broker.end(self.id, CloseReason::ServerShutdown),
            None => self.any().refuse_credentials(),
        }
    }

    /// Refuses a server that does not come through a required proxy. Returns whether it refused the server.
    fn refuse_without_proxy_if_required(&mut self, grant: &Grant) -> bool {
        let needs_proxy = self.needs_proxy(grant);
        self.any()
            .refuse_without_proxy_if_required(grant, needs_proxy)
    }
}

/// Parses a version. A part that is not a number is 0.
fn version(text: &str) -> [u32; 3] {
    let text = text.trim_start_matches('v');
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(text.split(['.', '-'])) {
        *number = part.parse().unwrap_or_default();
    }
    numbers
}
