//! What the fuzz targets share.

pub mod checks;
pub mod server_checks;
