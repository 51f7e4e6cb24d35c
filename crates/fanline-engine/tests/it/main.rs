//! Integration tests.

#[path = "../../../../fuzz/src/checks/mod.rs"]
#[allow(
    unreachable_pub,
    reason = "the fuzz targets are another crate, to which these are public"
)]
mod checks;
mod corpus;
