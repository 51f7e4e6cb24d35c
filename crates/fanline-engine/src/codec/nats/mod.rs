//! The NATS client protocol: parser of verbs, and writer of lines. It does not depend on sessions or
//! matching.

pub(crate) mod args;
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod info;
pub mod parse;
