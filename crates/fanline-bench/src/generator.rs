//! The load generator: raw blocking sockets on threads, prebuilt bytes out, bytes counted in.
//!
//! It runs on the same cores as the server under test, so whatever it spends is missing there. It
//! therefore does no work per message where it can count bytes instead.

pub(crate) mod awake;
pub(crate) mod connection;
pub(crate) mod consume;
pub(crate) mod frames;
pub(crate) mod idle;
pub(crate) mod incoming;
pub(crate) mod interest;
pub(crate) mod jetstream;
pub(crate) mod poller;
pub(crate) mod receive;
pub(crate) mod requests;
pub(crate) mod throughput;
pub(crate) mod window;
