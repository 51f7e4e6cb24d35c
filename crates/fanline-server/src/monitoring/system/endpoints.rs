//! What can be asked of the system account: one subject, one entry.

use super::super::Endpoint;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// What monitoring tells under this name, with options in the words of JSON.
    Page(&'static Page),
    /// Who answers.
    Idz,
    /// The counts that are told every ten seconds.
    Statsz,
    /// Nothing that this server has, which is told as an empty object.
    Nothing,
    /// A Go program's profile, which there is none of.
    Profilez,
    /// The memory of the process.
    Expvarz,
    /// Close a connection.
    Kick,
    /// Tell a client to go elsewhere.
    LameDuck,
    /// Read the configuration again.
    Reload,
    /// The connections of an account, as an event.
    AccountConnections,
    /// Counts of an account.
    AccountStatz,
    /// An account as it is set up.
    AccountInfo,
    /// The streams of an account.
    AccountJsz,
    /// Who asks, and what he may do.
    UserInfo,
    /// How many subscriptions there are to a subject.
    Subscribers,
}

/// An endpoint of monitoring, with the names that its options have in JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) endpoint: Endpoint,
    /// Name in JSON, name in a query.
    pub(super) options: &'static [(&'static str, &'static str)],
}

const PLAIN: &[(&str, &str)] = &[];

/// The endpoints by name.
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
    ("ROUTEZ", page(Endpoint::Routez, PLAIN)),
    ("GATEWAYZ", page(Endpoint::Gatewayz, PLAIN)),
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

/// Everything that can be asked of the server with this id, by subject.
pub(super) fn subjects(id: &str) -> Vec<(String, Asked)> {
    let mut all = vec![
        ("$SYS.REQ.SERVER.PING".to_owned(), Asked::Statsz),
        ("$SYS.REQ.USER.*.INFO".to_owned(), Asked::UserInfo),
        ("$SYS.DEBUG.SUBSCRIBERS".to_owned(), Asked::Subscribers),
    ];
    for (name, asked) in of_all() {
        all.push((format!("$SYS.REQ.SERVER.PING.{name}"), asked));
        all.push((format!("$SYS.REQ.SERVER.{id}.{name}"), asked));
    }
    for (name, asked) in of_one() {
        all.push((format!("$SYS.REQ.SERVER.{id}.{name}"), asked));
    }
    for (name, asked) in of_account() {
        all.push((format!("$SYS.REQ.ACCOUNT.*.{name}"), asked));
    }
    all
}

/// What every server answers, asked by `PING` or by its id.
pub(super) fn of_all() -> impl Iterator<Item = (&'static str, Asked)> {
    let pages = PAGE_LIST
        .iter()
        .map(|(name, page)| (*name, Asked::Page(page)));
    pages.chain([
        ("IDZ", Asked::Idz),
        ("STATSZ", Asked::Statsz),
        ("PROFILEZ", Asked::Profilez),
        ("EXPVARZ", Asked::Expvarz),
        ("IPQUEUESZ", Asked::Nothing),
        ("RAFTZ", Asked::Nothing),
    ])
}

/// What one server is told to do, by its id.
fn of_one() -> [(&'static str, Asked); 3] {
    [
        ("KICK", Asked::Kick),
        ("LDM", Asked::LameDuck),
        ("RELOAD", Asked::Reload),
    ]
}

/// What is asked of an account.
fn of_account() -> impl Iterator<Item = (&'static str, Asked)> {
    let pages = PAGE_LIST
        .iter()
        .filter(|(name, _)| matches!(*name, "SUBSZ" | "CONNZ" | "LEAFZ"));
    let pages = pages.map(|(name, page)| (*name, Asked::Page(page)));
    pages.chain([
        ("JSZ", Asked::AccountJsz),
        ("INFO", Asked::AccountInfo),
        ("STATZ", Asked::AccountStatz),
        ("CONNS", Asked::AccountConnections),
    ])
}
