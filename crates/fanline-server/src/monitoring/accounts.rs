//! `/accountz` and `/accstatz`: the accounts, and what their clients do.

use std::collections::BTreeSet;
use std::time::Duration;

use fanline_engine::access::SYSTEM_ACCOUNT;
use fanline_engine::jetstream::OverviewWanted;
use fanline_engine::{AccountId, ShardStatus};
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
    accounts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_detail: Option<Detail>,
}

#[derive(Serialize)]
struct Detail {
    account_name: String,
    update_time: String,
    expired: bool,
    complete: bool,
    jetstream_enabled: bool,
    leafnode_connections: usize,
    client_connections: usize,
    subscriptions: usize,
    name_tag: String,
    sublist_stats: Matching,
}

pub(super) async fn accountz(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let account_detail = match query.text("acc") {
        "" => None,
        name => match monitor.totals_of(name).await? {
            Some(totals) => Some(detail(monitor, name, &totals).await?),
            None => {
                let problem = format!("Account {name} does not exist");
                return Err(Refusal::BadRequest(problem));
            }
        },
    };
    Ok(Answer::json(&Accountz {
        server_id: monitor.server_id(),
        now: now_text(),
        accounts: account_detail.is_none().then(|| monitor.account_names()),
        account_detail,
    }))
}

async fn detail(monitor: &Monitor, name: &str, totals: &ShardStatus) -> Result<Detail, Refusal> {
    let jetstream = collect::jetstream(&monitor.shared, OverviewWanted::default()).await?;
    let has_jetstream = jetstream.is_some_and(|all| {
        // What an account keeps is known from its first request on; `$G` may have it from the start.
        name == ACCOUNT || all.iter().any(|account| account.name == name)
    });
    Ok(Detail {
        account_name: name.into(),
        update_time: monitor.date(Duration::ZERO),
        expired: false,
        complete: true,
        jetstream_enabled: has_jetstream,
        leafnode_connections: 0,
        client_connections: totals.connections,
        subscriptions: totals.subscriptions,
        name_tag: name.into(),
        sublist_stats: Matching::of(totals),
    })
}

#[derive(Serialize)]
struct Accstatz<'a> {
    server_id: &'a str,
    now: String,
    account_statz: Vec<Statistics>,
}

#[derive(Serialize)]
struct Statistics {
    acc: String,
    name: String,
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
    let all = collect::totals_by_account(&monitor.shared).await?;
    let names = monitor.account_names().into_iter().enumerate();
    let account_statz = names.filter_map(|(at, name)| {
        let totals = all.get(at).copied().unwrap_or_default();
        let is_told = totals.connections > 0 || with_unused;
        is_told.then(|| Statistics {
            acc: name.clone(),
            name,
            conns: totals.connections,
            leafnodes: 0,
            total_conns: totals.connections,
            num_subscriptions: totals.subscriptions,
            sent: Flow::new(totals.out_msgs, totals.out_bytes),
            received: Flow::new(totals.in_msgs, totals.in_bytes),
            slow_consumers: totals.slow_consumers,
        })
    });
    let account_statz = account_statz.collect();
    Ok(Answer::json(&Accstatz {
        server_id: monitor.server_id(),
        now: now_text(),
        account_statz,
    }))
}

impl Monitor {
    /// The accounts in the order of their ids.
    pub(super) fn account_names(&self) -> Vec<String> {
        vec![ACCOUNT.into(), SYSTEM_ACCOUNT.into()]
    }

    /// What an account is called.
    pub(super) fn account_name(&self, account: AccountId) -> String {
        let name = self.account_names().into_iter().nth(account.index());
        name.unwrap_or_default()
    }

    /// Counts of one account; `None` when there is none of this name.
    pub(super) async fn totals_of(&self, name: &str) -> Result<Option<ShardStatus>, Refusal> {
        let Some(at) = self.account_names().iter().position(|known| known == name) else {
            return Ok(None);
        };
        let all = collect::totals_by_account(&self.shared).await?;
        Ok(Some(all.get(at).copied().unwrap_or_default()))
    }

    /// Accounts that somebody is connected to.
    pub(super) async fn used_accounts(&self) -> Result<BTreeSet<String>, Refusal> {
        let all = collect::totals_by_account(&self.shared).await?;
        let named = self.account_names().into_iter().zip(all);
        let used = named.filter(|(_, totals)| totals.connections > 0);
        Ok(used.map(|(name, _)| name).collect())
    }
}
