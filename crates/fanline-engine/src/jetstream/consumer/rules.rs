//! Rules of a consumer: its checked configuration in a form for quick use during deliveries.

use crate::jetstream::{AckPolicy, ConsumerConfig, Nanos, PriorityPolicy, ReplayPolicy};

/// Default time without use after which an ephemeral consumer is deleted.
const EPHEMERAL_INACTIVE_NANOS: u64 = 5_000_000_000;
/// Default time without a request after which the pinned client is unpinned.
const PRIORITY_TIMEOUT_NANOS: u64 = 120_000_000_000;
/// Default time to wait for an acknowledgement.
const ACK_WAIT_NANOS: u64 = 30_000_000_000;

/// Metadata label that sets a Fanline option, for clients that cannot send the option's field.
const FAIR_LABEL: &str = "fanline.fair_subjects";
/// Metadata label that sets a Fanline option for which the configuration has no field.
const DURABLE_ONLY_LABEL: &str = "fanline.durable_only";

/// Rules of a consumer. An unlimited value is `None`, `usize::MAX`, or 0, depending on its type.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) ack_policy: AckPolicy,
    /// Delays before the second, third, … delivery. The last delay applies to all further ones.
    waits: Vec<u64>,
    pub(super) deliveries_max: Option<u32>,
    pub(super) pending_max: usize,
    /// Maximum number of unacknowledged records of one subject.
    pub(super) pending_per_subject_max: usize,
    pub(super) fair_subjects: bool,
    /// Whether only durable records are delivered, which a crash cannot remove.
    pub(super) durable_only: bool,
    pub(super) replay_original: bool,
    pub(super) headers_only: bool,
    /// Percentage of acknowledgements that are reported as events.
    pub(super) sampled_percent: u32,
    pub(super) inactive_nanos: Option<u64>,

    pub(super) waiting_max: usize,
    pub(super) batch_max: i64,
    pub(super) expires_max: Nanos,
    pub(super) bytes_max: i64,
    pub(super) priority: PriorityPolicy,
    pub(super) priority_timeout_nanos: u64,

    pub(super) heartbeat_nanos: Option<u64>,
    pub(super) bits_per_second: Option<u64>,
}

impl Rules {
    /// Returns the rules of a checked configuration.
    pub(super) fn new(config: &ConsumerConfig) -> Self {
        let waits = match config.backoff.as_slice() {
            [] => vec![positive(config.ack_wait).unwrap_or(ACK_WAIT_NANOS)],
            backoff => backoff
                .iter()
                .map(|wait| positive(*wait).unwrap_or(1))
                .collect(),
        };
        let needs_acks = config.ack_policy != AckPolicy::None;
        Rules {
            ack_policy: config.ack_policy,
            waits,
            deliveries_max: u32::try_from(config.max_deliver)
                .ok()
                .filter(|max| *max > 0),
            pending_max: limit(if needs_acks {
                config.max_ack_pending
            } else {
                0
            }),
            pending_per_subject_max: limit(match needs_acks {
                true => config.pending_per_subject().unwrap_or(0),
                false => 0,
            }),
            fair_subjects: config.fair_subjects || label(config, FAIR_LABEL) == Some("true"),
            durable_only: config.direct || label(config, DURABLE_ONLY_LABEL) == Some("true"),
            replay_original: config.replay_policy == ReplayPolicy::Original,
            headers_only: config.headers_only,
            sampled_percent: percent(&config.sample_freq),
            inactive_nanos: positive(config.inactive_threshold)
                .or_else(|| (!config.is_durable()).then_some(EPHEMERAL_INACTIVE_NANOS)),
            waiting_max: limit(config.max_waiting),
            batch_max: config.max_batch,
            expires_max: config.max_expires,
            bytes_max: config.max_bytes,
            priority: config.priority_policy,
            priority_timeout_nanos: positive(config.priority_timeout)
                .unwrap_or(PRIORITY_TIMEOUT_NANOS),
            heartbeat_nanos: positive(config.idle_heartbeat),
            bits_per_second: Some(config.rate_limit_bps).filter(|bits| *bits > 0),
        }
    }

    /// Returns the time at which a record is redelivered after its nth delivery.
    pub(super) fn deadline(&self, now: u64, deliveries: u32) -> u64 {
        match self.ack_policy {
            // With flow control, records are redelivered when the subscriber returns.
            AckPolicy::None | AckPolicy::FlowControl => u64::MAX,
            AckPolicy::All | AckPolicy::Explicit => {
                let nth = usize::try_from(deliveries.max(1) - 1).unwrap_or(usize::MAX);
                let wait = self.waits.get(nth).or_else(|| self.waits.last());
                now.saturating_add(wait.copied().unwrap_or(ACK_WAIT_NANOS))
            }
        }
    }

    /// Returns whether delivered records wait for acknowledgements.
    pub(super) fn needs_acks(&self) -> bool {
        self.ack_policy != AckPolicy::None
    }

    /// Returns whether a record is not redelivered after this number of deliveries.
    pub(super) fn is_last_delivery(&self, deliveries: u32) -> bool {
        self.deliveries_max.is_some_and(|max| deliveries >= max)
    }

    /// Returns whether the consumer has lanes, which queue records by subject.
    pub(super) fn has_lanes(&self) -> bool {
        self.fair_subjects || self.pending_per_subject_max != usize::MAX
    }
}

fn label<'a>(config: &'a ConsumerConfig, name: &str) -> Option<&'a str> {
    config.metadata.get(name).map(String::as_str)
}

fn positive(nanos: Nanos) -> Option<u64> {
    u64::try_from(nanos.0).ok().filter(|nanos| *nanos > 0)
}

fn limit(configured: i64) -> usize {
    match usize::try_from(configured) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    }
}

fn percent(text: &str) -> u32 {
    let number = text.strip_suffix('%').unwrap_or(text);
    number.parse().map_or(0, |percent: u32| percent.min(100))
}
