//! A consumer on a small stream: each test performs actions and checks the messages.

mod acks;
mod costs;
mod model;
mod policies;
mod pulling;
mod pushing;
mod restart;
mod world;

use world::World;
