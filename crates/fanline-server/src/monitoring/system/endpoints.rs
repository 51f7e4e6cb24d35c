//! The table of requests of the system account.

use super::super::Endpoint;

/// A request in the system account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The data of a monitoring endpoint. The body has the options in JSON.
    Page(&'static Page),
    /// The server's identity.
    Idz,
    /// The counters that are published every ten seconds.
    Statsz,
    /// An unsupported feature, answered with an empty object.
    Nothing,
    /// A profile of a Go program. It is not available here.
    Profilez,
    /// The process's memory.
    Expvarz,
    /// Closes a connection.
    Kick,
    /// Asks a client to reconnect elsewhere.
    LameDuck,
    /// Reloads the configuration.
    Reload,
    /// An account's connection count, as an event.
    AccountConnections,
    /// An account's counters.
    AccountStatz,
    /// An account's configuration.
    AccountInfo,
    /// An account's streams.
    AccountJsz,
    /// The requester's user and permissions.
    UserInfo,
    /// The number of subscriptions to a subject, on all servers.
    Subscribers,
    /// The same on this server, for another one.
    OwnSubscribers,
}

/// A monitoring endpoint, with the names of its options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) endpoint: Endpoint,
    /// The name of each option in JSON, and its name in an HTTP query.
    pub(super) options: &'static [(&'static str, &'static str)],
}

/// Subject of [`Operation::OwnSubscribers`].
pub(super) const OWN_SUBSCRIBERS: &str = "$SYS.REQ.ACCOUNT.NSUBS";

const PLAIN: &[(&str, &str)] = &[];

/// Endpoints by name.
const PAGE_LIST: &[(&str, Page)] = &[
    ("VARZ", page(Endpoint::Varz, PLAIN)),
    (
        "CONNZ",
        page(
            Endpoint::Connz,
            &[
                ("offset", "offset"),
                ("limit", "limit"),
                ("sort", "sort"),
                ("auth", "auth"),
                ("subscriptions", "subs"),
                ("subscriptions_detail", "subs_detail"),
                ("cid", "cid"),
                ("mqtt_client", "mqtt_client"),
                ("state", "state"),
                ("user", "user"),
                ("acc", "acc"),
                ("filter_subject", "filter_subject"),
            ],
        ),
    ),
    (
        "SUBSZ",
        page(
            Endpoint::Subsz,
            &[
                ("offset", "offset"),
                ("limit", "limit"),
                ("subscriptions", "subs"),
                ("account", "acc"),
                ("test", "test"),
            ],
        ),
    ),
    (
        "ROUTEZ",
        page(
            Endpoint::Routez,
            &[
                ("subscriptions", "subs"),
                ("subscriptions_detail", "subs_detail"),
            ],
        ),
    ),
    (
        "GATEWAYZ",
        page(
            Endpoint::Gatewayz,
            &[
                ("name", "gw_name"),
                ("accounts", "accs"),
                ("account_name", "acc_name"),
                ("subscriptions", "subs"),
            ],
        ),
    ),
    ("LEAFZ", page(Endpoint::Leafz, &[("account", "acc")])),
    ("ACCOUNTZ", page(Endpoint::Accountz, &[("account", "acc")])),
    (
        "JSZ",
        page(
            Endpoint::Jsz,
            &[
                ("offset", "offset"),
                ("limit", "limit"),
                ("account", "acc"),
                ("accounts", "accounts"),
                ("streams", "streams"),
                ("consumer", "consumers"),
                ("direct_consumer", "direct-consumers"),
                ("config", "config"),
                ("leader_only", "leader-only"),
                ("stream_leader_only", "stream-leader-only"),
                ("raft", "raft"),
            ],
        ),
    ),
    (
        "HEALTHZ",
        page(
            Endpoint::Healthz,
            &[
                ("js-enabled", "js-enabled"),
                ("js-enabled-only", "js-enabled-only"),
                ("js-server-only", "js-server-only"),
                ("js-meta-only", "js-meta-only"),
                ("account", "account"),
                ("stream", "stream"),
                ("consumer", "consumer"),
                ("details", "details"),
            ],
        ),
    ),
];

const fn page(endpoint: Endpoint, options: &'static [(&'static str, &'static str)]) -> Page {
    Page { endpoint, options }
}

/// Returns all subjects of the server with this id.
pub(super) fn subjects(id: &str) -> Vec<(String, Operation)> {
    let mut all = vec![
        ("$SYS.REQ.SERVER.PING".to_owned(), Operation::Statsz),
        ("$SYS.REQ.USER.*.INFO".to_owned(), Operation::UserInfo),
        ("$SYS.DEBUG.SUBSCRIBERS".to_owned(), Operation::Subscribers),
        (OWN_SUBSCRIBERS.to_owned(), Operation::OwnSubscribers),
    ];
    for (name, operation) in of_all() {
        all.push((format!("$SYS.REQ.SERVER.PING.{name}"), operation));
        all.push((format!("$SYS.REQ.SERVER.{id}.{name}"), operation));
    }
    for (name, operation) in of_one() {
        all.push((format!("$SYS.REQ.SERVER.{id}.{name}"), operation));
    }
    for (name, operation) in of_account() {
        all.push((format!("$SYS.REQ.ACCOUNT.*.{name}"), operation));
    }
    all
}

/// Returns the requests that every server answers, by `PING` or by its id.
pub(super) fn of_all() -> impl Iterator<Item = (&'static str, Operation)> {
    let pages = PAGE_LIST
        .iter()
        .map(|(name, page)| (*name, Operation::Page(page)));
    pages.chain([
        ("IDZ", Operation::Idz),
        ("STATSZ", Operation::Statsz),
        ("PROFILEZ", Operation::Profilez),
        ("EXPVARZ", Operation::Expvarz),
        ("IPQUEUESZ", Operation::Nothing),
        ("RAFTZ", Operation::Nothing),
    ])
}

/// Returns the requests for one server, by its id.
fn of_one() -> [(&'static str, Operation); 3] {
    [
        ("KICK", Operation::Kick),
        ("LDM", Operation::LameDuck),
        ("RELOAD", Operation::Reload),
    ]
}

/// Returns the requests about an account.
fn of_account() -> impl Iterator<Item = (&'static str, Operation)> {
    let pages = PAGE_LIST
        .iter()
        .filter(|(name, _)| matches!(*name, "SUBSZ" | "CONNZ" | "LEAFZ"));
    let pages = pages.map(|(name, page)| (*name, Operation::Page(page)));
    pages.chain([
        ("JSZ", Operation::AccountJsz),
        ("INFO", Operation::AccountInfo),
        ("STATZ", Operation::AccountStatz),
        ("CONNS", Operation::AccountConnections),
    ])
}
