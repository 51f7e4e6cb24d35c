//! The consensus of a node: its write-ahead log, groups over a consensus library, and the folders that they replicate.
//!
//! Nothing of Fanline's server uses this crate yet. It is the first part of replicated streams.

mod bytes;
pub mod folders;
#[cfg(test)]
mod group_tests;
pub mod node;
pub mod noraft_group;
#[cfg(feature = "openraft")]
pub mod openraft_group;
pub mod port;
pub mod wal;
