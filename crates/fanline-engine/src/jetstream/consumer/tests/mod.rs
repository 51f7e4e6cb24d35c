//! Tests of consumers on a small stream: each test performs actions and checks the resulting messages.

mod acks;
mod costs;
mod model;
mod policies;
mod pulling;
mod pushing;
mod restart;
mod simulation;

use simulation::Simulation;
