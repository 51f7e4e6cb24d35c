//! Versions that the server reports.

/// The nats-server version that clients are told, because they branch on it.
pub const COMPATIBLE_VERSION: &str = "2.15.2";
/// Fanline's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
