//! Tests of the server over real sockets. Each file tests one risk of the design.

mod access;
mod accounts;
mod admission;
mod at_rest;
mod bridge;
mod callout;
mod churn;
mod claims;
mod client_formats;
mod cluster;
mod combinations;
mod corpus;
mod dashboard;
mod embedding;
mod errors;
mod folder;
mod gateway;
mod jetstream;
mod leaf;
mod leaf_carried;
mod lifecycle;
#[cfg(target_os = "linux")]
mod memory;
mod monitoring;
mod mqtt;
mod operator;
mod order;
mod queue_groups;
mod raw;
mod reload;
mod replication;
#[path = "../../../../fuzz/src/server_checks/mod.rs"]
#[allow(
    unreachable_pub,
    reason = "the fuzz targets are another crate, to which these are public"
)]
mod server_checks;
mod slow_subscriber;
mod sockets;
mod split_writes;
mod system;
mod tls;
mod transports;
mod visibility;
mod websocket;
