//! `/subsz` and `/subscriptionsz`: subscriptions and counters of their lookup.

use fanline_engine::auth::{Access, AccountId};
use fanline_engine::{Filter, ShardStatus, SubscriptionStatus, is_literal_subject};
use serde::Serialize;

use super::answer::{Answer, Number, Refusal};
use super::query::{Query, Words, page};
use super::{Monitor, collect, now_text};
use crate::ipc::ConnectionQuery;

/// Default number of subscriptions in one page.
const LIMIT_DEFAULT: usize = 1024;

/// One subscription.
#[derive(Serialize)]
pub(super) struct SubscriptionRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_tag: Option<String>,
    subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    qgroup: String,
    sid: String,
    msgs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    cid: u64,
}

impl SubscriptionRow {
    /// Returns a row within a connection. It has no account, because the connection reports the account.
    pub(super) fn without_account(sub: SubscriptionStatus) -> Self {
        SubscriptionRow {
            account: None,
            account_tag: None,
            subject: sub.subject,
            qgroup: sub.queue,
            sid: sub.sid,
            msgs: sub.msgs,
            max: sub.max,
            cid: sub.cid,
        }
    }

    fn with_account(sub: SubscriptionStatus, access: &Access) -> Self {
        let account = access.account(sub.account);
        let name = account.map(|account| account.name.clone());
        SubscriptionRow {
            account: name.clone(),
            account_tag: name,
            ..SubscriptionRow::without_account(sub)
        }
    }
}

/// How the subscriptions of a connection are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    None,
    Subjects,
    Details,
}

impl Lists {
    pub(super) fn from_query(query: &Query) -> Result<Self, Refusal> {
        Ok(match query.text("subs") {
            "detail" => Lists::Details,
            _ if query.flag("subs")? => Lists::Subjects,
            _ => Lists::None,
        })
    }

    /// Returns `subscriptions_list` and `subscriptions_list_detail` of a connection, at most one of which is not
    /// empty.
    pub(super) fn rows(self, list: Vec<SubscriptionStatus>) -> (Vec<String>, Vec<SubscriptionRow>) {
        let list = list.into_iter();
        match self {
            Lists::None => (Vec::new(), Vec::new()),
            Lists::Subjects => (list.map(|sub| sub.subject).collect(), Vec::new()),
            Lists::Details => (
                Vec::new(),
                list.map(SubscriptionRow::without_account).collect(),
            ),
        }
    }
}

/// Counters of subject matching.
#[derive(Serialize)]
pub(super) struct Matching {
    num_subscriptions: usize,
    num_cache: usize,
    num_inserts: u64,
    num_removes: u64,
    num_matches: u64,
    cache_hit_rate: Number,
    max_fanout: usize,
    avg_fanout: Number,
}

impl Matching {
    pub(super) fn of(totals: &ShardStatus) -> Self {
        let subscriptions = totals.subscriptions as u64;
        let matches = totals.cache_hits + totals.cache_misses;
        Matching {
            num_subscriptions: totals.subscriptions,
            num_cache: totals.cached_routes,
            num_inserts: totals.subscriptions_added,
            num_removes: totals.subscriptions_added.saturating_sub(subscriptions),
            num_matches: matches,
            cache_hit_rate: ratio(totals.cache_hits, matches),
            max_fanout: totals.cached_targets_max,
            avg_fanout: ratio(totals.cached_targets as u64, totals.cached_routes as u64),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate to a few digits")]
fn ratio(part: u64, whole: u64) -> Number {
    Number(if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    })
}

#[derive(Serialize)]
struct Subsz<'a> {
    server_id: &'a str,
    now: String,
    #[serde(flatten)]
    matching: Matching,
    total: usize,
    offset: usize,
    limit: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions_list: Vec<SubscriptionRow>,
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let with_list = query.flag("subs")?;
    let offset = query.count("offset")?;
    let limit = match query.count("limit")? {
        0 => LIMIT_DEFAULT,
        limit => limit,
    };
    let test = query.text("test");
    if !test.is_empty() && !is_literal_subject(test.as_bytes()) {
        let problem = format!("invalid test subject, must be valid publish subject: {test}");
        return Err(Refusal::BadRequest(problem));
    }
    let words = Words::of(query);
    let access = monitor.shared.access();
    let name = query.text("acc");
    let account = access.account_id(name);
    let mut totals = ShardStatus::default();
    for (id, counts) in (0..)
        .map(AccountId)
        .zip(collect::by_account(&monitor.shared).await?)
    {
        if name.is_empty() || account == Some(id) {
            totals.add(&counts);
        }
    }
    let mut found = Vec::new();
    if with_list {
        found = all_subscriptions(monitor).await?;
        found.retain(|sub| name.is_empty() || account == Some(sub.account));
        found.retain(|sub| test.is_empty() || matches(sub, test));
        if !words.are_none() {
            found.retain(|sub| {
                let account = access.account(sub.account);
                let account = account.map_or("", |account| &account.name);
                let texts = [&*sub.subject, &*sub.queue, account, &sub.cid.to_string()];
                words.are_in(&texts)
            });
        }
    }
    let total = found.len();
    let rows = page(found, offset, limit)
        .into_iter()
        .map(|sub| SubscriptionRow::with_account(sub, &access));
    Ok(Answer::json(&Subsz {
        server_id: monitor.server_id(),
        now: now_text(),
        matching: Matching::of(&totals),
        total,
        offset,
        limit,
        subscriptions_list: rows.collect(),
    }))
}

/// Returns all subscriptions, in the same order for each page.
pub(super) async fn all_subscriptions(
    monitor: &Monitor,
) -> Result<Vec<SubscriptionStatus>, Refusal> {
    let wanted = ConnectionQuery {
        open: true,
        subscriptions: true,
        ..ConnectionQuery::default()
    };
    let report = collect::connections(&monitor.shared, &wanted).await?;
    let lists = report
        .open
        .into_iter()
        .map(|status| status.subscriptions_list);
    let mut all: Vec<SubscriptionStatus> = lists.flatten().collect();
    all.sort_by(|a, b| (a.cid, &a.subject, &a.sid).cmp(&(b.cid, &b.subject, &b.sid)));
    Ok(all)
}

fn matches(sub: &SubscriptionStatus, subject: &str) -> bool {
    let filter = Filter::parse(sub.subject.as_bytes());
    filter.is_ok_and(|filter| filter.matches(subject.as_bytes()))
}
