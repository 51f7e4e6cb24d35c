//! `/accountz` and `/accstatz`: accounts with their imports, exports, and counters.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanline_engine::ShardStatus;
use fanline_engine::auth::{
    Account, AccountId, Export, ExportKind, Import, ImportKind, Mapping, ResponseKind,
};
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::subsz::Matching;
use super::{Monitor, collect, now_text};

#[derive(Serialize)]
struct Accountz<'a> {
    server_id: &'a str,
    now: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    system_account: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accounts: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_detail: Option<Detail<'a>>,
}

#[derive(Serialize)]
struct Detail<'a> {
    account_name: &'a str,
    update_time: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_system: bool,
    expired: bool,
    complete: bool,
    jetstream_enabled: bool,
    leafnode_connections: usize,
    client_connections: usize,
    subscriptions: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exports: Vec<ExportRow<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imports: Vec<ImportRow<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    mappings: BTreeMap<&'a str, Vec<MappedRow<'a>>>,
    name_tag: &'a str,
    sublist_stats: Matching,
}

#[derive(Serialize)]
struct ExportRow<'a> {
    subject: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved_accounts: Option<&'a [String]>,
}

impl<'a> ExportRow<'a> {
    fn of(export: &'a Export) -> Self {
        let (kind, response_type) = match &export.kind {
            ExportKind::Stream => ("stream", None),
            ExportKind::Service { response, .. } => (
                "service",
                Some(match response {
                    ResponseKind::Single => "Singleton",
                    ResponseKind::Stream => "Streamed",
                    ResponseKind::Chunked => "Chunked",
                }),
            ),
        };
        ExportRow {
            subject: &export.subject,
            kind,
            response_type,
            approved_accounts: export.accounts.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct ImportRow<'a> {
    subject: &'a str,
    account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    local_subject: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    invalid: bool,
    share: bool,
    tracking: bool,
}

impl<'a> ImportRow<'a> {
    fn of(import: &'a Import) -> Self {
        let (kind, to, share) = match import.kind {
            ImportKind::Stream => ("stream", None, false),
            ImportKind::Service { share } => ("service", Some(import.local()), share),
        };
        ImportRow {
            subject: &import.subject,
            account: &import.account,
            to,
            local_subject: import.local(),
            kind,
            // Always false, because a configuration with an invalid account is rejected.
            invalid: false,
            share,
            tracking: false,
        }
    }
}

/// A destination of a subject mapping.
#[derive(Serialize)]
struct MappedRow<'a> {
    subject: Cow<'a, str>,
    weight: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
}

impl<'a> MappedRow<'a> {
    fn all(mapping: &'a Mapping) -> Vec<Self> {
        let destinations = mapping.destinations().iter();
        destinations
            .map(|destination| MappedRow {
                subject: String::from_utf8_lossy(destination.transform.destination()),
                weight: destination.weight,
                cluster: destination.cluster.as_deref(),
            })
            .collect()
    }
}

pub(super) async fn accountz(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let access = monitor.shared.access();
    let system = access.account(AccountId::SYSTEM);
    let system = system.filter(|_| !monitor.shared.options().no_system_account);
    let requested = access.account_id(query.text("acc"));
    let imports = requested.map_or_else(Vec::new, |id| access.imports_of(id));
    let (mut accounts, mut account_detail) = (Vec::new(), None);
    match query.text("acc") {
        "" => {
            let all = (0..).map(AccountId).zip(access.accounts());
            let listed = all.filter(|(id, _)| *id != AccountId::SYSTEM || system.is_some());
            accounts.extend(listed.map(|(_, account)| &*account.name));
        }
        name => {
            let Some((id, account)) = requested.and_then(|id| Some((id, access.account(id)?)))
            else {
                let problem = format!("Account {name} does not exist");
                return Err(Refusal::BadRequest(problem));
            };
            let counts = collect::by_account(&monitor.shared).await?;
            let counts = counts.get(id.index()).copied().unwrap_or_default();
            let has_jetstream = collect::has_jetstream(&monitor.shared, name).await?;
            account_detail = Some(Detail {
                jetstream_enabled: has_jetstream,
                imports: imports.iter().map(ImportRow::of).collect(),
                ..detail(monitor, id, account, &counts)
            });
        }
    }
    Ok(Answer::json(&Accountz {
        server_id: monitor.server_id(),
        now: now_text(),
        system_account: system.map_or("", |account| account.name.as_str()),
        accounts,
        account_detail,
    }))
}

fn detail<'a>(
    monitor: &Monitor,
    id: AccountId,
    account: &'a Account,
    counts: &ShardStatus,
) -> Detail<'a> {
    Detail {
        account_name: &account.name,
        update_time: monitor.date(Duration::ZERO),
        is_system: id == AccountId::SYSTEM,
        expired: false,
        complete: true,
        jetstream_enabled: false,
        leafnode_connections: counts.leafnodes,
        client_connections: counts.connections,
        subscriptions: counts.subscriptions,
        exports: account.exports.iter().map(ExportRow::of).collect(),
        imports: Vec::new(),
        mappings: (account.mappings.iter())
            .map(|mapping| (mapping.source(), MappedRow::all(mapping)))
            .collect(),
        name_tag: account.tag(),
        sublist_stats: Matching::of(counts),
    }
}

#[derive(Serialize)]
struct Accstatz<'a> {
    server_id: &'a str,
    now: String,
    account_statz: Vec<Statistics<'a>>,
}

#[derive(Serialize)]
struct Statistics<'a> {
    acc: &'a str,
    name: &'a str,
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
    fn new(msgs: u64, bytes: u64, leafs: Amount) -> Self {
        Flow {
            msgs,
            bytes,
            gateways: Amount::default(),
            routes: Amount::default(),
            leafs,
        }
    }
}

pub(super) async fn accstatz(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    let with_unused = query.flag("unused")?;
    let access = monitor.shared.access();
    let counts = collect::by_account(&monitor.shared).await?;
    let accounts = access.accounts().iter().enumerate();
    let all = accounts.map(|(at, account)| {
        let totals = counts.get(at).copied().unwrap_or_default();
        Statistics {
            acc: &account.name,
            name: &account.name,
            conns: totals.connections,
            leafnodes: totals.leafnodes,
            total_conns: totals.connections + totals.leafnodes,
            num_subscriptions: totals.subscriptions,
            sent: Flow::new(
                totals.out_msgs,
                totals.out_bytes,
                Amount {
                    msgs: totals.leafs.out_msgs,
                    bytes: totals.leafs.out_bytes,
                },
            ),
            received: Flow::new(
                totals.in_msgs,
                totals.in_bytes,
                Amount {
                    msgs: totals.leafs.in_msgs,
                    bytes: totals.leafs.in_bytes,
                },
            ),
            slow_consumers: totals.slow_consumers,
        }
    });
    Ok(Answer::json(&Accstatz {
        server_id: monitor.server_id(),
        now: now_text(),
        account_statz: all
            .filter(|one| with_unused || one.total_conns > 0)
            .collect(),
    }))
}

impl Monitor {
    /// Returns the name of an account. The name is empty if the account is unknown.
    pub(super) fn account_name(&self, id: AccountId) -> String {
        self.account_text(id, |account| account.name.clone())
    }

    /// Returns an account's name for people. In operator mode it is the name in the account's token.
    pub(super) fn account_tag(&self, id: AccountId) -> String {
        self.account_text(id, |account| account.tag().to_owned())
    }

    fn account_text(&self, id: AccountId, text: impl FnOnce(&Account) -> String) -> String {
        let access = self.shared.access();
        access.account(id).map(text).unwrap_or_default()
    }

    /// Returns the accounts with connections.
    pub(super) async fn used_accounts(&self) -> Result<BTreeSet<String>, Refusal> {
        let counts = collect::by_account(&self.shared).await?;
        let access = self.shared.access();
        let accounts = access.accounts().iter().zip(counts);
        let used = accounts.filter(|(_, counts)| counts.connections > 0);
        Ok(used.map(|(account, _)| account.name.clone()).collect())
    }
}
