//! The load generator: raw blocking sockets on threads. It writes prebuilt bytes and counts received bytes.
//!
//! The generator runs on the same cores as the measured server, and takes CPU time from it. So the generator
//! counts bytes where possible, instead of processing each message.

pub(crate) mod awake;
pub(crate) mod buffer;
pub(crate) mod connection;
pub(crate) mod consume;
pub(crate) mod frames;
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
