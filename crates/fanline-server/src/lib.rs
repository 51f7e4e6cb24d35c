//! The Fanline server as a library: shards, sockets, clock, options, monitoring, and a client.

pub mod client;
mod control;
mod identity;
mod listen;
mod monitoring;
mod options;
mod ports_file;
mod server;
mod shell;
mod sync;

pub use options::{Addresses, Auth, Limits, Options};
pub use server::{COMPATIBLE_VERSION, Handle, Server, StartError, VERSION};
