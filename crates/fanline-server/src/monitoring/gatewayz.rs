//! `/gatewayz`: connections to other clusters, dialed and accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use fanline_engine::gateway::{GatewayAccount, GatewayMode, GatewayStatus};
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::{Monitor, collect, drift, now_text, time};
use crate::clock::go_text;

/// Number of subjects without interest after which nats-server announces all interest in an account.
const INTEREST_ONLY_THRESHOLD: usize = 1000;

#[derive(Serialize)]
struct Gatewayz<'a> {
    server_id: &'a str,
    now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    outbound_gateways: BTreeMap<String, Row>,
    inbound_gateways: BTreeMap<String, Vec<Row>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interest: Vec<drift::Row>,
}

/// One connection.
#[derive(Serialize)]
struct Row {
    configured: bool,
    connection: Connection,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accounts: Vec<Account>,
}

#[derive(Serialize)]
struct Connection {
    cid: u64,
    kind: &'static str,
    ip: String,
    port: u16,
    start: String,
    last_activity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<String>,
    uptime: String,
    idle: String,
    pending_bytes: usize,
    in_msgs: u64,
    out_msgs: u64,
    in_bytes: u64,
    out_bytes: u64,
    subscriptions: usize,
    name: String,
}

#[derive(Serialize)]
struct Account {
    name: String,
    interest_mode: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    no_interest_count: usize,
    interest_only_threshold: usize,
    #[serde(skip_serializing_if = "is_zero")]
    num_subs: usize,
    #[serde(skip_serializing_if = "is_zero")]
    num_queue_subs: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<String>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl Account {
    fn new(account: GatewayAccount) -> Self {
        Account {
            name: account.name,
            interest_mode: match account.mode {
                GatewayMode::Optimistic => "Optimistic",
                GatewayMode::Transitioning => "Transitioning",
                GatewayMode::InterestOnly => "Interest-Only",
            },
            no_interest_count: account.refused,
            interest_only_threshold: INTEREST_ONLY_THRESHOLD,
            num_subs: account.subs,
            num_queue_subs: account.queue_subs,
            subscriptions_list: account
                .filters
                .into_iter()
                .map(|(filter, _)| filter)
                .collect(),
        }
    }
}

/// What a request selects.
struct Selection {
    gateway: Option<String>,
    account: Option<String>,
    with_accounts: bool,
}

impl Selection {
    fn row(&self, monitor: &Monitor, status: GatewayStatus, now: Duration) -> Row {
        let is_selected = |account: &GatewayAccount| {
            let wanted = self.account.as_ref();
            self.with_accounts && wanted.is_none_or(|wanted| *wanted == account.name)
        };
        Row {
            configured: status.is_configured && status.is_dialed,
            connection: Connection {
                cid: status.cid,
                kind: "Gateway",
                ip: status.ip,
                port: status.port,
                start: monitor.date(status.opened_at),
                last_activity: monitor.date(status.active_at),
                rtt: status.rtt.map(go_text),
                uptime: time::uptime(now.saturating_sub(status.opened_at)),
                idle: time::uptime(now.saturating_sub(status.active_at)),
                pending_bytes: status.pending_size,
                in_msgs: status.in_msgs,
                out_msgs: status.out_msgs,
                in_bytes: status.in_bytes,
                out_bytes: status.out_bytes,
                subscriptions: status.subscriptions,
                name: status.name,
            },
            accounts: status
                .accounts
                .into_iter()
                .filter(is_selected)
                .map(Account::new)
                .collect(),
        }
    }
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let with_filters = query.flag("subs")?;
    let named = |key: &str| Some(query.text(key).to_owned()).filter(|name| !name.is_empty());
    let account = named("acc_name");
    let selection = Selection {
        with_accounts: account.is_some() || query.flag("accs")?,
        gateway: named("gw_name"),
        account,
    };
    let all = collect::gateways(&monitor.shared, with_filters).await?;
    let now = monitor.now();
    let options = monitor.shared.options();
    let gateway = options.gateway.as_ref();
    let port = monitor.shared.addresses.gateway.map(|own| own.port());
    let mut page = Gatewayz {
        server_id: monitor.server_id(),
        now: now_text(),
        name: gateway.map(|own| own.name.clone()),
        host: gateway.map(|own| own.host.clone()),
        port,
        outbound_gateways: BTreeMap::new(),
        inbound_gateways: BTreeMap::new(),
        interest: monitor.gateway_drift.rows(),
    };
    if let Some(wanted) = &selection.gateway {
        page.interest
            .retain(|row| row.gateway.as_ref() == Some(wanted));
    }
    for status in all {
        let name = status.gateway.clone();
        if selection
            .gateway
            .as_ref()
            .is_some_and(|wanted| *wanted != name)
        {
            continue;
        }
        let is_dialed = status.is_dialed;
        let row = selection.row(monitor, status, now);
        match is_dialed {
            true => drop(page.outbound_gateways.insert(name, row)),
            false => page.inbound_gateways.entry(name).or_default().push(row),
        }
    }
    Ok(Answer::json(&page))
}
