//! The load generator: raw blocking sockets on threads. It writes prebuilt bytes and counts received bytes.
//!
//! The generator runs on the same cores as the measured server, and takes CPU time from it. So the generator
//! counts bytes where possible, instead of processing each message.

use std::time::Duration;

use hdrhistogram::Histogram;

pub(crate) mod awake;
pub(crate) mod background;
pub(crate) mod buffer;
pub(crate) mod confirm;
pub(crate) mod connection;
pub(crate) mod consume;
pub(crate) mod frames;
pub(crate) mod incoming;
pub(crate) mod interest;
pub(crate) mod jetstream;
pub(crate) mod mqtt;
pub(crate) mod paced;
pub(crate) mod poller;
pub(crate) mod receive;
pub(crate) mod requests;
pub(crate) mod side;
pub(crate) mod throughput;
pub(crate) mod window;

/// What one run of the generator has sent.
pub(crate) struct Outcome {
    /// Number of requests, or of deliveries; without subscribers, of publications.
    pub(crate) messages: u64,
    /// Time from the first write to the last byte of the last recipient. Without subscribers, to the last PONG.
    pub(crate) elapsed: Duration,
    /// For each timed request, the nanoseconds from before its write to after the read of its reply.
    pub(crate) latency: Option<Histogram<u64>>,
}

impl Outcome {
    /// Returns the outcome of a run that times no single messages.
    pub(crate) fn untimed(messages: u64, elapsed: Duration) -> Self {
        Self {
            messages,
            elapsed,
            latency: None,
        }
    }
}
