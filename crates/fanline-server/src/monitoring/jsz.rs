//! `/jsz`: the state of JetStream. Parameters add streams and consumers.

use fanline_engine::jetstream::{AccountOverview, Overview, OverviewWanted, StreamOverview};
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::jetstream::{Config, Limits, Stats};
use super::query::{Query, page};
use super::{Monitor, collect, now_text};

/// Default number of accounts in one response.
const LIMIT_DEFAULT: usize = 1024;

#[derive(Serialize)]
struct Jsz<'a> {
    #[serde(flatten)]
    stats: Stats,
    server_id: &'a str,
    now: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
    config: Config,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    streams: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams_leader: Option<u64>,
    consumers: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumers_leader: Option<u64>,
    messages: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    account_details: Vec<Detail>,
    total: u64,
}

#[derive(Serialize)]
struct Detail {
    name: String,
    id: String,
    #[serde(flatten)]
    stats: Stats,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stream_detail: Vec<StreamOverview>,
}

/// The parameters of a request.
struct Request<'a> {
    /// The name of one account; may be empty.
    account: &'a str,
    /// Whether to list all accounts if `account` is empty.
    details: bool,
    wanted: OverviewWanted,
    leaders: bool,
    offset: usize,
    limit: usize,
}

impl<'a> Request<'a> {
    fn parse(query: &'a Query) -> Result<Self, Refusal> {
        // A single server is the leader of all its streams and consumers. So these parameters have no effect,
        // but must be valid.
        query.flag("leader-only")?;
        query.flag("stream-leader-only")?;
        let wanted = OverviewWanted {
            streams: query.flag("streams")?,
            consumers: query.flag("consumers")?,
            direct_consumers: query.flag("direct-consumers")?,
            config: query.flag("config")?,
        };
        let accounts = query.flag("accounts")?;
        let details = accounts || wanted.streams || wanted.consumers;
        Ok(Request {
            account: query.text("acc"),
            details,
            wanted,
            leaders: query.flag("raft")?,
            offset: query.count("offset")?,
            limit: match query.count("limit")? {
                0 => LIMIT_DEFAULT,
                limit => limit,
            },
        })
    }
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let request = Request::parse(query)?;
    let accounts = collect::jetstream(&monitor.shared, request.wanted).await?;
    let options = &monitor.shared.options().jetstream;
    let jsz = match (options, accounts) {
        (Some(options), Some(accounts)) => {
            let config = Config::of(options, &Overview::sum(&accounts));
            enabled(monitor, &request, (config, Limits::of(options)), accounts)
        }
        _ => disabled(monitor),
    };
    Ok(Answer::json(&jsz))
}

fn disabled(monitor: &Monitor) -> Jsz<'_> {
    Jsz {
        stats: Stats::none(),
        server_id: monitor.server_id(),
        now: now_text(),
        disabled: true,
        config: Config::default(),
        limits: None,
        streams: 0,
        streams_leader: None,
        consumers: 0,
        consumers_leader: None,
        messages: 0,
        bytes: 0,
        account_details: Vec::new(),
        total: 0,
    }
}

fn enabled<'a>(
    monitor: &'a Monitor,
    request: &Request<'_>,
    (config, limits): (Config, Limits),
    mut accounts: Vec<AccountOverview>,
) -> Jsz<'a> {
    let overview = Overview::sum(&accounts);
    let (streams, consumers) = (overview.streams, overview.consumers);
    let jsz = Jsz {
        stats: Stats::of(&overview),
        server_id: monitor.server_id(),
        now: now_text(),
        disabled: false,
        config,
        limits: Some(limits),
        streams,
        streams_leader: request.leaders.then_some(streams),
        consumers,
        consumers_leader: request.leaders.then_some(consumers),
        messages: overview.messages,
        bytes: overview.memory + overview.storage,
        account_details: Vec::new(),
        total: overview.accounts,
    };
    match request.account {
        "" if request.details => {}
        name => accounts.retain(|account| account.name == name),
    }
    let details = page(accounts, request.offset, request.limit).into_iter();
    let details = details.map(|account| Detail {
        stats: Stats::of_account(&account),
        id: account.name.clone(),
        name: account.name,
        stream_detail: account.overview.stream_detail,
    });
    Jsz {
        account_details: details.collect(),
        ..jsz
    }
}
