//! Checks like those in `checks`, for the code of `fanline-server`.

pub mod certificate;
mod certificate_naive;
pub mod client;
pub mod config;
