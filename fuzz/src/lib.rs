//! The checks behind the fuzz targets.

pub mod checks;
pub mod consensus_checks;
pub mod server_checks;
