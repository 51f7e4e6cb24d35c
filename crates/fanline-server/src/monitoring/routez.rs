//! `/routez`: routes to the other servers of the cluster, accepted and dialed.

use std::time::Duration;

use fanline_engine::route::{RouteDetail, RouteStatus};
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::subsz::{Lists, SubscriptionRow};
use super::{Monitor, collect, drift, now_text, time};
use crate::clock::go_text;

#[derive(Serialize)]
struct Routez<'a> {
    server_id: &'a str,
    server_name: &'a str,
    now: String,
    num_routes: usize,
    routes: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interest: Vec<drift::Row>,
}

/// One route.
#[derive(Serialize)]
struct Row {
    rid: u64,
    remote_id: String,
    remote_name: String,
    did_solicit: bool,
    is_configured: bool,
    ip: String,
    port: u16,
    start: String,
    last_activity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<String>,
    uptime: String,
    idle: String,
    pending_size: usize,
    in_msgs: u64,
    out_msgs: u64,
    in_bytes: u64,
    out_bytes: u64,
    subscriptions: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list_detail: Vec<SubscriptionRow>,
    #[serde(skip_serializing_if = "String::is_empty")]
    account: String,
    compression: &'static str,
}

impl Row {
    fn new(monitor: &Monitor, status: RouteStatus, now: Duration, lists: Lists) -> Self {
        let (subjects, details) = lists.rows(status.subscriptions_list);
        Row {
            rid: status.rid,
            remote_id: status.remote_id,
            remote_name: status.remote_name,
            did_solicit: status.did_solicit,
            is_configured: status.is_configured,
            ip: status.ip,
            port: status.port,
            start: monitor.date(status.opened_at),
            last_activity: monitor.date(status.active_at),
            rtt: status.rtt.map(go_text),
            uptime: time::uptime(now.saturating_sub(status.opened_at)),
            idle: time::uptime(now.saturating_sub(status.active_at)),
            pending_size: status.pending_size,
            in_msgs: status.in_msgs,
            out_msgs: status.out_msgs,
            in_bytes: status.in_bytes,
            out_bytes: status.out_bytes,
            subscriptions: status.subscriptions,
            subscriptions_list: subjects,
            subscriptions_list_detail: details,
            account: status.account,
            compression: status.compression,
        }
    }
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let lists = Lists::from_query(query)?;
    let detail = match lists {
        Lists::None => RouteDetail::None,
        _ => RouteDetail::Subscriptions,
    };
    let routes = collect::routes(&monitor.shared, detail).await?;
    let now = monitor.now();
    let rows: Vec<Row> = (routes.into_iter())
        .map(|route| Row::new(monitor, route, now, lists))
        .collect();
    Ok(Answer::json(&Routez {
        server_id: monitor.server_id(),
        server_name: &monitor.shared.info.server_name,
        now: now_text(),
        num_routes: rows.len(),
        routes: rows,
        interest: monitor.route_drift.rows(),
    }))
}
