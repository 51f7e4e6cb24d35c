//! Integration tests.

mod cluster;
#[path = "../../../../fuzz/src/consensus_checks/mod.rs"]
#[allow(
    unreachable_pub,
    reason = "the fuzz targets are another crate, to which these are public"
)]
mod consensus_checks;
mod corpus;
mod replicas;

/// Returns the seeds of `FANLINE_SEEDS`, as `from..to`, or the first of all.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let text = std::env::var("FANLINE_SEEDS").ok();
    let range = text.and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    range.unwrap_or(0..count)
}
