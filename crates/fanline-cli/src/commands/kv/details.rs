//! Output of `info`, `add`, and `edit` for a bucket.

use fanline_client::jetstream::StreamInfo;

use crate::failure::Failure;
use crate::show;
use crate::table::Details;

/// Returns the name of a bucket from its stream.
pub(super) fn bucket_of(info: &StreamInfo) -> &str {
    let name = &info.config.name;
    name.strip_prefix("KV_").unwrap_or(name)
}

pub(super) fn print(info: &StreamInfo) -> Result<(), Failure> {
    let (config, state) = (&info.config, &info.state);
    let mut details = Details::new(format!("Bucket {}", bucket_of(info)));
    details.section("Configuration");
    details.value_if(
        "Description",
        &config.description,
        !config.description.is_empty(),
    );
    details.value("History per key", config.max_msgs_per_subject);
    details.value("TTL of values", show::age_limit(config.max_age));
    let marker = config.subject_delete_marker_ttl;
    details.value_if("TTL of delete markers", marker, !marker.is_zero());
    details.value("Maximum bucket size", show::bytes_limit(config.max_bytes));
    details.value(
        "Maximum value size",
        show::bytes_limit(i64::from(config.max_msg_size)),
    );
    details.value("Storage", show::word(&config.storage));
    details.value("Compression", show::word(&config.compression));
    details.value("Replicas", config.num_replicas);
    if let Some(mirror) = &config.mirror {
        details.value("Mirror of", &mirror.name);
    }
    details.value("Stream", &config.name);
    details.value("Created", show::time(info.created));
    details.section("State");
    details.value("Keys", show::count(state.num_subjects));
    details.value("Values", show::count(state.messages));
    details.value("Size", show::bytes(state.bytes));
    details.value("Last change", show::ago(state.last_ts));
    details.print()
}
