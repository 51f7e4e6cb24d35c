//! The route protocol, which connects the servers of one cluster; `docs/formats/routes.md` describes the
//! bytes.
//!
//! The *dialer* opened the TCP connection, the *acceptor* accepted it. After the handshake, both sides behave
//! the same.

mod connect;
mod error;
mod info;
pub mod parse;
mod write;

pub use connect::RouteConnect;
pub use error::RouteError;
pub use info::{Carries, GossipMode, RouteInfo};
pub use parse::split_passed_on;
pub use write::{passed_on, write_head, write_interest, write_leaf_head, write_start};

/// Largest length in bytes of a line, without a payload. If a line is longer, the peer receives `maximum
/// control line exceeded` and is disconnected.
pub const ROUTE_LINE_BYTES_MAX: usize = 64 * 1024;

/// Largest size in bytes of a message. `max_payload` limits clients only, and servers of one cluster may have
/// different limits. A peer that sends a larger message is disconnected.
pub const ROUTE_PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest number of slots of a pool. Further slots of a peer are not used.
pub const ROUTE_POOL_SIZE_MAX: u32 = 1024;

/// The version of the protocol. This one also means that traces are continued.
pub const PROTOCOL: u8 = 3;
