//! Hubs, seen from outside.

mod broadcast;
mod merge;
mod model;
mod panics;
mod partition;
