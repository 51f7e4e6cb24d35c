//! A consumer on a small stream, told as a story: what is done, and what is heard of it.

mod acks;
mod costs;
mod model;
mod policies;
mod pulling;
mod pushing;
mod restart;
mod world;

use world::World;
