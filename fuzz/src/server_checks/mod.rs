//! Checks like those in `checks`, for the code of `fanline-server`.

pub mod client;
pub mod config;
