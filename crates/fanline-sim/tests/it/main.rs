//! Runs of simulated servers.

mod faults;
mod seeds;
