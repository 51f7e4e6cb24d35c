//! The gateway protocol, which connects clusters; `docs/formats/gateways.md` describes the bytes.
//!
//! Messages flow from the *dialer* of a connection to its *acceptor*, and interest flows back. The lines of
//! messages and of interest are those of [routes](super::route).

mod connect;
mod error;
mod info;
mod reply;

pub use connect::GatewayConnect;
pub use error::GatewayError;
pub use info::{GatewayCommand, GatewayInfo};
pub(crate) use reply::has_mark;
pub use reply::{ReplyMark, hash_of};

/// The version of the protocol. This one also means that traces are continued.
pub const PROTOCOL: u8 = 3;
