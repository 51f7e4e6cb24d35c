//! The server over real sockets: each hazard of the design has its test here.

mod admission;
mod churn;
mod embedding;
mod errors;
mod jetstream;
mod lifecycle;
#[cfg(target_os = "linux")]
mod memory;
mod monitoring;
mod order;
mod queue_groups;
mod raw;
mod slow_subscriber;
mod sockets;
mod split_writes;
mod tls;
mod transports;
mod visibility;
mod websocket;
