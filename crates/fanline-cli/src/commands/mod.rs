//! The commands that talk to a server: one command, one file.

pub(crate) mod completions;
pub(crate) mod publish;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod rtt;
pub(crate) mod subscribe;
