//! As `checks`, for what `fanline-server` decides.

pub mod client;
pub mod config;
