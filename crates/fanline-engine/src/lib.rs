//! The protocol logic of Fanline: subjects, matching, codecs, and sessions. The engine receives bytes and
//! `now`, and returns what to write. It uses no sockets, files, threads, clocks, or locks.
//!
//! [`Shard`] is the entry point; the other items are its parts.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use fanline_engine::{Auth, Chunk, Limits, Peer, ServerInfo, Shard, ShardConfig};
//!
//! let config = ShardConfig { limits: Limits::default(), auth: Auth::Open, shards: 1, traces: false, leafs: None, routes: None, gateways: None };
//! let mut shard = Shard::new(0, Arc::new(config), ServerInfo::default(), 7);
//! let now = Duration::ZERO;
//! let client = shard.open(1, Peer::default(), false, now);
//! let input = Chunk::new((*b"CONNECT {\"verbose\":false}\r\nSUB a.* 1\r\nPUB a.b 2\r\nhi\r\n").into());
//! shard.receive(client, &input, 0..input.len(), now);
//! assert!(shard.outbox(client).plain().unwrap().ends_with(b"MSG a.b 1 2\r\nhi\r\n"));
//! ```

mod accounts;
pub mod auth;
pub mod codec;
pub mod encoding;
mod exchange;
mod headers;
pub mod ids;
pub mod jetstream;
mod limits;
mod name_hash;
mod outbox;
mod random;
mod session;
mod shard;
mod short_bytes;
mod short_hash;
mod slack;
pub mod store;
pub mod subject;
pub mod time;
mod timers;
mod trace;

pub use auth::{Access, AccountId, Auth, Peer, TlsPeer};
pub use codec::nats::connect::CookieCredentials;
pub use codec::nats::error::{ClientError, CloseReason};
pub use codec::nats::info::{ClientUrls, ListenerInfo, ServerInfo, TlsInfo};
pub use codec::nats::parse::{self, Fault, ParseLimits, Parsed, Publish, Verb};
pub use exchange::backlog::Backlog;
pub use exchange::router::{MatchMemo, Matched, Matcher};
pub use limits::{AccountLimits, Limits, LinkLimits, MqttLimits};
pub use outbox::{Chunk, Outbox, SHARED_BYTES_MIN};
pub use random::Seed;
pub use session::{
    ConnectionStatus, MqttStatus, Receipt, SubscriptionStatus, gateway, leaf, route,
};
pub use shard::{
    Batch, BatchCursor, Ended, JetStreamService, LeafTraffic, SHARDS_MAX, SessionId, Shard,
    ShardConfig, ShardStatus,
};
pub use subject::trie::{NodeId, OutOfSteps, Trie, Vacant};
pub use subject::{Filter, FilterError, is_literal_subject};
