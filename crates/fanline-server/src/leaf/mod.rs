//! Leaf nodes: the servers that this one attaches to are dialled here. What crosses a link is the engine's
//! business, and the shell of the first shard serves it.

mod address;
mod hub;
mod listener;
mod proxy;

pub(crate) use address::LeafAddress;
pub(crate) use hub::{Dialled, Hub, identify, shake_hands};
pub(crate) use listener::{
    check, check_version, listener_info, listener_info_reloaded, listener_reloaded,
};
pub(crate) use proxy::{Proxy, check_proxy};
