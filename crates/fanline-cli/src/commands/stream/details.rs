//! Output of `info`, `add`, and `edit` for a stream.

use fanline_client::jetstream::{OriginInfo, StreamConfig, StreamInfo, StreamState};

use crate::failure::Failure;
use crate::show;
use crate::table::Details;

/// Prints configuration and state under a title.
pub(super) fn print(info: &StreamInfo, what: &str, happened: &str) -> Result<(), Failure> {
    let name = &info.config.name;
    let mut details = Details::new(format!("{what} {name} {happened}").trim_end().to_owned());
    details.section("Configuration");
    configuration(&mut details, &info.config);
    details.value("Created", show::time(info.created));
    for (what, origin) in info
        .mirror
        .iter()
        .map(|origin| ("Mirror", origin))
        .chain(info.sources.iter().map(|origin| ("Source", origin)))
    {
        details.value(what, origin_text(origin));
    }
    details.section("State");
    state(&mut details, &info.state);
    details.print()
}

fn origin_text(origin: &OriginInfo) -> String {
    let active = match origin.active {
        ..0 => "never".to_owned(),
        nanos => format!("{} ago", show::rounded(nanos)),
    };
    let (name, lag) = (&origin.name, show::count(origin.lag));
    let location = match &origin.external {
        Some(external) => format!(" by {}", external.api),
        None => String::new(),
    };
    let error = match &origin.error {
        Some(error) => format!(": {error}"),
        None => String::new(),
    };
    format!("{name}{location}, {lag} messages behind, last active {active}{error}")
}

fn configuration(details: &mut Details, config: &StreamConfig) {
    details.value_if(
        "Description",
        &config.description,
        !config.description.is_empty(),
    );
    details.value_if(
        "Subjects",
        config.subjects.join(", "),
        !config.subjects.is_empty(),
    );
    details.value("Storage", show::word(&config.storage));
    details.value("Retention", show::word(&config.retention));
    details.value("Replicas", config.num_replicas);
    details.value("Discard policy", show::word(&config.discard));
    details.value("Duplicate window", config.duplicate_window);
    details.value("Maximum messages", show::limit(config.max_msgs));
    details.value(
        "Maximum per subject",
        show::limit(config.max_msgs_per_subject),
    );
    details.value("Maximum bytes", show::bytes_limit(config.max_bytes));
    details.value("Maximum age", show::age_limit(config.max_age));
    details.value(
        "Maximum message size",
        show::bytes_limit(i64::from(config.max_msg_size)),
    );
    details.value("Maximum consumers", show::limit(config.max_consumers));
    details.value("Compression", show::word(&config.compression));
    if let Some(sync) = &config.sync {
        details.value("Sync", show::word(sync));
    }
    if let Some(transform) = &config.subject_transform {
        details.value(
            "Subject transform",
            format!("{} to {}", transform.src, transform.dest),
        );
    }
    if let Some(republish) = &config.republish {
        details.value(
            "Republish",
            format!("{} to {}", republish.src, republish.dest),
        );
    }
    let marker = config.subject_delete_marker_ttl;
    details.value_if("Delete marker TTL", marker, !marker.is_zero());
    for (name, is_so) in [
        ("No acknowledgements", config.no_ack),
        ("Direct get", config.allow_direct),
        ("Mirror direct get", config.mirror_direct),
        ("Rollups", config.allow_rollup_hdrs),
        ("Message TTL", config.allow_msg_ttl),
        ("Counters", config.allow_msg_counter),
        ("Atomic batches", config.allow_atomic),
        ("Schedules", config.allow_msg_schedules),
        ("Deletes denied", config.deny_delete),
        ("Purge denied", config.deny_purge),
        ("Sealed", config.sealed),
    ] {
        details.value_if(name, show::yes(is_so), is_so);
    }
    let labels = config.metadata.iter();
    for (key, value) in labels.filter(|(key, _)| !key.starts_with("_nats.")) {
        details.value("Metadata", format!("{key}={value}"));
    }
}

/// Adds the state of a stream.
pub(super) fn state(details: &mut Details, state: &StreamState) {
    details.value("Messages", show::count(state.messages));
    details.value("Bytes", show::bytes(state.bytes));
    let position = |sequence, time| match state.messages {
        0 => show::count(sequence),
        _ => format!("{} at {}", show::count(sequence), show::time(time)),
    };
    details.value("First sequence", position(state.first_seq, state.first_ts));
    details.value("Last sequence", position(state.last_seq, state.last_ts));
    details.value("Active consumers", show::count(state.consumer_count));
    details.value_if(
        "Subjects",
        show::count(state.num_subjects),
        state.num_subjects > 0,
    );
    details.value_if(
        "Deleted messages",
        show::count(state.num_deleted),
        state.num_deleted > 0,
    );
    if let Some(lost) = &state.lost {
        let listed = lost
            .msgs
            .as_ref()
            .map_or(0, |sequences| sequences.len() as u64);
        let messages = show::count(lost.messages.max(listed));
        let bytes = show::bytes(lost.bytes);
        details.value("Lost on disk", format!("{messages} messages, {bytes}"));
    }
}
