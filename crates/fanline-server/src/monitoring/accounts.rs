//! `/accountz` and `/accstatz`: there is one account, which everybody is in.

use std::time::Duration;

use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::connz::ACCOUNT;
use super::query::Query;
use super::subsz::Matching;
use super::{Monitor, collect, now_text};

#[derive(Serialize)]
struct Accountz<'a> {
    server_id: &'a str,
    now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    accounts: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_detail: Option<Detail>,
}

#[derive(Serialize)]
struct Detail {
    account_name: &'static str,
    update_time: String,
    expired: bool,
    complete: bool,
    jetstream_enabled: bool,
    leafnode_connections: usize,
    client_connections: usize,
    subscriptions: usize,
    name_tag: &'static str,
    sublist_stats: Matching,
}

pub(super) async fn accountz(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let account_detail = match query.text("acc") {
        "" => None,
        ACCOUNT => {
            let totals = collect::totals(&monitor.shared).await?;
            Some(Detail {
                account_name: ACCOUNT,
                update_time: monitor.date(Duration::ZERO),
                expired: false,
                complete: true,
                jetstream_enabled: monitor.shared.options().jetstream.is_some(),
                leafnode_connections: 0,
                client_connections: totals.connections,
                subscriptions: totals.subscriptions,
                name_tag: ACCOUNT,
                sublist_stats: Matching::of(&totals),
            })
        }
        other => {
            let problem = format!("Account {other} does not exist");
            return Err(Refusal::BadRequest(problem));
        }
    };
    Ok(Answer::json(&Accountz {
        server_id: monitor.server_id(),
        now: now_text(),
        accounts: account_detail.is_none().then_some([ACCOUNT]),
        account_detail,
    }))
}

#[derive(Serialize)]
struct Accstatz<'a> {
    server_id: &'a str,
    now: String,
    account_statz: Vec<Statistics>,
}

#[derive(Serialize)]
struct Statistics {
    acc: &'static str,
    name: &'static str,
    conns: usize,
    leafnodes: usize,
    total_conns: usize,
    num_subscriptions: usize,
    sent: Flow,
    received: Flow,
    slow_consumers: u64,
}

#[derive(Default, Serialize)]
struct Amount {
    msgs: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Flow {
    msgs: u64,
    bytes: u64,
    gateways: Amount,
    routes: Amount,
    leafs: Amount,
}

impl Flow {
    fn new(msgs: u64, bytes: u64) -> Self {
        Flow {
            msgs,
            bytes,
            gateways: Amount::default(),
            routes: Amount::default(),
            leafs: Amount::default(),
        }
    }
}

pub(super) async fn accstatz(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let with_unused = query.flag("unused")?;
    let totals = collect::totals(&monitor.shared).await?;
    let mut account_statz = Vec::new();
    if totals.connections > 0 || with_unused {
        account_statz.push(Statistics {
            acc: ACCOUNT,
            name: ACCOUNT,
            conns: totals.connections,
            leafnodes: 0,
            total_conns: totals.connections,
            num_subscriptions: totals.subscriptions,
            sent: Flow::new(totals.out_msgs, totals.out_bytes),
            received: Flow::new(totals.in_msgs, totals.in_bytes),
            slow_consumers: totals.slow_consumers,
        });
    }
    Ok(Answer::json(&Accstatz {
        server_id: monitor.server_id(),
        now: now_text(),
        account_statz,
    }))
}
