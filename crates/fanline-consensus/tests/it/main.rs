//! Integration tests.

mod cluster;
#[path = "../../../../fuzz/src/consensus_checks/mod.rs"]
#[allow(
    unreachable_pub,
    reason = "the fuzz targets are another crate, to which these are public"
)]
mod consensus_checks;
mod corpus;
