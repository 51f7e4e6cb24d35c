//! As `checks`, for what `fanline-server` decides.

pub mod config;
