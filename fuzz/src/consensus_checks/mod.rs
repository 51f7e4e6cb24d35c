//! Checks like those in `checks`, for the code of `fanline-consensus`.

pub mod entries;
#[path = "../checks/memory_disk.rs"]
#[allow(dead_code, reason = "other checks use the rest")]
mod memory_disk;
pub mod wal;
