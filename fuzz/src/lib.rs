//! The checks behind the fuzz targets.

pub mod checks;
pub mod server_checks;
