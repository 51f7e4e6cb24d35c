//! Versions of the server.

/// The nats-server version that INFO reports, because the behavior of clients depends on it.
pub const COMPATIBLE_VERSION: &str = "2.15.2";
/// Fanline's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
