//! `/leafz`: leaf connections of this server, accepted and dialed.

use fanline_engine::leaf::LeafStatus;
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::{Monitor, collect, now_text};
use crate::clock::go_text;

#[derive(Serialize)]
struct Leafz<'a> {
    server_id: &'a str,
    now: String,
    leafnodes: usize,
    leafs: Vec<Row>,
}

/// One connection.
#[derive(Serialize)]
struct Row {
    id: u64,
    name: String,
    is_spoke: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_isolated: bool,
    account: String,
    ip: String,
    port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<String>,
    in_msgs: u64,
    out_msgs: u64,
    in_bytes: u64,
    out_bytes: u64,
    subscriptions: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<String>,
    compression: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    websocket: bool,
    /// Number of earlier connections of the remote. Only Fanline has this field.
    #[serde(skip_serializing_if = "is_none")]
    reconnects: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl From<LeafStatus> for Row {
    fn from(status: LeafStatus) -> Self {
        Row {
            id: status.id,
            name: status.name,
            is_spoke: status.is_spoke,
            is_isolated: status.is_isolated,
            account: status.account,
            ip: status.ip,
            port: status.port,
            rtt: status.rtt.map(go_text),
            in_msgs: status.in_msgs,
            out_msgs: status.out_msgs,
            in_bytes: status.in_bytes,
            out_bytes: status.out_bytes,
            subscriptions: status.subscriptions,
            subscriptions_list: status.subscriptions_list,
            compression: status.compression,
            websocket: status.websocket,
            reconnects: status.reconnects,
        }
    }
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let account = query.text("acc");
    let mut leafs = collect::leafs(&monitor.shared, query.flag("subs")?).await?;
    leafs.retain(|leaf| account.is_empty() || leaf.account == account);
    Ok(Answer::json(&Leafz {
        server_id: monitor.server_id(),
        now: now_text(),
        leafnodes: leafs.len(),
        leafs: leafs.into_iter().map(Row::from).collect(),
    }))
}
