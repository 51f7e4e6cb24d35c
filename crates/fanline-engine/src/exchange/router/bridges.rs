//! What leads from the subjects of one account to those of another: imports, ready to be followed.
//!
//! A bridge hangs at a filter, beside the subscriptions there. Which ones a subject leads over, and to
//! which subjects, is worked out once, with the rest of its route.

use std::time::Duration;

use super::cache::RouteMemo;
use crate::auth::{
    Access, Account, AccountId, ExportKind, Import, ImportKind, ResponseKind, Sampling, covers,
    in_order_of_wildcards, is_exported, own_import, system_imports,
};
use crate::subject::transform::Transform;

/// How long an answer to a request may take, if the export does not say.
const RESPONSE_TIME: Duration = Duration::from_secs(120);

/// What makes the replies of requests that come from other accounts.
pub(crate) const REPLIES: &str = "_R_";

/// The filter of the replies that a shard waits for.
pub(crate) fn replies_of(shard: u16) -> Vec<u8> {
    format!("{REPLIES}.{shard}.>").into_bytes()
}

/// A way out of an account.
#[derive(Clone, Debug)]
pub(crate) struct Bridge {
    /// The subjects that lead over it.
    pub(crate) filter: Vec<u8>,
    pub(crate) kind: BridgeKind,
    /// The account that it leads to.
    pub(crate) account: AccountId,
    /// What subjects are called there; `None` is no change.
    transform: Option<Transform>,
}

/// What is done at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BridgeKind {
    /// It is published.
    Stream,
    /// It is published with a reply that leads back.
    Service(Terms),
    /// It is an answer, and goes to the requester.
    Replies,
}

/// Under which terms a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) response: ResponseKind,
    /// How long each answer may take.
    pub(crate) patience: Duration,
    /// Whether the responder learns who the requester is.
    pub(crate) share: bool,
    /// Which answers are reported.
    pub(crate) measured: Option<Measured>,
}

/// Which requests are reported with their latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    /// The place of the export among those of its account.
    pub(crate) export: usize,
    pub(crate) sampling: Sampling,
}

/// Where a subject leads over a bridge.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) kind: BridgeKind,
    pub(crate) account: AccountId,
    pub(crate) subject: Vec<u8>,
    /// Where that was found last.
    pub(crate) memo: RouteMemo,
    /// As long as the router there has changed just so often, there is no subscriber.
    pub(crate) unheard_at: u64,
}

impl Bridge {
    /// The bridge over which a shard is given the answers that it waits for.
    fn replies(account: AccountId, shard: u16) -> Self {
        Bridge {
            filter: replies_of(shard),
            kind: BridgeKind::Replies,
            account,
            transform: None,
        }
    }

    /// Where a subject that matches the filter leads.
    pub(super) fn exit(&self, subject: &[u8]) -> Exit {
        let mut made = Vec::new();
        let is_made = (self.transform.as_ref())
            .is_some_and(|transform| transform.apply(subject, 0, &mut made));
        Exit {
            kind: self.kind,
            account: self.account,
            subject: if is_made { made } else { subject.to_vec() },
            memo: RouteMemo::default(),
            unheard_at: 0,
        }
    }
}

/// The ways out of each account, by its id, as a shard sees them.
pub(crate) fn bridges(access: &Access, shard: u16) -> Vec<Vec<Bridge>> {
    let accounts = access.accounts();
    let mut all: Vec<Vec<Bridge>> = accounts.iter().map(|_| Vec::new()).collect();
    let system = &accounts[AccountId::SYSTEM.index()];
    for (id, account) in (0..).map(AccountId).zip(accounts) {
        if has_services(id, account) {
            all[id.index()].push(Bridge::replies(id, shard));
        }
        for import in &account.imports {
            // Both were checked when they were read.
            let Some(exporter) = access.account_id(&import.account) else {
                continue;
            };
            // Requests that need no export are answered for the importing account.
            let is_for_all = exporter == AccountId::SYSTEM && !is_exported(import, account, system);
            let own = is_for_all.then(|| own_import(import, &account.name));
            let own = own.flatten();
            let import = own.as_ref().unwrap_or(import);
            if let Some((from, bridge)) = bridge(import, id, exporter, accounts) {
                all[from.index()].push(bridge);
            }
        }
        for import in system_imports(account, &system.name) {
            if let Some((from, bridge)) = bridge(&import, id, AccountId::SYSTEM, accounts) {
                all[from.index()].push(bridge);
            }
        }
    }
    all
}

/// An import of a stream, for consumers that deliver to it only if there are subscribers.
pub(crate) struct Listening {
    pub(crate) importer: AccountId,
    /// What is subscribed to there.
    pub(crate) local: Vec<u8>,
    pub(crate) exporter: AccountId,
    /// What that means there.
    pub(crate) subject: Vec<u8>,
}

/// All imports of streams.
pub(crate) fn listening(access: &Access) -> Vec<Listening> {
    let accounts = access.accounts();
    let mut all = Vec::new();
    for (importer, account) in (0..).map(AccountId).zip(accounts) {
        for import in &account.imports {
            let exporter = access.account_id(&import.account);
            let found = exporter.and_then(|from| bridge(import, importer, from, accounts));
            if let Some((exporter, bridge)) = found
                && bridge.kind == BridgeKind::Stream
            {
                let local = bridge.transform.as_ref().map(Transform::destination_filter);
                all.push(Listening {
                    importer,
                    local: local.unwrap_or_else(|| bridge.filter.clone()),
                    exporter,
                    subject: bridge.filter,
                });
            }
        }
    }
    all
}

/// Whether other accounts may send requests to this one. All may to the system account.
pub(crate) fn has_services(id: AccountId, account: &Account) -> bool {
    let mut exports = account.exports.iter();
    id == AccountId::SYSTEM || exports.any(|export| export.kind != ExportKind::Stream)
}

/// The bridge of an import, and from which account it leads.
fn bridge(
    import: &Import,
    importer: AccountId,
    exporter: AccountId,
    accounts: &[Account],
) -> Option<(AccountId, Bridge)> {
    let subject = &import.subject;
    let numbered = import.to.as_deref().map(in_order_of_wildcards);
    let forward = match &numbered {
        Some(to) => Some(Transform::new(subject, to).ok()?),
        None => None,
    };
    if import.kind == ImportKind::Stream {
        let bridge = Bridge {
            filter: subject.as_bytes().into(),
            kind: BridgeKind::Stream,
            account: importer,
            transform: forward,
        };
        return Some((exporter, bridge));
    }
    let (filter, transform) = match (&forward, &numbered) {
        (Some(forward), Some(to)) => (forward.destination_filter(), Some(reverse(subject, to)?)),
        _ => (subject.as_bytes().into(), None),
    };
    let bridge = Bridge {
        filter,
        kind: BridgeKind::Service(terms(import, &accounts[exporter.index()])),
        account: exporter,
        transform,
    };
    Some((importer, bridge))
}

/// What makes `subject` of what is called `to` here.
fn reverse(subject: &str, to: &str) -> Option<Transform> {
    let wildcard = |token: &str| -> Option<usize> {
        let inner = token.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
        let digits = match inner {
            Some(call) => call.split_once('(')?.1.strip_suffix(')')?.trim(),
            None => token.strip_prefix('$')?,
        };
        digits.parse().ok()
    };
    let order: Vec<usize> = to.split('.').filter_map(wildcard).collect();
    let source: Vec<&str> = to
        .split('.')
        .map(|token| wildcard(token).map_or(token, |_| "*"))
        .collect();
    let mut nth = 0;
    let mut destination = Vec::new();
    for token in subject.split('.') {
        if token != "*" {
            destination.push(token.to_owned());
            continue;
        }
        nth += 1;
        let place = order.iter().position(|number| *number == nth)?;
        destination.push(format!("${}", place + 1));
    }
    Transform::new(&source.join("."), &destination.join(".")).ok()
}

/// The terms of the export that an import stands on.
fn terms(import: &Import, exporter: &Account) -> Terms {
    let share = matches!(import.kind, ImportKind::Service { share: true });
    let found = exporter
        .exports
        .iter()
        .enumerate()
        .find_map(|(at, export)| {
            let ExportKind::Service {
                response,
                response_threshold,
                latency,
            } = &export.kind
            else {
                return None;
            };
            let measured = latency.as_ref().map(|latency| Measured {
                export: at,
                sampling: latency.sampling,
            });
            let found = (*response, *response_threshold, measured);
            covers(&export.subject, &import.subject).then_some(found)
        });
    let (response, threshold, measured) = found.unwrap_or_default();
    Terms {
        response,
        patience: threshold.unwrap_or(RESPONSE_TIME),
        share,
        measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mapped_back() {
        for (subject, to, local, there) in [
            ("svc.*", "ask.*", "ask.q", "svc.q"),
            ("a.*.b.*", "$2.x.$1", "one.x.two", "a.two.b.one"),
            ("a.*", "b.{{wildcard(1)}}.c", "b.t.c", "a.t"),
            ("$JS.API.>", "JSA.API.>", "JSA.API.INFO", "$JS.API.INFO"),
            ("a.*.>", "b.$1.>", "b.1.2.3", "a.1.2.3"),
        ] {
            let transform = reverse(subject, &in_order_of_wildcards(to)).unwrap();
            let mut made = Vec::new();
            assert!(transform.apply(local.as_bytes(), 0, &mut made), "{to}");
            assert_eq!(made, there.as_bytes(), "{to}");
        }
    }
}
