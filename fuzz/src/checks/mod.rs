//! What must hold for any input. Each check takes the bytes of one corpus file and panics when
//! something does not hold; the fuzz targets and `fanline-engine`'s tests both call them.

pub mod connect;
pub mod filter;
pub mod jetstream;
pub mod jwt;
pub mod leaf;
pub mod mqtt;
pub mod parser;
pub mod proxy;
pub mod s2;
pub mod session;
pub mod websocket;
