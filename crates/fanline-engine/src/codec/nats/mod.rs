//! The NATS client protocol: verbs in, lines out. Knows nothing of sessions or matching.

pub(crate) mod args;
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod info;
pub mod parse;
