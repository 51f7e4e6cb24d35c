//! Hubs, seen from outside.

mod broadcast;
mod broadcast_cases;
mod broadcast_drops;
mod merge;
mod model;
mod panics;
mod partition;
