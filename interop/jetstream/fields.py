"""Every field of the configuration of streams and consumers, with values of other types."""

from jetstream.cases import DELETE, FORGET, SECOND, consumer, create, each, update

VALUES = ["x", "", 3, -3, 1.5, True, False, [], ["x"], [3], {}, {"x": "y"}, {"x": 3}]

STREAM = [
    "description", "subjects", "retention", "max_consumers", "max_msgs", "max_bytes", "max_age", "max_msgs_per_subject",
    "max_msg_size", "discard", "storage", "num_replicas", "no_ack", "duplicate_window", "placement", "mirror", "sources",
    "compression", "first_seq", "subject_transform", "republish", "allow_direct", "mirror_direct", "sealed", "deny_delete",
    "deny_purge", "allow_rollup_hdrs", "consumer_limits", "discard_new_per_subject", "metadata", "allow_msg_ttl",
    "subject_delete_marker_ttl", "allow_msg_counter", "allow_atomic", "allow_msg_schedules", "persist_mode", "allow_batched",
    "pedantic", "template_owner",
]

CONSUMER = [
    "name", "durable_name", "description", "deliver_policy", "opt_start_seq", "opt_start_time", "ack_policy", "ack_wait", "max_deliver",
    "backoff", "filter_subject", "filter_subjects", "replay_policy", "rate_limit_bps", "sample_freq", "max_waiting", "max_ack_pending",
    "flow_control", "headers_only", "max_batch", "max_expires", "max_bytes", "idle_heartbeat", "deliver_subject", "deliver_group",
    "inactive_threshold", "num_replicas", "mem_storage", "metadata", "pause_until", "priority_groups", "priority_policy", "priority_timeout",
    "direct", "sourcing",
]

# Fields of nested objects.
STREAM_INSIDE = {
    "placement": ["cluster", "tags", "preferred"],
    "consumer_limits": ["inactive_threshold", "max_ack_pending"],
    "subject_transform": ["src", "dest"],
    "republish": ["src", "dest", "headers_only"],
    "mirror": ["name", "opt_start_seq", "opt_start_time", "filter_subject", "subject_transforms", "external", "consumer"],
}


def values(field):
    """A consumer that ends after 3 ns may be gone before the next request or not, so its threshold is in seconds."""
    return [value * SECOND if field == "inactive_threshold" and value == 3 else value for value in VALUES]


CASES = [
    each(f"field of a new stream: {name}", create, [{name: value} for value in VALUES], after=DELETE)
    for name in STREAM
] + [
    each(f"field of a new stream: {outer}.{name}", create, [{outer: {name: value}} for value in VALUES], after=DELETE)
    for outer, names in STREAM_INSIDE.items()
    for name in names
] + [
    each(f"field of a stream: {name}", update, [{name: value} for value in VALUES], before=[create()])
    for name in STREAM if name != "storage"
] + [
    each(f"field of a new consumer: {name}", consumer, [{name: value} for value in values(name)], before=[create()], after=FORGET)
    for name in CONSUMER
] + [
    each(f"field of a consumer: {name}", consumer, [{name: value} for value in values(name)], before=[create(), consumer()])
    for name in CONSUMER
] + [
    each(f"field of a new push consumer: {name}", consumer, [{"deliver_subject": "d.x", name: value} for value in VALUES], before=[create()], after=FORGET)
    for name in ("rate_limit_bps", "flow_control", "idle_heartbeat", "deliver_group", "max_waiting", "max_ack_pending", "priority_groups", "direct")
]
