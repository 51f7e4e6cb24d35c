//! `/jsz`: JetStream, with its streams and consumers if they are asked for.

use fanline_engine::jetstream::{Overview, OverviewWanted, StreamOverview};
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::connz::ACCOUNT;
use super::jetstream::{Config, Limits, Stats};
use super::query::{Query, page};
use super::{Monitor, collect, now_text};

/// Accounts of one answer when nobody says how many.
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
    name: &'static str,
    id: &'static str,
    #[serde(flatten)]
    stats: Stats,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stream_detail: Vec<StreamOverview>,
}

/// What is asked for.
struct Asked {
    account: bool,
    wanted: OverviewWanted,
    leaders: bool,
    offset: usize,
    limit: usize,
}

impl Asked {
    fn parse(query: &Query) -> Result<Self, Refusal> {
        // One server is the leader of all that it has, so these make no difference but must be right.
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
        let name = query.text("acc");
        Ok(Asked {
            account: name == ACCOUNT || details && name.is_empty(),
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
    let asked = Asked::parse(query)?;
    let overview = collect::jetstream(&monitor.shared, asked.wanted).await?;
    let options = &monitor.shared.options().jetstream;
    let jsz = match (options, overview) {
        (Some(options), Some(overview)) => {
            let config = Config::of(options, &overview);
            enabled(monitor, &asked, config, overview)
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

fn enabled<'a>(monitor: &'a Monitor, asked: &Asked, config: Config, overview: Overview) -> Jsz<'a> {
    let mut details = Vec::new();
    let (streams, consumers) = (overview.streams, overview.consumers);
    let jsz = Jsz {
        stats: Stats::of(&overview),
        server_id: monitor.server_id(),
        now: now_text(),
        disabled: false,
        config,
        limits: Some(Limits {}),
        streams,
        streams_leader: asked.leaders.then_some(streams),
        consumers,
        consumers_leader: asked.leaders.then_some(consumers),
        messages: overview.messages,
        bytes: overview.memory + overview.storage,
        account_details: Vec::new(),
        total: 1,
    };
    if asked.account {
        details.push(Detail {
            name: ACCOUNT,
            id: ACCOUNT,
            stats: Stats::of_account(&overview),
            stream_detail: overview.stream_detail,
        });
    }
    Jsz {
        account_details: page(details, asked.offset, asked.limit),
        ..jsz
    }
}
