//! What decides in Fanline: topics, matching, codecs, sessions. It is handed bytes and `now`, and
//! gives back what to do. It knows nothing of sockets, files, threads, clocks or locks.
//!
//! [`Shard`] is the whole of it; the rest is what it is made of.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use fanline_engine::{Auth, Chunk, Limits, Peer, ServerInfo, Shard, ShardConfig};
//!
//! let config = ShardConfig { limits: Limits::default(), auth: Auth::Open, shards: 1, traces: false };
//! let mut shard = Shard::new(0, Arc::new(config), ServerInfo::default(), 7);
//! let now = Duration::ZERO;
//! let client = shard.open(1, Peer::default(), false, now);
//! let input = Chunk::new((*b"CONNECT {\"verbose\":false}\r\nSUB a.* 1\r\nPUB a.b 2\r\nhi\r\n").into());
//! shard.receive(client, &input, 0..input.len(), now);
//! assert!(shard.outbox(client).plain().unwrap().ends_with(b"MSG a.b 1 2\r\nhi\r\n"));
//! ```

pub mod access;
pub mod certificate;
pub mod encoding;
pub mod jetstream;
pub mod leaf;
mod limits;
pub mod mqtt;
mod nats;
mod outbox;
pub mod proxy;
mod random;
mod router;
pub mod s2;
mod shard;
mod short_bytes;
mod slack;
pub mod store;
mod topic;
mod trace;
pub mod transform;
mod trie;
pub mod websocket;

pub use access::{Access, AccountId, Auth};
pub use limits::Limits;
pub use nats::error::{ClientError, CloseReason};
pub use nats::info::{ListenerInfo, ServerInfo, TlsTold};
pub use nats::parse::{self, Fault, ParseLimits, Parsed, Publish, Verb};
pub use outbox::{Chunk, Outbox, SHARED_BYTES_MIN};
pub use random::Seed;
pub use router::{MatchMemo, Matched, Matcher};
pub use shard::{
    Backlog, Batch, ConnectionStatus, CookieCredentials, Ended, Keeper, LeafTraffic, MqttStatus,
    Peer, Place, Receipt, SHARDS_MAX, SessionId, Shard, ShardConfig, ShardStatus,
    SubscriptionStatus, TlsPeer,
};
pub use topic::{Filter, FilterError, is_literal_topic};
pub use trie::{NodeId, OutOfSteps, Trie, Vacant};
