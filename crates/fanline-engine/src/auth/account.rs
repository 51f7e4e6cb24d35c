//! Accounts: isolated subject spaces, connected only by exports and imports.

use std::sync::Arc;
use std::time::Duration;

use super::error::AccessError;
use super::operator::Authority;
use super::permissions::Permissions;
use super::user::User;
use crate::limits::AccountLimits as JetStreamLimits;
use crate::subject::Filter;
use crate::subject::transform::{Transform, TransformError};

/// The account of clients without another one.
pub const GLOBAL_ACCOUNT: &str = "$G";
/// The account that receives the server's events, unless the configuration names another.
pub const SYSTEM_ACCOUNT: &str = "$SYS";
/// The user of clients without credentials where only the system account is configured.
pub const ANYBODY: &str = "anybody";

/// The index of an account in [`Access::accounts`](super::Access::accounts). It is the same on every shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub u32);

impl AccountId {
    /// `$G`.
    pub const GLOBAL: AccountId = AccountId(0);
    /// The system account.
    pub const SYSTEM: AccountId = AccountId(1);

    /// Returns the index in tables by account.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The destination of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceTo {
    /// The subject.
    pub dest: String,
    /// The percentage of messages to trace, of those that request it.
    pub percent: u8,
}

impl TraceTo {
    /// Traces all messages.
    pub fn all(dest: impl Into<String>) -> Self {
        TraceTo {
            dest: dest.into(),
            percent: 100,
        }
    }
}

/// One account, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its name; in operator mode, its public key.
    pub name: String,
    /// Its public key (`A…`), if it has one.
    pub nkey: Option<String>,
    /// The users that may connect to it.
    pub users: Vec<User>,
    /// The permissions of users without permissions of their own.
    pub default_permissions: Option<Permissions>,
    /// The limits of its clients.
    pub limits: ClientLimits,
    /// The limits of its streams; `None` disables JetStream.
    pub jetstream: Option<JetStreamLimits>,
    /// What other accounts may import.
    pub exports: Vec<Export>,
    /// What it imports from other accounts.
    pub imports: Vec<Import>,
    /// Subject mappings of published messages.
    pub mappings: Vec<Mapping>,
    /// Where traces of messages with a `traceparent` header go.
    pub trace: Option<TraceTo>,
    /// In operator mode, the keys that sign its users.
    pub authority: Option<Arc<Authority>>,
}

impl Account {
    /// Creates an account that has only a name.
    pub fn new(name: impl Into<String>) -> Self {
        Account {
            name: name.into(),
            ..Account::default()
        }
    }

    /// Returns the display name: in operator mode the name in its token, otherwise its name.
    pub fn tag(&self) -> &str {
        let tag = self.authority.as_ref().map(|authority| authority.tag());
        tag.filter(|tag| !tag.is_empty()).unwrap_or(&self.name)
    }
}

/// Limits that the clients of an account share; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections. Beyond it: `maximum account active connections exceeded`, and the connection is closed.
    pub connections_max: Option<u64>,
    /// Subscriptions. Beyond it: `maximum subscriptions exceeded`; the connection stays open.
    pub subscriptions_max: Option<u64>,
    /// Bytes of one message. Beyond it: `Maximum Payload Violation`, and the connection is closed.
    pub payload_bytes_max: Option<u64>,
    /// Leaf nodes.
    pub leafnodes_max: Option<u64>,
}

/// Subjects that an account offers to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// A stream of messages, or a service that replies.
    pub kind: ExportKind,
    /// The subject filter.
    pub subject: String,
    /// The accounts that may import it; all accounts if `None`.
    pub accounts: Option<Vec<String>>,
    /// The position (from 1) of a `*` in `subject` that only the importer's own name may fill.
    pub account_token_position: Option<usize>,
    /// Whether traces continue in the importing account.
    pub allow_trace: bool,
}

/// The kind of an [`Export`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// Others may subscribe.
    Stream,
    /// Others may send requests.
    Service {
        /// The number of replies to a request.
        response: ResponseKind,
        /// The time that a reply may take; the default if `None`.
        response_threshold: Option<Duration>,
        /// Where latencies are reported.
        latency: Option<Latency>,
    },
}

/// The number of replies to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseKind {
    /// One.
    #[default]
    Single,
    /// Any number.
    Stream,
    /// One, in several messages.
    Chunked,
}

/// The latency reports of an [`ExportKind::Service`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The subject of the reports.
    pub subject: String,
    /// The requests to measure.
    pub sampling: Sampling,
}

/// The requests whose latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// This percentage of requests.
    Percent(u8),
    /// Requests whose headers ask for it.
    Headers,
}

/// Subjects that an account receives from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// A stream of messages, or a service that replies.
    pub kind: ImportKind,
    /// The name of the exporting account.
    pub account: String,
    /// The subjects in the exporting account.
    pub subject: String,
    /// The subjects in this account; the same if `None`.
    pub to: Option<String>,
    /// Whether traces continue in the exporting account.
    pub allow_trace: bool,
}

/// The kind of an [`Import`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// Messages published there are delivered here.
    Stream,
    /// Requests sent here are answered there.
    Service {
        /// Whether the responder learns the requester's identity.
        share: bool,
    },
}

impl Import {
    /// Returns the subjects in this account.
    pub fn local(&self) -> &str {
        self.to.as_deref().unwrap_or(&self.subject)
    }
}

/// Renames messages that are published to a subject filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    source: String,
    destinations: Vec<Destination>,
}

/// One of the destinations of a [`Mapping`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The transform that yields the new subject.
    pub transform: Transform,
    /// The percentage of messages.
    pub weight: u8,
    /// The only cluster for which it holds.
    pub cluster: Option<String>,
}

impl Mapping {
    /// Creates a mapping with one destination.
    ///
    /// # Errors
    /// Fails if the two filters do not form a transform.
    pub fn new(source: &str, destination: &str) -> Result<Self, AccessError> {
        Mapping::weighted(source, &[(destination, 100, None)])
    }

    /// Creates a mapping with several destinations, each with a weight of at most 100 and its cluster.
    ///
    /// # Errors
    /// Fails if one is not a transform, a destination appears twice for one cluster, or the weights exceed
    /// 100.
    pub fn weighted(
        source: &str,
        destinations: &[(&str, u8, Option<&str>)],
    ) -> Result<Self, AccessError> {
        let wrong = |error: TransformError| AccessError::Mapping(source.into(), error.to_string());
        if Filter::parse(source.as_bytes()).is_err() {
            return Err(AccessError::InvalidSubject(source.into()));
        }
        let mut made: Vec<Destination> = Vec::new();
        for (destination, weight, cluster) in destinations {
            let transform = Transform::new(source, destination).map_err(wrong)?;
            let cluster = cluster.map(String::from);
            let same_cluster = || made.iter().filter(|d| d.cluster == cluster);
            let sum: u32 = same_cluster().map(|d| u32::from(d.weight)).sum();
            if sum + u32::from(*weight) > 100 {
                return Err(AccessError::MappingWeights(source.into()));
            }
            if same_cluster().any(|d| d.transform.destination() == destination.as_bytes()) {
                return Err(AccessError::DuplicateMapping(source.into()));
            }
            made.push(Destination {
                transform,
                weight: *weight,
                cluster,
            });
        }
        Ok(Mapping {
            source: source.into(),
            destinations: made,
        })
    }

    /// Returns the filter of the subjects that it renames.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the destinations in the order of the configuration.
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations
    }
}
