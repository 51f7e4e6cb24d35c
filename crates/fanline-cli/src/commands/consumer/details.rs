//! Output of `info`, `add`, and `edit` for a consumer.

use fanline_client::jetstream::{ConsumerConfig, ConsumerInfo, Nanos, Position, Timestamp};

use crate::failure::Failure;
use crate::show;
use crate::table::Details;

pub(super) fn print(info: &ConsumerInfo, happened: &str) -> Result<(), Failure> {
    let ConsumerInfo {
        stream_name, name, ..
    } = info;
    let title = format!("Consumer {stream_name} > {name} {happened}");
    let mut details = Details::new(title.trim_end().to_owned());
    details.section("Configuration");
    configuration(&mut details, &info.config);
    details.value("Created", show::time(info.created));
    details.section("State");
    state(&mut details, info);
    details.print()
}

fn configuration(details: &mut Details, config: &ConsumerConfig) {
    details.value_if(
        "Description",
        &config.description,
        !config.description.is_empty(),
    );
    let is_push = config.is_push();
    match is_push {
        true => details.value("Pushes to", &config.deliver_subject),
        false => details.value("Pull mode", "yes"),
    }
    details.value_if(
        "Deliver group",
        &config.deliver_group,
        !config.deliver_group.is_empty(),
    );
    details.value("Durable", show::yes(config.is_durable()));
    let filters: Vec<&str> = config.filters().collect();
    details.value_if("Filter", filters.join(", "), !filters.is_empty());
    details.value("Deliver policy", deliver_text(config));
    details.value("Ack policy", show::word(&config.ack_policy));
    details.value_if("Ack wait", config.ack_wait, !config.ack_wait.is_zero());
    details.value("Replay policy", show::word(&config.replay_policy));
    details.value("Maximum deliveries", show::limit(config.max_deliver));
    let backoff: Vec<String> = config.backoff.iter().map(Nanos::to_string).collect();
    details.value_if("Backoff", backoff.join(", "), !backoff.is_empty());
    details.value("Maximum ack pending", show::limit(config.max_ack_pending));
    let per_subject = config.max_ack_pending_per_subject;
    details.value_if(
        "Maximum ack pending per subject",
        per_subject,
        per_subject > 0,
    );
    let waiting = config.max_waiting;
    details.value_if("Maximum waiting pulls", waiting, !is_push && waiting > 0);
    details.value_if("Maximum pull batch", config.max_batch, config.max_batch > 0);
    let expires = config.max_expires;
    details.value_if("Maximum pull expire", expires, !expires.is_zero());
    details.value_if(
        "Maximum pull bytes",
        show::bytes_limit(config.max_bytes),
        config.max_bytes > 0,
    );
    let heartbeat = config.idle_heartbeat;
    details.value_if("Idle heartbeat", heartbeat, !heartbeat.is_zero());
    let threshold = config.inactive_threshold;
    details.value_if("Inactive threshold", threshold, !threshold.is_zero());
    let groups = config.priority_groups.join(", ");
    details.value_if("Priority groups", &groups, !groups.is_empty());
    details.value_if(
        "Priority policy",
        show::word(&config.priority_policy),
        !groups.is_empty(),
    );
    for (name, is_so) in [
        ("Flow control", config.flow_control),
        ("Headers only", config.headers_only),
        ("State in memory", config.mem_storage),
        ("Fair subjects", config.fair_subjects),
    ] {
        details.value_if(name, show::yes(is_so), is_so);
    }
    let labels = config.metadata.iter();
    for (key, value) in labels.filter(|(key, _)| !key.starts_with("_nats.")) {
        details.value("Metadata", format!("{key}={value}"));
    }
}

fn deliver_text(config: &ConsumerConfig) -> String {
    let word = show::word(&config.deliver_policy);
    match (config.opt_start_seq, config.opt_start_time) {
        (0, None) => word,
        (0, Some(time)) => format!("{word} {}", show::time(time)),
        (sequence, _) => format!("{word} {sequence}"),
    }
}

fn state(details: &mut Details, info: &ConsumerInfo) {
    let position = |position: &Position| {
        let last = position.last_active.unwrap_or(Timestamp::ZERO);
        let active = match last.is_zero() {
            true => String::new(),
            false => format!(", {}", show::ago(last)),
        };
        let consumer = show::count(position.consumer_seq);
        let stream = show::count(position.stream_seq);
        format!("consumer sequence {consumer}, stream sequence {stream}{active}")
    };
    details.value("Last delivered", position(&info.delivered));
    details.value("Acknowledgement floor", position(&info.ack_floor));
    details.value("Outstanding acks", show::count(info.num_ack_pending));
    details.value("Redelivered", show::count(info.num_redelivered));
    details.value("Unprocessed", show::count(info.num_pending));
    details.value_if(
        "Waiting pulls",
        show::count(info.num_waiting),
        !info.config.is_push(),
    );
    let remaining = info.pause_remaining.unwrap_or(0);
    details.value_if("Paused for", show::rounded(remaining), info.paused);
}
