//! The consensus of a node: its write-ahead log.
//!
//! Nothing of Fanline's server uses this crate yet. It is the first part of replicated streams.

pub mod wal;
