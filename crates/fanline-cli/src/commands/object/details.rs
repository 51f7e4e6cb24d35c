//! Output for object stores and objects.

use fanline_client::jetstream::{ObjectInfo, StreamInfo};

use crate::failure::Failure;
use crate::show;
use crate::table::{Details, Table};

/// Returns the name of a store from its stream.
pub(super) fn bucket_of(info: &StreamInfo) -> &str {
    let name = &info.config.name;
    name.strip_prefix("OBJ_").unwrap_or(name)
}

pub(super) fn print_store(info: &StreamInfo) -> Result<(), Failure> {
    let config = &info.config;
    let mut details = Details::new(format!("Object store {}", bucket_of(info)));
    details.section("Configuration");
    details.value_if(
        "Description",
        &config.description,
        !config.description.is_empty(),
    );
    details.value("TTL of objects", show::age_limit(config.max_age));
    details.value("Maximum size", show::bytes_limit(config.max_bytes));
    details.value("Storage", show::word(&config.storage));
    details.value("Compression", show::word(&config.compression));
    details.value("Replicas", config.num_replicas);
    details.value("Sealed", show::yes(config.sealed));
    details.value("Stream", &config.name);
    details.value("Created", show::time(info.created));
    details.section("State");
    details.value("Size", show::bytes(info.state.bytes));
    details.value("Last change", show::ago(info.state.last_ts));
    details.print()
}

pub(super) fn print_object(info: &ObjectInfo) -> Result<(), Failure> {
    let mut details = Details::new(format!("Object {} > {}", info.bucket, info.meta.name));
    details.section("Information");
    let meta = &info.meta;
    details.value_if(
        "Description",
        &meta.description,
        !meta.description.is_empty(),
    );
    if let Some(link) = info.link() {
        details.value("Link to", format!("{} > {}", link.bucket, link.name));
    }
    let size = format!(
        "{} ({} bytes)",
        show::bytes(info.size),
        show::count(info.size)
    );
    details.value("Size", size);
    details.value("Stored", show::time(info.mtime));
    details.value("Chunks", show::count(info.chunks));
    details.value("Digest", &info.digest);
    for (name, values) in &meta.headers {
        details.value("Header", format!("{name}: {}", values.join(", ")));
    }
    for (key, value) in &meta.metadata {
        details.value("Metadata", format!("{key}={value}"));
    }
    details.print()
}

pub(super) fn print_objects(objects: &[ObjectInfo]) -> Result<(), Failure> {
    let mut table = Table::new(["Name", ">Size", "Stored", "Description"]);
    for info in objects {
        table.row([
            info.meta.name.clone(),
            show::bytes(info.size),
            show::time(info.mtime),
            info.meta.description.clone(),
        ]);
    }
    table.print()
}
