//! Commands that connect to a server: one file per command, one folder per kind of object. `bucket` is shared
//! by two folders.

pub(crate) mod bucket;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod consumer;
pub(crate) mod kv;
pub(crate) mod man;
pub(crate) mod object;
pub(crate) mod publish;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod rtt;
pub(crate) mod stream;
pub(crate) mod subscribe;
pub(crate) mod top;
