//! The NATS client protocol: parser of verbs, writer of lines. Knows nothing of sessions or matching.

pub(crate) mod args;
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod info;
pub mod parse;
