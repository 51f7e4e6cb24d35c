//! Options and connections of leaf nodes. The engine implements the protocol, and the first shard serves the
//! connections.

mod address;
mod hub;
mod listener;
mod proxy;

pub(crate) use address::LeafAddress;
pub(crate) use hub::{Dialled, Hub, credentials_for, tls_handshake};
pub(crate) use listener::{
    check, check_version, listener_info, listener_info_reloaded, listener_reloaded,
};
pub(crate) use proxy::{Proxy, check_proxy};
