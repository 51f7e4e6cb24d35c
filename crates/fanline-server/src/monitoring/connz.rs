//! `/connz`: open and closed connections, sorted and in pages.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use fanline_engine::auth::nkey::PublicKey;
use fanline_engine::auth::{Access, ConnectionKind, GLOBAL_ACCOUNT};
use fanline_engine::{Backlog, CloseReason, ConnectionStatus, MqttStatus};
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::{Query, Words, page};
use super::subsz::{Lists, SubscriptionRow};
use super::{Monitor, collect, kind_name, now_text, time};
use crate::clock::go_text;
use crate::ipc::{ConnectionQuery, ConnectionReport};

/// Default number of connections in one page.
const LIMIT_DEFAULT: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Cid,
    Start,
    Subscriptions,
    Pending,
    OutMsgs,
    InMsgs,
    OutBytes,
    InBytes,
    Last,
    Idle,
    Uptime,
    Stop,
    Reason,
    Rtt,
}

#[derive(Debug)]
struct Options {
    state: State,
    sort: Sort,
    lists: Lists,
    auth: bool,
    cid: Option<u64>,
    offset: usize,
    limit: usize,
    user: String,
    account: String,
    mqtt_client: String,
    find: Words,
}

impl Options {
    fn from_query(query: &Query) -> Result<Self, Refusal> {
        let state = match query.text("state").to_ascii_lowercase().as_str() {
            "" | "open" => State::Open,
            "closed" => State::Closed,
            "all" | "any" => State::All,
            other => {
                let problem = format!("Error decoding state for {other}");
                return Err(Refusal::BadRequest(problem));
            }
        };
        let lists = Lists::from_query(query)?;
        let cid = query.id("cid")?;
        let (offset, limit) = (query.count("offset")?, query.count("limit")?);
        Ok(Options {
            state,
            sort: sort_from(query.text("sort"), state)?,
            lists,
            auth: query.flag("auth")?,
            cid,
            offset: if cid.is_some() { 0 } else { offset },
            limit: match (cid, limit) {
                (Some(_), _) => 1,
                (None, 0) => LIMIT_DEFAULT,
                (None, limit) => limit,
            },
            user: query.text("user").into(),
            account: query.text("acc").into(),
            mqtt_client: query.text("mqtt_client").into(),
            find: Words::of(query),
        })
    }

    /// Returns whether a connection's texts contain the searched words.
    fn finds(&self, found: &Found, access: &Access) -> bool {
        if self.find.are_none() {
            return true;
        }
        let status = &found.status;
        let account = access.account(status.account);
        let (user, account) = match self.auth {
            true => (&*status.user, account.map_or("", |account| &account.name)),
            false => ("", ""),
        };
        let reason = found.end.map(|(_, reason)| reason.to_string());
        self.find.are_in(&[
            &status.cid.to_string(),
            &status.name,
            &status.mqtt_client,
            &status.ip,
            protocol(status.kind),
            &status.lang,
            user,
            account,
            &reason.unwrap_or_default(),
        ])
    }

    fn includes(&self, status: &ConnectionStatus) -> bool {
        let is_user = self.user.is_empty() || self.user == status.user;
        let is_cid = self.cid.is_none_or(|cid| cid == status.cid);
        let is_client = self.mqtt_client.is_empty() || self.mqtt_client == status.mqtt_client;
        is_user && is_cid && is_client
    }
}

fn sort_from(text: &str, state: State) -> Result<Sort, Refusal> {
    let sort = match text {
        "" | "cid" => Sort::Cid,
        "start" => Sort::Start,
        "subs" => Sort::Subscriptions,
        "pending" => Sort::Pending,
        "msgs_to" => Sort::OutMsgs,
        "msgs_from" => Sort::InMsgs,
        "bytes_to" => Sort::OutBytes,
        "bytes_from" => Sort::InBytes,
        "last" => Sort::Last,
        "idle" => Sort::Idle,
        "uptime" => Sort::Uptime,
        "stop" => Sort::Stop,
        "reason" => Sort::Reason,
        "rtt" => Sort::Rtt,
        other => {
            let problem = format!("invalid sorting option: {other}");
            return Err(Refusal::BadRequest(problem));
        }
    };
    if matches!(sort, Sort::Stop | Sort::Reason) && state != State::Closed {
        let problem = format!("sort by {text} only valid on closed connections");
        return Err(Refusal::BadRequest(problem));
    }
    Ok(sort)
}

/// A connection, and its end if it is closed.
#[derive(Debug)]
struct Found {
    status: ConnectionStatus,
    end: Option<(Duration, CloseReason)>,
}

impl Found {
    fn uptime(&self, now: Duration) -> Duration {
        self.until(now).saturating_sub(self.status.opened_at)
    }

    fn idle(&self, now: Duration) -> Duration {
        self.until(now).saturating_sub(self.status.active_at)
    }

    fn until(&self, now: Duration) -> Duration {
        self.end.map_or(now, |(at, _)| at)
    }
}

/// Sorts connections. Connections with equal keys are in the order of their ids.
fn sort_by(all: &mut [Found], sort: Sort, now: Duration) {
    fn most<K: Ord>(all: &mut [Found], key: impl Fn(&ConnectionStatus) -> K) {
        all.sort_by_key(|found| Reverse(key(&found.status)));
    }
    all.sort_by_key(|found| found.status.cid);
    match sort {
        Sort::Cid => {}
        Sort::Start => all.sort_by_key(|found| found.status.opened_at),
        Sort::Subscriptions => most(all, |status| status.subscriptions),
        Sort::Pending => most(all, |status| status.pending_bytes),
        Sort::OutMsgs => most(all, |status| status.out_msgs),
        Sort::InMsgs => most(all, |status| status.in_msgs),
        Sort::OutBytes => most(all, |status| status.out_bytes),
        Sort::InBytes => most(all, |status| status.in_bytes),
        Sort::Last => most(all, |status| status.active_at),
        Sort::Rtt => most(all, |status| status.rtt),
        Sort::Idle => all.sort_by_key(|found| Reverse(found.idle(now))),
        Sort::Uptime => all.sort_by_key(|found| found.uptime(now)),
        Sort::Stop => all.sort_by_key(|found| Reverse(found.until(now))),
        Sort::Reason => {
            all.sort_by_cached_key(|found| found.end.map(|(_, reason)| reason.to_string()));
        }
    }
}

#[derive(Serialize)]
struct Connz<'a> {
    server_id: &'a str,
    now: String,
    num_connections: usize,
    total: usize,
    offset: usize,
    limit: usize,
    connections: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    cid: u64,
    kind: &'static str,
    #[serde(rename = "type", skip_serializing_if = "str::is_empty")]
    protocol: &'static str,
    ip: String,
    port: u16,
    start: String,
    last_activity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<String>,
    uptime: String,
    idle: String,
    pending_bytes: usize,
    // Only Fanline has this field. It shows why a connection is a slow consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_consumer: Option<SlowConsumer>,
    in_msgs: u64,
    out_msgs: u64,
    in_bytes: u64,
    out_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<u64>,
    subscriptions: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    lang: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cipher_suite: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_first: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    authorized_user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list_detail: Vec<SubscriptionRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_tag: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    mqtt_client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mqtt_session: Option<MqttSession>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<ProxyKey>,
}

/// The session of a connected MQTT client.
#[derive(Serialize)]
struct MqttSession {
    version: &'static str,
    keep_alive: u16,
    /// Seconds after the disconnect until the session expires; `None` means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    expiry: Option<u32>,
    in_flight: usize,
    waiting: usize,
}

impl MqttSession {
    fn of(status: &MqttStatus) -> Self {
        MqttSession {
            version: match status.level {
                5 => "5.0",
                _ => "3.1.1",
            },
            keep_alive: status.keep_alive,
            expiry: Some(status.expiry).filter(|seconds| *seconds != u32::MAX),
            in_flight: status.in_flight,
            waiting: status.waiting,
        }
    }
}

/// A proxy's key.
#[derive(Serialize)]
pub(super) struct ProxyKey {
    key: String,
}

impl From<PublicKey> for ProxyKey {
    fn from(key: PublicKey) -> Self {
        ProxyKey { key: key.encode() }
    }
}

/// Pending output of a connection that reads too slowly, or was closed for that reason.
#[derive(Serialize)]
struct SlowConsumer {
    pending_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
}

impl SlowConsumer {
    fn of(monitor: &Monitor, backlog: Backlog, until: Duration) -> Self {
        let waited = |since| go_text(until.saturating_sub(since));
        SlowConsumer {
            pending_bytes: backlog.bytes,
            since: backlog.since.map(|since| monitor.date(since)),
            waited: backlog.since.map(waited),
            subject: backlog.subject,
            sid: backlog.sid,
        }
    }
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let options = Options::from_query(query)?;
    let wanted = ConnectionQuery {
        open: options.state != State::Closed,
        closed: options.state != State::Open,
        ..ConnectionQuery::default()
    };
    let report = collect::connections(&monitor.shared, &wanted).await?;
    let mut found = found_in(report);
    let access = monitor.shared.access();
    let account = access.account_id(&options.account);
    // A query for one account does not reveal the number of connections in others.
    found.retain(|found| options.account.is_empty() || account == Some(found.status.account));
    let total = found.len();
    found.retain(|found| options.includes(&found.status) && options.finds(found, &access));
    let now = monitor.now();
    sort_by(&mut found, options.sort, now);
    let mut found = page(found, options.offset, options.limit);
    if options.lists != Lists::None {
        list_subscriptions(monitor, &mut found).await?;
    }
    let rows = found
        .into_iter()
        .map(|found| row(monitor, &access, &options, found, now));
    let connections: Vec<Row> = rows.collect();
    Ok(Answer::json(&Connz {
        server_id: monitor.server_id(),
        now: now_text(),
        num_connections: connections.len(),
        total,
        offset: options.offset,
        limit: options.limit,
        connections,
    }))
}

fn found_in(report: ConnectionReport) -> Vec<Found> {
    let open = report
        .open
        .into_iter()
        .map(|status| Found { status, end: None });
    let closed = report.closed.into_iter().map(|closed| Found {
        status: closed.status,
        end: Some((closed.stopped_at, closed.reason)),
    });
    open.chain(closed).collect()
}

/// Adds subscriptions to the connections of the page. Only these connections are queried, because there may
/// be very many subscriptions.
async fn list_subscriptions(monitor: &Monitor, found: &mut [Found]) -> Result<(), Refusal> {
    let open = found.iter().filter(|found| found.end.is_none());
    let mut cids: Vec<u64> = open.map(|found| found.status.cid).collect();
    cids.sort_unstable();
    let wanted = ConnectionQuery {
        open: true,
        cids: Some(Arc::from(cids)),
        subscriptions: true,
        ..ConnectionQuery::default()
    };
    let mut open = collect::connections(&monitor.shared, &wanted).await?.open;
    open.sort_by_key(|status| status.cid);
    for found in found {
        // A connection that has closed meanwhile has an empty list.
        if let Ok(at) = open.binary_search_by_key(&found.status.cid, |status| status.cid) {
            found.status.subscriptions_list = std::mem::take(&mut open[at].subscriptions_list);
            // The engine returns the newest first.
            found.status.subscriptions_list.reverse();
        }
    }
    Ok(())
}

fn protocol(kind: ConnectionKind) -> &'static str {
    match kind {
        kind if kind.is_leaf() => "",
        ConnectionKind::WebSocket => "websocket",
        ConnectionKind::Mqtt | ConnectionKind::MqttWebSocket => "mqtt",
        _ => "nats",
    }
}

fn row(monitor: &Monitor, access: &Access, options: &Options, found: Found, now: Duration) -> Row {
    let is_admitted = !matches!(
        found.end,
        Some((
            _,
            CloseReason::AuthenticationFailure
                | CloseReason::AuthenticationTimeout
                | CloseReason::ProxyRequired
        ))
    );
    let account = access.account(found.status.account);
    let account = account.filter(|_| options.auth && is_admitted);
    let name_tag = account.map(|account| account.tag().to_owned());
    let account = account.map(|account| account.name.clone());
    let (uptime, idle) = (found.uptime(now), found.idle(now));
    let until = found.until(now);
    let Found { status, end } = found;
    let (subjects, details) = options.lists.rows(status.subscriptions_list);
    Row {
        cid: status.cid,
        kind: kind_name(status.kind),
        protocol: protocol(status.kind),
        ip: status.ip,
        port: status.port,
        start: monitor.date(status.opened_at),
        last_activity: monitor.date(status.active_at),
        stop: end.map(|(at, _)| monitor.date(at)),
        reason: end.map(|(_, reason)| reason.to_string()),
        rtt: status.rtt.map(go_text),
        uptime: time::uptime(uptime),
        idle: time::uptime(idle),
        pending_bytes: status.pending_bytes,
        slow_consumer: (status.backlog).map(|backlog| SlowConsumer::of(monitor, *backlog, until)),
        in_msgs: status.in_msgs,
        out_msgs: status.out_msgs,
        in_bytes: status.in_bytes,
        out_bytes: status.out_bytes,
        stalls: Some(status.stalls).filter(|stalls| *stalls > 0),
        subscriptions: status.subscriptions,
        name: status.name,
        lang: status.lang,
        version: status.version,
        tls_version: status.tls.as_ref().map(|tls| tls.version),
        tls_first: status.tls.as_ref().is_some_and(|tls| tls.is_first),
        tls_cipher_suite: status.tls.map(|tls| tls.cipher_suite),
        authorized_user: if options.auth {
            status.user
        } else {
            String::new()
        },
        subscriptions_list: subjects,
        subscriptions_list_detail: details,
        account: account.filter(|name| name != GLOBAL_ACCOUNT),
        name_tag,
        mqtt_client: status.mqtt_client,
        mqtt_session: status.mqtt.as_deref().map(MqttSession::of),
        proxy: status.proxy.map(ProxyKey::from),
    }
}

#[cfg(test)]
mod tests {
    use fanline_engine::auth::AccountId;

    use super::*;

    fn options(text: &str) -> Result<Options, Refusal> {
        Options::from_query(&Query::parse(text))
    }

    #[test]
    fn parameters() {
        let default = options("").unwrap();
        assert_eq!((default.offset, default.limit), (0, 1024));
        assert_eq!((default.state, default.sort), (State::Open, Sort::Cid));
        let one = options("cid=7&offset=3&limit=9&subs=detail").unwrap();
        assert_eq!((one.cid, one.offset, one.limit), (Some(7), 0, 1));
        assert_eq!(one.lists, Lists::Details);
        let odd = options("limit=-1&offset=-1&subs=TRUE&state=CLOSED&sort=stop").unwrap();
        assert_eq!((odd.offset, odd.limit), (0, 1024));
        assert_eq!((odd.lists, odd.sort), (Lists::Subjects, Sort::Stop));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for (text, problem) in [
            ("sort=foo", "invalid sorting option: foo"),
            ("sort=CID", "invalid sorting option: CID"),
            ("sort=stop", "sort by stop only valid on closed connections"),
            (
                "sort=reason&state=all",
                "sort by reason only valid on closed connections",
            ),
            ("state=foo", "Error decoding state for foo"),
            (
                "cid=x",
                "Error decoding uint64 for 'cid': strconv.ParseUint: parsing \"x\": invalid syntax",
            ),
            (
                "subs=foo",
                "Error decoding boolean for 'subs': strconv.ParseBool: parsing \"foo\": invalid syntax",
            ),
        ] {
            assert_eq!(options(text).unwrap_err().to_string(), problem, "{text}");
        }
    }

    /// Returns a connection with these numbers (cid, opened, active, subscriptions, in_msgs) and this end.
    fn found(numbers: [u64; 5], end: Option<(u64, CloseReason)>) -> Found {
        let [cid, opened, active, subscriptions, in_msgs] = numbers;
        let status = ConnectionStatus {
            kind: ConnectionKind::Standard,
            tls: None,
            proxy: None,
            account: AccountId::GLOBAL,
            cid,
            ip: String::new(),
            port: 0,
            opened_at: Duration::from_secs(opened),
            active_at: Duration::from_secs(active),
            rtt: (cid != 2).then(|| Duration::from_millis(cid)),
            pending_bytes: 0,
            in_msgs,
            in_bytes: in_msgs,
            out_msgs: in_msgs,
            out_bytes: in_msgs,
            stalls: 0,
            subscriptions: usize::try_from(subscriptions).unwrap(),
            name: String::new(),
            lang: String::new(),
            version: String::new(),
            user: String::new(),
            mqtt_client: String::new(),
            mqtt: None,
            subscriptions_list: Vec::new(),
            backlog: None,
        };
        Found {
            status,
            end: end.map(|(at, reason)| (Duration::from_secs(at), reason)),
        }
    }

    #[test]
    fn orders() {
        for (sort, expected) in [
            (Sort::Cid, [1, 2, 3, 4]),
            (Sort::Start, [1, 2, 3, 4]),
            (Sort::Subscriptions, [2, 4, 1, 3]),
            (Sort::InMsgs, [3, 1, 2, 4]),
            (Sort::Pending, [1, 2, 3, 4]),
            (Sort::Last, [2, 1, 4, 3]),
            (Sort::Idle, [1, 2, 3, 4]),
            (Sort::Uptime, [3, 4, 2, 1]),
            (Sort::Stop, [1, 2, 4, 3]),
            (Sort::Reason, [1, 2, 3, 4]),
            (Sort::Rtt, [4, 3, 1, 2]),
        ] {
            let mut all = [
                found([4, 3, 4, 5, 0], Some((6, CloseReason::ReadError))),
                found([3, 2, 3, 0, 9], Some((5, CloseReason::ClientClosed))),
                found([2, 1, 8, 7, 2], None),
                found([1, 0, 5, 1, 3], None),
            ];
            sort_by(&mut all, sort, Duration::from_secs(12));
            assert_eq!(all.map(|found| found.status.cid), expected, "{sort:?}");
        }
    }
}
