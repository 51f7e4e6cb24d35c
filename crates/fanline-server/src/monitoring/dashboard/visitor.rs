//! Visitors of the dashboard, and the part of the server that they see.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fanline_engine::Peer;
use fanline_engine::auth::{
    Access, AccountId, Allowed, ConnectionKind, Credentials, Decision, Grant, Permissions, Rights,
    Vouched,
};
use hyper::HeaderMap;
use hyper::header::HOST;

use crate::client::url::split_host_port;
use crate::options::Dashboard;
use crate::shared::Shared;

/// JetStream requests that change nothing. A read-only dashboard may publish only these.
const READING: [&str; 20] = [
    "$JS.API.INFO",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.DIRECT.GET.>",
    "$JS.API.CONSUMER.LIST.*",
    "$JS.API.CONSUMER.NAMES.*",
    "$JS.API.CONSUMER.INFO.*.*",
    "$JS.API.ACCOUNT.INFO",
    "$JS.*.API.INFO",
    "$JS.*.API.STREAM.LIST",
    "$JS.*.API.STREAM.NAMES",
    "$JS.*.API.STREAM.INFO.*",
    "$JS.*.API.STREAM.MSG.GET.*",
    "$JS.*.API.DIRECT.GET.>",
    "$JS.*.API.CONSUMER.LIST.*",
    "$JS.*.API.CONSUMER.NAMES.*",
    "$JS.*.API.CONSUMER.INFO.*.*",
    "$JS.*.API.ACCOUNT.INFO",
];

/// Accounts that every server has: the global one and the system account.
const ACCOUNTS_BUILT_IN: usize = 2;

/// A visitor with access.
pub(super) struct Visitor {
    pub(super) grant: Grant,
    /// The name of the account.
    pub(super) account: String,
    /// Whether the visitor may see the whole server, not only one account.
    pub(super) sees_server: bool,
}

impl Visitor {
    pub(super) fn new(access: &Access, grant: Grant) -> Self {
        let account = access.account(grant.account);
        // Without configured accounts, every visitor may see the whole server.
        let is_alone = access.accounts().len() <= ACCOUNTS_BUILT_IN;
        Visitor {
            account: account.map_or_else(String::new, |account| account.name.clone()),
            sees_server: is_alone || grant.account == AccountId::SYSTEM,
            grant,
        }
    }

    pub(super) fn may_kick(&self, dashboard: Dashboard) -> bool {
        self.sees_server && dashboard == Dashboard::Writable
    }

    /// Returns whether the page may see messages and close connections, not only figures. A visitor with
    /// credentials is trusted. If no credentials are required, a remote visitor is trusted only if the client
    /// listener is not restricted to loopback. A local visitor is trusted only if the page was opened by an
    /// address or as `localhost`, because other host names may belong to foreign pages.
    pub(super) fn is_trusted(
        &self,
        shared: &Shared,
        address: SocketAddr,
        headers: &HeaderMap,
    ) -> bool {
        if self.grant.names_user() {
            return true;
        }
        let is_local = address.ip().to_canonical().is_loopback();
        match is_local {
            true => names_this_host(headers),
            false => !shared.addresses.clients.ip().to_canonical().is_loopback(),
        }
    }
}

/// Returns whether the page was opened by an IP address or as `localhost`. The owner of any other name could
/// let it resolve to this machine.
fn names_this_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let name = split_host_port(&host).map_or("", |(name, _)| name);
    let is_address = name.parse::<IpAddr>().is_ok();
    is_address || name == "localhost" || name.ends_with(".localhost")
}

/// Checks credentials like a shard that has sent this nonce to a WebSocket client.
pub(super) async fn admit(
    shared: &Shared,
    credentials: &Credentials<'_>,
    address: SocketAddr,
    nonce: &str,
) -> Option<Grant> {
    let peer = Peer {
        kind: ConnectionKind::WebSocket,
        ip: address.ip().to_canonical().to_string(),
        nonce: nonce.to_owned(),
        ..Peer::default()
    };
    let mut access = shared.access();
    let mut decision = access.admit(credentials, &peer);
    if let Decision::Later(check) = &decision
        && let Some(account) = check.account_needed()
    {
        // Any shard number works, because afterward the access rules that all threads share contain the
        // account.
        if let Some(found) = shared.common.look_up_account(account.to_owned(), 0) {
            let _ = found.await;
        }
        access = shared.access();
        decision = access.admit(credentials, &peer);
    }
    let grant = match decision {
        Decision::Admitted(grant) => Some(grant),
        Decision::Refused => None,
        Decision::Later(check) => shared.common.auth_pool.perform(check).await.ok().flatten(),
    };
    // Users that must connect through a trusted proxy are refused.
    grant.filter(|grant| !access.needs_proxy(grant))
}

/// Returns the authentication methods that the page offers, the usual method first.
pub(super) fn auth_methods(access: &Access) -> &'static [&'static str] {
    match (access.operators(), access.needs_nonce()) {
        (Some(_), _) => &["key"],
        (None, true) => &["user", "key", "token"],
        (None, false) => &["user", "token"],
    }
}

/// Returns the grant for the page's WebSocket.
pub(super) fn identity_of(grant: Grant, dashboard: Dashboard) -> Box<Vouched> {
    let within = match dashboard {
        Dashboard::Writable => None,
        Dashboard::Off | Dashboard::ReadOnly => Some(Arc::new(Rights::new(&Permissions {
            publish: Allowed::publish(Some(&READING), &[]).expect("they are subjects"),
            ..Permissions::default()
        }))),
    };
    Box::new(Vouched { grant, within })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn read_only_dashboard_may_publish_only_reads() {
        let within = |dashboard| identity_of(Grant::default(), dashboard).within.is_some();
        assert!(within(Dashboard::ReadOnly) && within(Dashboard::Off));
        assert!(!within(Dashboard::Writable));
    }

    #[test]
    fn host_names_that_always_mean_this_machine() {
        for (host, expected) in [
            ("127.0.0.1:8222", true),
            ("127.0.0.1", true),
            ("[::1]:8222", true),
            ("[::1]", true),
            ("localhost:8222", true),
            ("LOCALHOST", true),
            ("a.localhost:1", true),
            ("example.org:8222", false),
            ("127.0.0.1.example.org", false),
            ("localhost.example.org", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            assert_eq!(names_this_host(&headers), expected, "{host}");
        }
    }
}
