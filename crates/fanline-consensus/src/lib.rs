//! The consensus of a node: its write-ahead log, and the interface to a consensus library.
//!
//! Nothing of Fanline's server uses this crate yet. It is the first part of replicated streams.

pub mod noraft_group;
pub mod port;
pub mod wal;
