//! The load generator: raw blocking sockets on threads. It writes prebuilt bytes and counts received bytes.
//!
//! It runs on the same cores as the measured server, so its CPU time is missing there. It therefore counts
//! bytes instead of processing each message where possible.

pub(crate) mod awake;
pub(crate) mod connection;
pub(crate) mod consume;
pub(crate) mod frames;
pub(crate) mod idle;
pub(crate) mod incoming;
pub(crate) mod interest;
pub(crate) mod jetstream;
pub(crate) mod mqtt;
pub(crate) mod poller;
pub(crate) mod receive;
pub(crate) mod requests;
pub(crate) mod side;
pub(crate) mod throughput;
pub(crate) mod window;
