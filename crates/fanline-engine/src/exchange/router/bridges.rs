//! Bridges from the subjects of one account to those of another, compiled from imports.
//!
//! A bridge belongs to a filter, like a subscription. The route of a subject includes the bridges of the
//! subject, and the subject to which each bridge leads. Both are thus computed only once.

use std::time::Duration;

use super::cache::RouteMemo;
use crate::auth::{
    Access, Account, AccountId, ExportKind, Import, ImportKind, ResponseKind, Sampling, covers,
    in_order_of_wildcards, is_answered_by_all, is_exported, jetstream_imports, own_import,
    system_imports,
};
use crate::subject::transform::Transform;

/// Maximum time for a response to a request, unless the export configures one.
const RESPONSE_TIME: Duration = Duration::from_secs(120);

/// First token of the reply subjects of requests that cross accounts.
pub(crate) const REPLIES: &str = "_R_";

/// End of the reply subject of a request whose latency is measured by two servers.
pub(crate) const MEASURED: &str = ".T";

/// Prefix of the subjects at which servers of a cluster receive the responder's half of a service latency.
pub(crate) const HALVES: &str = "$SYS.LATENCY.M2.";

/// Returns the subject in the system account at which a shard receives the responder's half of a service latency.
pub(crate) fn halves_of(token: &str, shard: u16) -> Vec<u8> {
    format!("{HALVES}{token}{shard}").into_bytes()
}

/// Returns the filter of the reply subjects of a shard. `token` distinguishes the servers of a cluster.
pub(crate) fn replies_of(token: &str, shard: u16) -> Vec<u8> {
    format!("{REPLIES}.{token}{shard}.>").into_bytes()
}

/// The beginning of the subjects of all responses.
const REPLIES_AND_DOT: &[u8; 4] = b"_R_.";

/// Returns whether a subject is that of a response whose latency is measured by two servers.
#[inline]
pub(crate) fn is_measured(subject: &[u8]) -> bool {
    // Each message of a route is checked, so this compares one word.
    subject.first_chunk() == Some(REPLIES_AND_DOT) && subject.ends_with(MEASURED.as_bytes())
}

/// A bridge from one account to another.
#[derive(Clone, Debug)]
pub(crate) struct Bridge {
    /// Filter of the subjects that cross the bridge.
    pub(crate) filter: Vec<u8>,
    pub(crate) kind: BridgeKind,
    /// The account at the far end.
    pub(crate) account: AccountId,
    /// Mapping to the subjects at the far end; `None` leaves subjects unchanged.
    transform: Option<Transform>,
}

/// The handling of a message at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BridgeKind {
    /// The message is published.
    Stream,
    /// The message is published with a reply subject that leads back over the bridge.
    Service(Terms),
    /// The message is a response, and is delivered to the requester.
    Replies,
}

/// The rules for responses to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) response: ResponseKind,
    /// Maximum time for each response.
    pub(crate) response_time: Duration,
    /// Whether the responder receives the requester's identity.
    pub(crate) share: bool,
    /// The requests whose latency is reported; `None` reports no latency.
    pub(crate) measured: Option<Measured>,
}

/// The requests whose latency is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Index of the export in its account.
    pub(crate) export: usize,
    pub(crate) sampling: Sampling,
}

/// The destination of one subject in the account at the far end of a bridge.
#[derive(Clone, Debug)]
pub(crate) struct BridgeTarget {
    pub(crate) kind: BridgeKind,
    pub(crate) account: AccountId,
    pub(crate) subject: Vec<u8>,
    /// Cached route of the subject in that account.
    pub(crate) memo: RouteMemo,
    /// Number of interest changes in that account's router when the subject was found to have no subscriber.
    /// While the number is unchanged, the subject still has none.
    pub(crate) no_subscriber_at: u64,
}

impl Bridge {
    /// Creates the bridge that delivers responses to a shard's requests, or the responder's halves of their latency.
    /// `filter` is that of their subjects.
    pub(crate) fn replies(account: AccountId, filter: Vec<u8>) -> Self {
        Bridge {
            filter,
            kind: BridgeKind::Replies,
            account,
            transform: None,
        }
    }

    /// Returns the destination of a subject that matches the bridge's filter.
    pub(super) fn target(&self, subject: &[u8]) -> BridgeTarget {
        let mut made = Vec::new();
        let is_made = (self.transform.as_ref())
            .is_some_and(|transform| transform.apply(subject, 0, &mut made));
        BridgeTarget {
            kind: self.kind,
            account: self.account,
            subject: if is_made { made } else { subject.to_vec() },
            memo: RouteMemo::default(),
            no_subscriber_at: 0,
        }
    }
}

/// Returns the bridges of one shard, in a list for each account. `replies` is the filter of its reply subjects.
/// With `uses_peers`, JetStream requests go to the other servers of the cluster.
pub(crate) fn bridges(access: &Access, replies: &[u8], uses_peers: bool) -> Vec<Vec<Bridge>> {
    let accounts = access.accounts();
    let mut all: Vec<Vec<Bridge>> = accounts.iter().map(|_| Vec::new()).collect();
    let system = &accounts[AccountId::SYSTEM.index()];
    for (id, account) in (0..).map(AccountId).zip(accounts) {
        if has_services(id, account) {
            all[id.index()].push(Bridge::replies(id, replies.to_vec()));
        }
        for import in &account.imports {
            // Both accounts exist, because the configuration was validated.
            let Some(exporter) = access.account_id(&import.account) else {
                continue;
            };
            // The system account answers requests that need no export, separately for each importing account.
            let is_built_in =
                exporter == AccountId::SYSTEM && !is_exported(import, account, system);
            let own = is_built_in.then(|| own_import(import, &account.name));
            let own = own.flatten();
            let import = own.as_ref().unwrap_or(import);
            if let Some((from, bridge)) = bridge(import, id, exporter, accounts) {
                all[from.index()].push(bridge);
            }
        }
        let mut built_in = system_imports(account, &system.name);
        if uses_peers {
            built_in.extend(jetstream_imports(access, id, &system.name));
        }
        for import in built_in {
            if let Some((from, bridge)) = bridge(&import, id, AccountId::SYSTEM, accounts) {
                all[from.index()].push(bridge);
            }
        }
    }
    all
}

/// A stream import. Consumers with a deliver subject need it to find out whether there are subscribers.
pub(crate) struct Listening {
    pub(crate) importer: AccountId,
    /// Filter of subscriptions in the importing account.
    pub(crate) local: Vec<u8>,
    pub(crate) exporter: AccountId,
    /// The matching subject in the exporting account.
    pub(crate) subject: Vec<u8>,
}

/// Returns all stream imports.
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

/// Returns whether the latency of any service is reported.
pub(crate) fn has_measured_services(access: &Access) -> bool {
    let is_measured = |kind: &ExportKind| match kind {
        ExportKind::Service { latency, .. } => latency.is_some(),
        ExportKind::Stream => false,
    };
    let mut exports = access
        .accounts()
        .iter()
        .flat_map(|account| &account.exports);
    exports.any(|export| is_measured(&export.kind))
}

/// Returns whether other accounts may send requests to an account. The system account always allows them.
pub(crate) fn has_services(id: AccountId, account: &Account) -> bool {
    let mut exports = account.exports.iter();
    id == AccountId::SYSTEM || exports.any(|export| export.kind != ExportKind::Stream)
}

/// Returns the bridge of an import, and the account at its near end.
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
        kind: BridgeKind::Service(terms(import, exporter, &accounts[exporter.index()])),
        account: exporter,
        transform,
    };
    Some((importer, bridge))
}

/// Returns the inverse of an import's mapping: from `to`, in the importing account, to `subject`.
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
        let position = order.iter().position(|number| *number == nth)?;
        destination.push(format!("${}", position + 1));
    }
    Transform::new(&source.join("."), &destination.join(".")).ok()
}

/// Returns the terms of the export that an import refers to.
fn terms(import: &Import, id: AccountId, exporter: &Account) -> Terms {
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
    let (mut response, threshold, measured) = found.unwrap_or_default();
    if found.is_none() && id == AccountId::SYSTEM && is_answered_by_all(&import.subject) {
        response = ResponseKind::Stream;
    }
    Terms {
        response,
        response_time: threshold.unwrap_or(RESPONSE_TIME),
        share,
        measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_responses_are_recognized() {
        for (subject, expected) in [
            ("_R_.a.b.c.T", true),
            ("_R_.a.b.T", true),
            ("_R_.a.b.cT", false),
            ("_R_X.a.T", false),
            ("a.b.T", false),
            ("_R_", false),
        ] {
            assert_eq!(is_measured(subject.as_bytes()), expected, "{subject}");
        }
    }

    #[test]
    fn imported_subjects_are_mapped_back() {
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
