//! The Fanline server as a library: shards, sockets, clock, options, monitoring, and a client.

pub mod client;
mod options;

pub use options::{Addresses, Auth, Limits, Options};
