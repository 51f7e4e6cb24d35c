//! Accounts: spaces of topics that know nothing of each other, but for what one exports and another
//! imports.

use std::sync::Arc;
use std::time::Duration;

use super::error::AccessError;
use super::operator::Authority;
use super::permissions::Permissions;
use super::user::User;
use crate::limits::AccountLimits as JetStreamLimits;
use crate::subject::Filter;
use crate::subject::transform::{Transform, TransformError};

/// The account of those who were given no other.
pub const GLOBAL_ACCOUNT: &str = "$G";
/// The account to which the server tells what happens, unless another is named.
pub const SYSTEM_ACCOUNT: &str = "$SYS";
/// The user of everybody who shows no credentials where only the system account is configured.
pub const ANYBODY: &str = "anybody";

/// An account's place in [`Access::accounts`](super::Access::accounts). It is the same on every shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub u32);

impl AccountId {
    /// `$G`.
    pub const GLOBAL: AccountId = AccountId(0);
    /// The system account.
    pub const SYSTEM: AccountId = AccountId(1);

    /// A small number, for tables by account.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where traces go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceTo {
    /// The topic.
    pub dest: String,
    /// Of how many messages in a hundred that ask for it.
    pub percent: u8,
}

impl TraceTo {
    /// Of all messages.
    pub fn all(dest: impl Into<String>) -> Self {
        TraceTo {
            dest: dest.into(),
            percent: 100,
        }
    }
}

/// One account, as it was configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its name; in operator mode, its public key.
    pub name: String,
    /// Its public key (`A…`), if it has one.
    pub nkey: Option<String>,
    /// Who may connect to it.
    pub users: Vec<User>,
    /// For users without permissions of their own.
    pub default_permissions: Option<Permissions>,
    /// What its clients may use.
    pub limits: ClientLimits,
    /// What its streams may use; `None` is no JetStream.
    pub jetstream: Option<JetStreamLimits>,
    /// What others may import.
    pub exports: Vec<Export>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// Other names for what is published in it.
    pub mappings: Vec<Mapping>,
    /// Where traces of messages with a `traceparent` header go.
    pub trace: Option<TraceTo>,
    /// In operator mode, who signs its users.
    pub authority: Option<Arc<Authority>>,
}

impl Account {
    /// An account with nothing but a name.
    pub fn new(name: impl Into<String>) -> Self {
        Account {
            name: name.into(),
            ..Account::default()
        }
    }

    /// What people call it: in operator mode what its token says, else its name.
    pub fn tag(&self) -> &str {
        let tag = self.authority.as_ref().map(|authority| authority.tag());
        tag.filter(|tag| !tag.is_empty()).unwrap_or(&self.name)
    }
}

/// What the clients of an account may use together; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections. More: `maximum account active connections exceeded`, closed.
    pub connections_max: Option<u64>,
    /// Subscriptions. More: `maximum subscriptions exceeded`, the connection stays.
    pub subscriptions_max: Option<u64>,
    /// Bytes of one message. More: `Maximum Payload Violation`, closed.
    pub payload_bytes_max: Option<u64>,
    /// Leaf nodes.
    pub leafnodes_max: Option<u64>,
}

/// What an account lets others have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// A stream of messages, or a service that answers.
    pub kind: ExportKind,
    /// The filter of topics that it is about.
    pub subject: String,
    /// The accounts that may import it; everybody when `None`.
    pub accounts: Option<Vec<String>>,
    /// The token (from 1) of `subject`, a `*`, in which only the importer's own name is allowed.
    pub account_token_position: Option<usize>,
    /// Whether traces of messages go on beyond it.
    pub allow_trace: bool,
}

/// See [`Export::kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// Others may subscribe.
    Stream,
    /// Others may send requests.
    Service {
        /// How many answers there are to a request.
        response: ResponseKind,
        /// How long an answer may take; the default when `None`.
        response_threshold: Option<Duration>,
        /// Where it is told how long answers took.
        latency: Option<Latency>,
    },
}

/// How many answers a request gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseKind {
    /// One.
    #[default]
    Single,
    /// Any number.
    Stream,
    /// One in pieces.
    Chunked,
}

/// See [`ExportKind::Service`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The topic of the reports.
    pub subject: String,
    /// Which requests are looked at.
    pub sampling: Sampling,
}

/// Which requests are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// So many in a hundred.
    Percent(u8),
    /// Those whose headers ask for it.
    Headers,
}

/// What an account has from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// A stream of messages, or a service that answers.
    pub kind: ImportKind,
    /// The name of the account that exports it.
    pub account: String,
    /// The topics there.
    pub subject: String,
    /// The topics here; the same when `None`.
    pub to: Option<String>,
    /// Whether traces of messages go on beyond it.
    pub allow_trace: bool,
}

/// See [`Import::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// What is published there is seen here.
    Stream,
    /// Requests here are answered there.
    Service {
        /// Whether who answers is told who asks.
        share: bool,
    },
}

impl Import {
    /// The topics here.
    pub fn local(&self) -> &str {
        self.to.as_deref().unwrap_or(&self.subject)
    }
}

/// Other names for what is published to a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    source: String,
    destinations: Vec<Destination>,
}

/// One of the names that a [`Mapping`] may give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// What makes the name.
    pub transform: Transform,
    /// In how many cases of a hundred.
    pub weight: u8,
    /// Only in this cluster.
    pub cluster: Option<String>,
}

impl Mapping {
    /// One name in all cases.
    ///
    /// # Errors
    /// When the two are no transform.
    pub fn new(source: &str, destination: &str) -> Result<Self, AccessError> {
        Mapping::weighted(source, &[(destination, 100, None)])
    }

    /// Several names, each with a weight of at most 100 and the cluster for which it is.
    ///
    /// # Errors
    /// When one is no transform, a name stands twice for one cluster, or weights are more than 100.
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

    /// What it is about.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names, in the order in which they were given.
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations
    }
}
