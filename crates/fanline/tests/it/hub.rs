//! Hubs, seen from outside.

mod attach;
mod broadcast;
mod broadcast_cases;
mod broadcast_drops;
mod merge;
mod merge_model;
mod merge_partition_panics;
mod merge_partition_stress;
mod model;
mod panics;
mod partition;
mod partition_model;
