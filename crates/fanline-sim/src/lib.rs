//! A whole server in one thread, under a seed.

mod accounts;
mod client;
mod model;
mod run;
mod server;
mod trace;
mod violation;
mod world;

pub use run::{Covered, Failure, STEPS, run_seed, trace_seed};
pub use server::{Disks, Sabotage, Server, ServerSettings};
pub use violation::{Invariant, Violation};
