//! Properties that must hold for any input. Each check takes the bytes of one corpus file and panics if a
//! property does not hold. The fuzz targets and `fanline-engine`'s tests both call them.

pub mod connect;
pub mod delivery;
mod delivery_model;
mod delivery_received;
pub mod filter;
pub mod gateway;
pub mod jetstream;
mod jetstream_account;
pub mod jwt;
pub mod kept;
pub mod leaf;
mod memory_disk;
pub mod mqtt;
pub mod mqtt_kept;
pub mod parser;
pub mod proxy;
pub mod restore;
pub mod route;
pub mod s2;
pub mod session;
mod simulation;
pub mod store;
pub mod websocket;
