//! Checks a new consumer configuration, and sets defaults.
//!
//! The API checks rules that involve the stream's other consumers.

use super::check_stream::{
    DESCRIPTION_BYTES_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, Pedantry, is_name, overlap,
};
use super::consumer::{AckPolicy, ConsumerConfig, DeliverPolicy, PriorityPolicy};
use super::level::metadata_bytes;
use super::overlaps::Overlaps;
use super::stream::{Retention, StreamConfig};
use crate::jetstream::error::ApiError;
use crate::subject::{Filter, is_literal_subject};
use crate::time::Nanos;

/// Default time after which an unacknowledged record is redelivered.
pub const ACK_WAIT_DEFAULT: Nanos = Nanos::from_secs(30);
/// Default maximum number of unacknowledged records.
pub const ACK_PENDING_DEFAULT: i64 = 1_000;
/// Default maximum number of waiting pull requests.
pub const WAITING_DEFAULT: i64 = 512;
/// Default time without use after which an ephemeral consumer is deleted.
pub const INACTIVE_THRESHOLD_DEFAULT: Nanos = Nanos::from_secs(5);
/// Default time without a request after which the pinned client is unpinned.
pub const PINNED_TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(120);
/// Maximum length of a priority group's name.
pub const GROUP_BYTES_MAX: usize = 16;

/// Metadata label that sets a Fanline option, for clients that cannot send the option's field.
const PER_SUBJECT_LABEL: &str = "fanline.max_ack_pending_per_subject";

const HEARTBEAT_MIN: Nanos = Nanos::from_millis(100);
const HEARTBEAT_OF_FLOW_CONTROL: Nanos = Nanos::from_secs(1);
const EXPIRES_MIN: Nanos = Nanos::from_millis(1);

impl ConsumerConfig {
    /// Returns the checked configuration with defaults, for a consumer of `stream`. The caller sets the name.
    ///
    /// # Errors
    /// The rule that the configuration breaks.
    pub fn checked(
        mut self,
        stream: &StreamConfig,
        pedantry: Pedantry,
    ) -> Result<ConsumerConfig, ApiError> {
        self.check_negatives(pedantry)?;
        self.check_texts()?;
        self.drop_negatives();
        self.fill_acks(stream, pedantry)?;
        self.check_replicas(stream)?;
        match self.is_push() {
            true => self.check_push(stream)?,
            false => self.check_pull()?,
        }
        self.check_start()?;
        self.check_filters()?;
        self.check_direct()?;
        self.fill_groups()?;
        self.fill_inactive_threshold(stream, pedantry)?;
        self.check_work_queue(stream)?;
        Ok(self)
    }

    /// In pedantic mode, refuses negative values, which otherwise mean that the field is unset.
    fn check_negatives(&self, pedantry: Pedantry) -> Result<(), ApiError> {
        let unlimited = [
            (self.max_deliver, "max_deliver must be set to -1"),
            (self.max_ack_pending, "max_ack_pending must be set to -1"),
        ];
        for (value, why) in unlimited {
            pedantry.refuses(why, value < -1)?;
        }
        let unset = [
            (self.max_waiting, "max_waiting must not be negative"),
            (self.max_batch, "max_batch must not be negative"),
            (self.max_expires.0, "max_expires must not be negative"),
            (self.max_bytes, "max_bytes must not be negative"),
            (self.idle_heartbeat.0, "idle_heartbeat must not be negative"),
            (
                self.inactive_threshold.0,
                "inactive_threshold must not be negative",
            ),
            (
                self.priority_timeout.0,
                "priority_timeout must not be negative",
            ),
        ];
        for (value, why) in unset {
            pedantry.refuses(why, value < 0)?;
        }
        Ok(())
    }

    /// Replaces negative values by 0, which means "unset".
    fn drop_negatives(&mut self) {
        for count in [&mut self.max_batch, &mut self.max_bytes] {
            *count = (*count).max(0);
        }
        for duration in [
            &mut self.max_expires,
            &mut self.idle_heartbeat,
            &mut self.inactive_threshold,
            &mut self.priority_timeout,
        ] {
            *duration = (*duration).max(Nanos::ZERO);
        }
    }

    fn check_texts(&self) -> Result<(), ApiError> {
        for name in [&self.name, &self.durable_name] {
            check_consumer_name(name)?;
        }
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            return Err(ApiError::consumer_description_too_long(
                DESCRIPTION_BYTES_MAX,
            ));
        }
        if metadata_bytes(&self.metadata) > METADATA_BYTES_MAX {
            return Err(ApiError::consumer_metadata_length("128KB"));
        }
        if !self.sample_freq.is_empty() {
            self.sample_percent()?;
        }
        Ok(())
    }

    /// Returns the percentage of acknowledgements for which an event is published.
    ///
    /// # Errors
    /// `10095` if `sample_freq` is neither a number nor a percentage.
    pub fn sample_percent(&self) -> Result<u8, ApiError> {
        let text = &self.sample_freq;
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.parse::<i64>() {
            _ if text.is_empty() => Ok(0),
            Ok(percent @ 0..) => Ok(u8::try_from(percent.min(100)).unwrap_or(100)),
            Ok(_) => Err(ApiError::consumer_invalid_sampling("<nil>")),
            Err(_) => Err(ApiError::consumer_invalid_sampling(format_args!(
                "strconv.Atoi: parsing {number:?}: invalid syntax"
            ))),
        }
    }

    /// Returns the maximum of unacknowledged records of one subject, from the field or its label. Values of 0
    /// or less mean unlimited.
    ///
    /// # Errors
    /// `10094` if the label is not a number.
    pub fn pending_per_subject(&self) -> Result<i64, ApiError> {
        match (
            self.max_ack_pending_per_subject,
            self.metadata.get(PER_SUBJECT_LABEL),
        ) {
            (0, Some(label)) => label.parse().map_err(|_| {
                ApiError::consumer_invalid_policy(format_args!(
                    "{PER_SUBJECT_LABEL} must be a number, got {label:?}"
                ))
            }),
            (limit, _) => Ok(limit),
        }
    }

    fn fill_acks(&mut self, stream: &StreamConfig, pedantry: Pedantry) -> Result<(), ApiError> {
        if self.ack_wait.0 < 0 {
            return Err(ApiError::CONSUMER_ACK_WAIT_NEGATIVE);
        }
        if self.backoff.iter().any(|wait| wait.0 < 0) {
            return Err(ApiError::CONSUMER_BACKOFF_NEGATIVE);
        }
        if self.ack_policy == AckPolicy::FlowControl {
            self.fill_flow_control_acks()?;
        } else if let Some(first) = self.backoff.first() {
            let other = !self.ack_wait.is_zero() && self.ack_wait != *first;
            pedantry.refuses("first backoff value has to equal batch AckWait", other)?;
            self.ack_wait = *first;
        }
        let acks = matches!(self.ack_policy, AckPolicy::All | AckPolicy::Explicit);
        if acks && self.ack_wait.is_zero() {
            self.ack_wait = ACK_WAIT_DEFAULT;
        }
        if self.max_deliver <= 0 {
            self.max_deliver = -1;
        } else if self.max_deliver < i64::try_from(self.backoff.len()).unwrap_or(i64::MAX) {
            return Err(ApiError::CONSUMER_MAX_DELIVER_BACKOFF);
        }
        self.fill_ack_pending(stream, pedantry)
    }

    fn fill_flow_control_acks(&mut self) -> Result<(), ApiError> {
        if !self.is_push() {
            return Err(ApiError::CONSUMER_ACK_FC_REQUIRES_PUSH);
        }
        if !self.ack_wait.is_zero() || !self.backoff.is_empty() {
            return Err(ApiError::CONSUMER_ACK_FC_REQUIRES_NO_ACK_WAIT);
        }
        if self.max_deliver > 0 {
            return Err(ApiError::CONSUMER_ACK_FC_REQUIRES_NO_MAX_DELIVER);
        }
        self.flow_control = true;
        if self.idle_heartbeat.is_zero() {
            self.idle_heartbeat = HEARTBEAT_OF_FLOW_CONTROL;
        }
        Ok(())
    }

    fn fill_ack_pending(
        &mut self,
        stream: &StreamConfig,
        pedantry: Pedantry,
    ) -> Result<(), ApiError> {
        let limit = stream.consumer_limits.max_ack_pending;
        let acks = self.ack_policy != AckPolicy::None;
        if self.is_push() && !acks && self.max_ack_pending > 0 {
            return Err(ApiError::CONSUMER_MAX_PENDING_ACK_POLICY_REQUIRED);
        }
        // The option preserves the order of a subject's records by waiting for acknowledgements. Without
        // acknowledgements, the option would have no effect.
        if self.pending_per_subject()? > 0 && !acks {
            return Err(ApiError::CONSUMER_MAX_PENDING_ACK_POLICY_REQUIRED);
        }
        let unset = self.max_ack_pending == 0;
        pedantry.refuses(
            "max_ack_pending must be set if it's configured in stream limits",
            unset && limit > 0,
        )?;
        if unset && limit > 0 {
            self.max_ack_pending = limit;
        } else if unset && self.ack_policy != AckPolicy::None {
            self.max_ack_pending = ACK_PENDING_DEFAULT;
        } else if self.max_ack_pending < 0 {
            self.max_ack_pending = -1;
        }
        if limit > 0 && self.max_ack_pending > limit {
            return Err(ApiError::consumer_max_pending_ack_excess(limit));
        }
        Ok(())
    }

    fn check_replicas(&self, stream: &StreamConfig) -> Result<(), ApiError> {
        match self.num_replicas {
            ..0 => Err(ApiError::REPLICAS_COUNT_CANNOT_BE_NEGATIVE),
            0 => Ok(()),
            count if count > stream.num_replicas => Err(ApiError::CONSUMER_REPLICAS_EXCEEDS_STREAM),
            count if stream.retention != Retention::Limits && count != stream.num_replicas => {
                Err(ApiError::CONSUMER_REPLICAS_SHOULD_MATCH_STREAM)
            }
            _ => Ok(()),
        }
    }

    fn check_push(&mut self, stream: &StreamConfig) -> Result<(), ApiError> {
        let subject = self.deliver_subject.as_bytes();
        match Filter::parse(subject) {
            Err(_) => return Err(ApiError::CONSUMER_INVALID_DELIVER_SUBJECT),
            Ok(_) if !is_literal_subject(subject) => {
                return Err(ApiError::CONSUMER_DELIVER_TO_WILDCARDS);
            }
            Ok(_) => {}
        }
        if stream
            .subjects
            .iter()
            .any(|filter| overlap(filter, &self.deliver_subject))
        {
            return Err(ApiError::CONSUMER_DELIVER_CYCLE);
        }
        let beats = self.idle_heartbeat;
        let rules = [
            (self.max_waiting > 0, ApiError::CONSUMER_PUSH_MAX_WAITING),
            (
                beats.0 > 0 && beats < HEARTBEAT_MIN,
                ApiError::CONSUMER_SMALL_HEARTBEAT,
            ),
            (
                self.flow_control && beats.0 <= 0,
                ApiError::CONSUMER_WITH_FLOW_CONTROL_NEEDS_HEARTBEATS,
            ),
        ];
        self.max_waiting = 0;
        first_broken(rules)
    }

    fn check_pull(&mut self) -> Result<(), ApiError> {
        let expires = self.max_expires;
        let rules = [
            (
                self.rate_limit_bps > 0,
                ApiError::CONSUMER_PULL_WITH_RATE_LIMIT,
            ),
            (
                self.idle_heartbeat.0 > 0,
                ApiError::CONSUMER_HB_REQUIRES_PUSH,
            ),
            (self.flow_control, ApiError::CONSUMER_FC_REQUIRES_PUSH),
            (
                expires.0 > 0 && expires < EXPIRES_MIN,
                ApiError::CONSUMER_MAX_REQUEST_EXPIRES_TOO_SMALL,
            ),
            (self.direct, ApiError::CONSUMER_DIRECT_REQUIRES_PUSH),
        ];
        if self.max_waiting <= 0 {
            self.max_waiting = WAITING_DEFAULT;
        }
        first_broken(rules)
    }

    fn check_start(&self) -> Result<(), ApiError> {
        let filtered = self.filters().next().is_some();
        let (policy, by_sequence, by_time) = match self.deliver_policy {
            DeliverPolicy::All => ("all", false, false),
            DeliverPolicy::Last => ("last", false, false),
            DeliverPolicy::New => ("new", false, false),
            DeliverPolicy::LastPerSubject => ("last per subject", false, false),
            DeliverPolicy::ByStartSequence => ("by start sequence", true, false),
            DeliverPolicy::ByStartTime => ("by start time", false, true),
        };
        let has_sequence = self.opt_start_seq > 0;
        let has_time = self.opt_start_time.is_some();
        let what = match () {
            () if by_sequence && !has_sequence => "optional start sequence is not set",
            () if by_time && !has_time => "optional start time is not set",
            // nats-server's text contains this word twice.
            () if by_time && has_sequence => "optional start start sequence is also set",
            () if !by_sequence && has_sequence => "optional start sequence is also set",
            () if !by_time && has_time => "optional start time is also set",
            () if self.deliver_policy == DeliverPolicy::LastPerSubject && !filtered => {
                "optional filter subject is not set"
            }
            () => return Ok(()),
        };
        Err(ApiError::consumer_invalid_policy(format_args!(
            "consumer delivery policy is deliver {policy}, but {what}"
        )))
    }

    fn check_filters(&self) -> Result<(), ApiError> {
        let several = &self.filter_subjects;
        if !several.is_empty() && !self.filter_subject.is_empty() {
            return Err(ApiError::CONSUMER_DUPLICATE_FILTER_SUBJECTS);
        }
        if several.iter().any(String::is_empty) {
            return Err(ApiError::CONSUMER_EMPTY_FILTER);
        }
        if self
            .filters()
            .any(|filter| Filter::parse(filter.as_bytes()).is_err())
        {
            return Err(ApiError::stream_invalid_config("invalid subject"));
        }
        let mut overlaps = Overlaps::default();
        for filter in several {
            if overlaps.add(filter)?.is_some() {
                return Err(ApiError::CONSUMER_OVERLAPPING_SUBJECT_FILTERS);
            }
        }
        Ok(())
    }

    fn check_direct(&self) -> Result<(), ApiError> {
        if self.direct && self.is_durable() {
            return Err(ApiError::CONSUMER_DIRECT_REQUIRES_EPHEMERAL);
        }
        Ok(())
    }

    fn fill_groups(&mut self) -> Result<(), ApiError> {
        if self.priority_policy == PriorityPolicy::None {
            return first_broken([
                (
                    !self.priority_groups.is_empty(),
                    ApiError::CONSUMER_PRIORITY_GROUP_WITH_POLICY_NONE,
                ),
                (
                    self.priority_timeout.0 > 0,
                    ApiError::CONSUMER_PINNED_TTL_WITHOUT_PRIORITY_POLICY_NONE,
                ),
            ]);
        }
        if self.is_push() {
            return Err(ApiError::CONSUMER_PUSH_WITH_PRIORITY_GROUP);
        }
        if self.priority_groups.is_empty() {
            return Err(ApiError::CONSUMER_PRIORITY_POLICY_WITHOUT_GROUP);
        }
        for group in &self.priority_groups {
            check_group_name(group)?;
        }
        let pins = self.priority_policy == PriorityPolicy::PinnedClient;
        if pins && self.priority_timeout.is_zero() {
            self.priority_timeout = PINNED_TIMEOUT_DEFAULT;
        }
        Ok(())
    }

    fn fill_inactive_threshold(
        &mut self,
        stream: &StreamConfig,
        pedantry: Pedantry,
    ) -> Result<(), ApiError> {
        let limit = stream.consumer_limits.inactive_threshold;
        let unset = self.inactive_threshold.0 <= 0;
        pedantry.refuses(
            "inactive_threshold must be set if it's configured in stream limits",
            unset && limit.0 > 0,
        )?;
        if unset && limit.0 > 0 {
            self.inactive_threshold = limit;
        } else if unset && !self.is_durable() {
            self.inactive_threshold = INACTIVE_THRESHOLD_DEFAULT;
        }
        if limit.0 > 0 && self.inactive_threshold > limit {
            return Err(ApiError::consumer_inactive_threshold_excess(limit));
        }
        Ok(())
    }

    fn check_work_queue(&self, stream: &StreamConfig) -> Result<(), ApiError> {
        if stream.retention != Retention::WorkQueue || self.direct {
            return Ok(());
        }
        let pulls_without = !self.is_push() && self.ack_policy == AckPolicy::None;
        first_broken([
            (pulls_without, ApiError::CONSUMER_PULL_REQUIRES_ACK),
            (
                matches!(self.ack_policy, AckPolicy::None | AckPolicy::All),
                ApiError::CONSUMER_WQ_REQUIRES_EXPLICIT_ACK,
            ),
            (
                self.deliver_policy != DeliverPolicy::All,
                ApiError::CONSUMER_WQ_CONSUMER_NOT_DELIVER_ALL,
            ),
        ])
    }
}

/// Checks a consumer's name. An empty name means that the consumer has none, and is allowed.
///
/// # Errors
/// The rule that the name breaks.
pub fn check_consumer_name(name: &str) -> Result<(), ApiError> {
    if name.len() > NAME_BYTES_MAX {
        return Err(ApiError::consumer_name_too_long(NAME_BYTES_MAX));
    }
    if name.contains(['/', '\\']) {
        return Err(ApiError::CONSUMER_NAME_CONTAINS_PATH_SEPARATORS);
    }
    if !name.is_empty() && !is_name(name) {
        return Err(ApiError::stream_invalid_config(
            r"consumer name can not contain '.', '*', '>', '\', '/'",
        ));
    }
    Ok(())
}

fn check_group_name(name: &str) -> Result<(), ApiError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_/=".contains(&b);
    if name.is_empty() {
        return Err(ApiError::CONSUMER_EMPTY_GROUP_NAME);
    }
    if name.len() > GROUP_BYTES_MAX || !name.bytes().all(allowed) {
        return Err(ApiError::CONSUMER_INVALID_GROUP_NAME);
    }
    Ok(())
}

fn first_broken(rules: impl IntoIterator<Item = (bool, ApiError)>) -> Result<(), ApiError> {
    match rules.into_iter().find(|(broken, _)| *broken) {
        Some((_, rule)) => Err(rule),
        None => Ok(()),
    }
}
