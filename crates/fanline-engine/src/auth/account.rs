//! Accounts: separate subject spaces. A message reaches another account only if one account exports its
//! subject and the other account imports it.

use std::sync::Arc;
use std::time::Duration;

use super::error::AccessError;
use super::operator::Authority;
use super::permissions::Permissions;
use super::user::User;
use crate::limits::AccountLimits as JetStreamLimits;
use crate::subject::Filter;
use crate::subject::transform::{Transform, TransformError};

/// The account of users for which no other account is configured.
pub const GLOBAL_ACCOUNT: &str = "$G";
/// The account that receives the server's events, unless the configuration names another one.
pub const SYSTEM_ACCOUNT: &str = "$SYS";
/// Name of the user for clients without credentials, if only the system account is configured.
pub const ANYBODY: &str = "anybody";

/// Index of an account in [`Access::accounts`](super::Access::accounts), the same on every shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub u32);

impl AccountId {
    /// The account `$G`.
    pub const GLOBAL: AccountId = AccountId(0);
    /// The system account.
    pub const SYSTEM: AccountId = AccountId(1);

    /// Returns the index as a small number, for tables by account.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The destination of message traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceTo {
    /// Subject of the reports.
    pub dest: String,
    /// Percentage of the sampled messages that are traced.
    pub percent: u8,
}

impl TraceTo {
    /// Traces all sampled messages.
    pub fn all(dest: impl Into<String>) -> Self {
        TraceTo {
            dest: dest.into(),
            percent: 100,
        }
    }
}

/// The configuration of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The account's name; in operator mode, its public key.
    pub name: String,
    /// The account's public key (`A…`), if it has one.
    pub nkey: Option<String>,
    /// Users who may connect to it.
    pub users: Vec<User>,
    /// Permissions of users without their own.
    pub default_permissions: Option<Permissions>,
    /// Limits of all its clients together.
    pub limits: ClientLimits,
    /// Limits of its streams; `None` disables JetStream.
    pub jetstream: Option<JetStreamLimits>,
    /// Subjects that other accounts may import.
    pub exports: Vec<Export>,
    /// Subjects imported from other accounts.
    pub imports: Vec<Import>,
    /// Mappings of subjects that are published in the account.
    pub mappings: Vec<Mapping>,
    /// Destination of traces for messages with a `traceparent` header.
    pub trace: Option<TraceTo>,
    /// In operator mode, the account's token, which determines the keys that sign its users.
    pub authority: Option<Arc<Authority>>,
}

impl Account {
    /// Creates an account with a name only.
    pub fn new(name: impl Into<String>) -> Self {
        Account {
            name: name.into(),
            ..Account::default()
        }
    }

    /// Returns the account's display name: in operator mode the name in its token, otherwise `name`.
    pub fn tag(&self) -> &str {
        let tag = self.authority.as_ref().map(|authority| authority.tag());
        tag.filter(|tag| !tag.is_empty()).unwrap_or(&self.name)
    }
}

/// Limits on all clients of an account together; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Number of clients and leaf connections. If exceeded, the client receives `maximum account active connections
    /// exceeded` and is disconnected.
    pub connections_max: Option<u64>,
    /// Number of subscriptions. If exceeded, the client receives `maximum subscriptions exceeded` and stays
    /// connected.
    pub subscriptions_max: Option<u64>,
    /// Bytes per message. If exceeded, the client receives `Maximum Payload Violation` and is disconnected.
    pub payload_bytes_max: Option<u64>,
    /// Number of leaf connections. If exceeded, the peer receives `maximum account active connections
    /// exceeded` and is disconnected.
    pub leafnodes_max: Option<u64>,
}

/// A subject that an account exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Whether it is a stream of messages or a service.
    pub kind: ExportKind,
    /// Filter of the exported subjects.
    pub subject: String,
    /// Accounts that may import it; `None` allows all.
    pub accounts: Option<Vec<String>>,
    /// Position (from 1) of a `*` token in `subject` that must be the importer's own name.
    pub account_token_position: Option<usize>,
    /// Whether traces continue in the exporter's account.
    pub allow_trace: bool,
}

/// The kind of an export, see [`Export::kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// Importers may subscribe.
    Stream,
    /// Importers may send requests.
    Service {
        /// Number of responses to a request.
        response: ResponseKind,
        /// Maximum time for a response; `None` means the default time.
        response_threshold: Option<Duration>,
        /// Configuration of latency reports.
        latency: Option<Latency>,
    },
}

/// The number of responses to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseKind {
    /// One response.
    #[default]
    Single,
    /// Any number of responses.
    Stream,
    /// One response in chunks.
    Chunked,
}

/// Latency reports, see [`ExportKind::Service`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Subject of the reports.
    pub subject: String,
    /// Requests that are sampled.
    pub sampling: Sampling,
}

/// The sampled requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// A percentage of all requests.
    Percent(u8),
    /// Requests with the header of a tracer.
    Headers,
}

/// A subject that an account imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Whether it is a stream of messages or a service.
    pub kind: ImportKind,
    /// Name of the exporting account.
    pub account: String,
    /// Subjects in the exporting account.
    pub subject: String,
    /// Subjects in the importing account; `None` uses the exporter's.
    pub to: Option<String>,
    /// Whether traces continue in the importer's account.
    pub allow_trace: bool,
}

/// The kind of an import, see [`Import::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// Messages published in the exporting account are delivered in the importing one.
    Stream,
    /// Requests from the importing account are answered in the exporting one.
    Service {
        /// Whether the responder receives the requester's identity.
        share: bool,
    },
}

impl Import {
    /// Returns the subjects in the importing account.
    pub fn local(&self) -> &str {
        self.to.as_deref().unwrap_or(&self.subject)
    }
}

/// A mapping of the subjects that match a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    source: String,
    destinations: Vec<Destination>,
}

/// A destination of a [`Mapping`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Transform to the new subject.
    pub transform: Transform,
    /// Share of messages, in percent.
    pub weight: u8,
    /// The only cluster in which the destination applies; `None` means all clusters.
    pub cluster: Option<String>,
}

impl Mapping {
    /// Creates a mapping with a single destination.
    ///
    /// # Errors
    ///
    /// If source and destination form no valid transform.
    pub fn new(source: &str, destination: &str) -> Result<Self, AccessError> {
        Mapping::weighted(source, &[(destination, 100, None)])
    }

    /// Creates a mapping with several destinations. Each has a weight in percent, and optionally the only
    /// cluster in which it applies.
    ///
    /// # Errors
    ///
    /// If a transform is invalid, a destination is repeated for one cluster, or weights exceed 100.
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

    /// Returns the source filter.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the destinations, in configuration order.
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations
    }
}
