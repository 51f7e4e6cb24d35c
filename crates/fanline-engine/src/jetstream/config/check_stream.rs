//! Checks a new stream configuration, and sets defaults.

use super::check_source::{check_mirror, check_sources};
use super::level::metadata_bytes;
use super::overlaps::Overlaps;
use super::stream::{Discard, PersistMode, Placement, Republish, Retention, Storage, StreamConfig};
use crate::jetstream::error::ApiError;
use crate::store::SEQUENCE_MAX;
use crate::subject::Filter;
use crate::subject::transform::Transform;
use crate::time::Nanos;

/// Maximum length of the name of a stream or consumer.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum length of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;
/// Maximum size in bytes of all keys and values of the metadata together.
pub const METADATA_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of replicas of a stream in a cluster.
pub const REPLICAS_MAX: i64 = 5;
/// Default time for which message ids are stored.
pub const DUPLICATE_WINDOW_DEFAULT: Nanos = Nanos::from_secs(120);

const AGE_MIN: Nanos = Nanos::from_millis(100);
const DUPLICATE_WINDOW_MIN: Nanos = Nanos::from_millis(100);
const MARKER_TTL_MIN: Nanos = Nanos::from_secs(1);

/// Treatment of ambiguous requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pedantry {
    /// An ambiguous request is interpreted in the usual way.
    #[default]
    Lax,
    /// An ambiguous request is refused.
    Pedantic,
}

impl Pedantry {
    pub(in crate::jetstream) fn refuses(self, why: &str, ambiguous: bool) -> Result<(), ApiError> {
        if ambiguous && self == Pedantry::Pedantic {
            return Err(ApiError::pedantic(why));
        }
        Ok(())
    }
}

impl StreamConfig {
    /// Returns the checked configuration of a stream that does not exist yet. Applies the rules of
    /// [`checked`](StreamConfig::checked), and those for new streams.
    ///
    /// # Errors
    /// The rule that the configuration breaks.
    pub fn checked_new(self, pedantry: Pedantry) -> Result<StreamConfig, ApiError> {
        if self.sealed {
            return Err(invalid("stream configuration for create can not be sealed"));
        }
        if self.mirror.is_none() && self.mirror_direct {
            return Err(invalid("stream has no mirror but does have mirror direct"));
        }
        if self.first_seq > SEQUENCE_MAX {
            return Err(invalid(format_args!(
                "first sequence is too high, maximum allowed is {SEQUENCE_MAX}"
            )));
        }
        self.checked(pedantry)
    }

    /// Returns the checked configuration with defaults.
    ///
    /// # Errors
    /// The rule that the configuration breaks. Rules that involve other streams are not checked here.
    pub fn checked(mut self, pedantry: Pedantry) -> Result<StreamConfig, ApiError> {
        self.check_names()?;
        self.placement = self.placement.filter(|p| *p != Placement::default());
        self.fill_limits(pedantry)?;
        self.check_replicas()?;
        self.fill_times(pedantry)?;
        self.check_flags(pedantry)?;
        check_mirror(&self)?;
        check_sources(&self)?;
        self.fill_subjects()?;
        self.check_rewriting(pedantry)?;
        Ok(self)
    }

    /// Checks fields whose rules are the same for new and changed streams.
    fn check_names(&self) -> Result<(), ApiError> {
        check_stream_name(&self.name)?;
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            return Err(invalid(format_args!(
                "stream description is too long, maximum allowed is {DESCRIPTION_BYTES_MAX}"
            )));
        }
        if metadata_bytes(&self.metadata) > METADATA_BYTES_MAX {
            return Err(invalid(format_args!(
                "stream metadata exceeds maximum size of {METADATA_BYTES_MAX} bytes"
            )));
        }
        Ok(())
    }

    fn fill_limits(&mut self, pedantry: Pedantry) -> Result<(), ApiError> {
        for (name, limit) in [
            ("max_msgs", &mut self.max_msgs),
            ("max_msgs_per_subject", &mut self.max_msgs_per_subject),
            ("max_bytes", &mut self.max_bytes),
            ("max_consumers", &mut self.max_consumers),
        ] {
            pedantry.refuses(&format!("{name} must be set to -1"), *limit < -1)?;
            if *limit <= 0 {
                *limit = -1;
            }
        }
        pedantry.refuses("max_msg_size must be set to -1", self.max_msg_size < -1)?;
        if self.max_msg_size <= 0 {
            self.max_msg_size = -1;
        }
        Ok(())
    }

    fn check_replicas(&mut self) -> Result<(), ApiError> {
        match self.num_replicas {
            ..0 => Err(ApiError::REPLICAS_COUNT_CANNOT_BE_NEGATIVE),
            0 => {
                self.num_replicas = 1;
                Ok(())
            }
            1 => Ok(()),
            2..=REPLICAS_MAX if self.persist_mode == PersistMode::Async => Err(invalid(
                "async persist mode is not supported on replicated streams",
            )),
            2..=REPLICAS_MAX => Ok(()),
            _ => Err(invalid(format_args!("maximum replicas is {REPLICAS_MAX}"))),
        }
    }

    fn fill_times(&mut self, pedantry: Pedantry) -> Result<(), ApiError> {
        let age = self.max_age;
        if age.0 < 0 {
            return Err(invalid("max age can not be negative"));
        }
        if !age.is_zero() && age < AGE_MIN {
            return Err(invalid("max age needs to be >= 100ms"));
        }
        if self.duplicate_window.0 < 0 {
            return Err(invalid("duplicates window can not be negative"));
        }
        let copies = self.mirror.is_some() || !self.sources.is_empty();
        if self.duplicate_window.is_zero() && !copies {
            let shortened = !age.is_zero() && age < DUPLICATE_WINDOW_DEFAULT;
            pedantry.refuses("duplicate window cannot be bigger than max age", shortened)?;
            self.duplicate_window = if shortened {
                age
            } else {
                DUPLICATE_WINDOW_DEFAULT
            };
        }
        if !age.is_zero() && self.duplicate_window > age {
            return Err(invalid("duplicates window can not be larger then max age"));
        }
        if !self.duplicate_window.is_zero() && self.duplicate_window < DUPLICATE_WINDOW_MIN {
            return Err(invalid("duplicates window needs to be >= 100ms"));
        }
        Ok(())
    }

    fn check_flags(&mut self, pedantry: Pedantry) -> Result<(), ApiError> {
        self.check_discard()?;
        self.check_counter()?;
        let rule = match () {
            () if self.deny_purge && self.allow_rollup_hdrs => {
                "roll-ups require the purge permission"
            }
            () if self.persist_mode == PersistMode::Async && self.storage == Storage::Memory => {
                "async persist mode is only supported on file storage"
            }
            () if self.persist_mode == PersistMode::Async && self.allow_atomic => {
                "async persist mode is not supported with atomic batch publish"
            }
            () if self
                .placement
                .as_ref()
                .is_some_and(|p| !p.preferred.is_empty()) =>
            {
                "preferred server not permitted in placement"
            }
            () => {
                self.fill_markers(pedantry)?;
                return self.fill_schedules(pedantry);
            }
        };
        Err(invalid(rule))
    }

    fn check_discard(&self) -> Result<(), ApiError> {
        if !self.discard_new_per_subject {
            return Ok(());
        }
        if self.discard != Discard::New {
            return Err(invalid(
                "discard new per subject requires discard new policy to be set",
            ));
        }
        if self.max_msgs_per_subject <= 0 {
            return Err(invalid(
                "discard new per subject requires max msgs per subject > 0",
            ));
        }
        Ok(())
    }

    /// Sets the options that markers need: times to live, because markers expire, and rollups, because
    /// markers replace earlier records.
    fn fill_markers(&mut self, pedantry: Pedantry) -> Result<(), ApiError> {
        let ttl = self.subject_delete_marker_ttl;
        if ttl.is_zero() {
            return Ok(());
        }
        let pedantic = pedantry == Pedantry::Pedantic;
        let rule = match () {
            () if ttl.0 < 0 => "subject delete marker TTL must not be negative",
            () if ttl < MARKER_TTL_MIN => "subject delete marker TTL must be at least 1 second",
            () if self.mirror.is_some() => "subject delete markers forbidden on mirrors",
            () if pedantic && !self.allow_msg_ttl => {
                "subject delete marker cannot be set if message TTLs are disabled"
            }
            () if pedantic && !self.allow_rollup_hdrs => {
                "subject delete marker cannot be set if roll-ups are disabled"
            }
            () => {
                self.allow_msg_ttl = true;
                self.allow_rollup_hdrs = true;
                self.deny_purge = false;
                return Ok(());
            }
        };
        Err(invalid(rule))
    }

    /// Sets the options that schedules need: rollups, because each message of a repeated schedule replaces
    /// the previous one.
    fn fill_schedules(&mut self, pedantry: Pedantry) -> Result<(), ApiError> {
        if !self.allow_msg_schedules || self.mirror.is_some() {
            return Ok(());
        }
        if !self.sources.is_empty() {
            return Err(ApiError::SOURCE_WITH_MSG_SCHEDULES);
        }
        let rule = match () {
            () if self.discard == Discard::New => "message scheduling cannot use discard new",
            () if pedantry == Pedantry::Pedantic && !self.allow_rollup_hdrs => {
                "message scheduling cannot be set if roll-ups are disabled"
            }
            () => {
                self.allow_rollup_hdrs = true;
                self.deny_purge = false;
                return Ok(());
            }
        };
        Err(invalid(rule))
    }

    fn check_counter(&self) -> Result<(), ApiError> {
        if !self.allow_msg_counter || self.mirror.is_some() {
            return Ok(());
        }
        let rule = match () {
            () if self.retention != Retention::Limits => {
                "counter stream can only use limits retention"
            }
            () if self.discard == Discard::New => "counter stream cannot use discard new",
            () if self.allow_msg_ttl => "counter stream cannot use message TTLs",
            () if self.allow_msg_schedules => "counter stream cannot use message schedules",
            () => return Ok(()),
        };
        Err(invalid(rule))
    }

    fn fill_subjects(&mut self) -> Result<(), ApiError> {
        if self.subjects.is_empty() && self.mirror.is_none() && self.sources.is_empty() {
            self.subjects.push(self.name.clone());
        }
        let mut overlaps = Overlaps::default();
        for subject in &self.subjects {
            check_stream_subject(subject, self.no_ack)?;
            if let Some(other) = overlaps.add(subject)? {
                return Err(invalid(format_args!(
                    "subject \"{other}\" overlaps with \"{subject}\""
                )));
            }
        }
        Ok(())
    }

    fn check_rewriting(&mut self, pedantry: Pedantry) -> Result<(), ApiError> {
        if let Some(transform) = &self.subject_transform {
            check_filter(&transform.src).map_err(ApiError::stream_transform_invalid_source)?;
            if !transform.dest.is_empty() {
                Transform::new(&transform.src, &transform.dest)
                    .map_err(ApiError::stream_transform_invalid_destination)?;
            }
        }
        let subjects = &self.subjects;
        match &mut self.republish {
            Some(republish) => check_republish(republish, subjects, pedantry),
            None => Ok(()),
        }
    }
}

fn check_republish(
    republish: &mut Republish,
    subjects: &[String],
    pedantry: Pedantry,
) -> Result<(), ApiError> {
    pedantry.refuses(
        "republish source can not be empty",
        republish.src.is_empty(),
    )?;
    if republish.src.is_empty() {
        republish.src = ">".to_owned();
    }
    let Republish { src, dest, .. } = republish;
    if dest.is_empty() {
        return Ok(());
    }
    let not_valid = || {
        invalid(format_args!(
            "stream configuration for republish with transform from '{src}' to '{dest}' not valid"
        ))
    };
    if subjects.iter().any(|subject| overlap(subject, dest)) {
        return Err(invalid(
            "stream configuration for republish destination forms a cycle",
        ));
    }
    let transform = Transform::new(src, dest).map_err(|_| not_valid())?;
    let made = transform.destination_filter();
    if subjects
        .iter()
        .any(|subject| overlap_bytes(subject.as_bytes(), &made))
    {
        return Err(invalid(
            "stream configuration for republish destination forms a cycle",
        ));
    }
    Ok(())
}

/// Checks a stream's name.
pub(super) fn check_stream_name(name: &str) -> Result<(), ApiError> {
    if name.contains(['/', '\\']) {
        return Err(ApiError::STREAM_NAME_CONTAINS_PATH_SEPARATORS);
    }
    if !is_name(name) {
        return Err(invalid(
            r"stream name is required and can not contain '.', '*', '>', '\', '/'",
        ));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(invalid(format_args!(
            "stream name is too long, maximum allowed is {NAME_BYTES_MAX}"
        )));
    }
    Ok(())
}

/// Returns whether a name can be a token of a subject.
pub(super) fn is_name(name: &str) -> bool {
    let parts = [' ', '\t', '\r', '\n', '\x0c', '.', '*', '>', '/', '\\'];
    !name.is_empty() && !name.contains(parts)
}

fn check_stream_subject(subject: &str, no_ack: bool) -> Result<(), ApiError> {
    if Filter::parse(subject.as_bytes()).is_err() {
        return Err(invalid("invalid subject"));
    }
    if no_ack {
        return Ok(());
    }
    // The acknowledgement of a stored message would be stored itself, and also acknowledged.
    if subject == ">" {
        return Err(invalid("capturing all subjects requires no-ack to be true"));
    }
    let inside = |filter: &str| covers(filter, subject);
    let reserved = ["$JS.>", "$JSC.>", "$NRG.>"];
    if reserved.iter().any(|filter| overlap(filter, subject)) && !inside("$JS.EVENT.>") {
        return Err(invalid(
            "subjects that overlap with jetstream api require no-ack to be true",
        ));
    }
    if overlap("$SYS.>", subject) && !inside("$SYS.ACCOUNT.>") {
        return Err(invalid(
            "subjects that overlap with system api require no-ack to be true",
        ));
    }
    Ok(())
}

/// Checks a filter, which may be empty. `Err` contains nats-server's text.
pub(super) fn check_filter(filter: &str) -> Result<(), String> {
    match filter.is_empty() || Filter::parse(filter.as_bytes()).is_ok() {
        true => Ok(()),
        false => Err(format!("invalid subject {filter}")),
    }
}

/// Returns whether some subject matches both filters.
pub fn overlap(one: &str, other: &str) -> bool {
    overlap_bytes(one.as_bytes(), other.as_bytes())
}

fn overlap_bytes(one: &[u8], other: &[u8]) -> bool {
    let mut one = one.split(|b| *b == b'.');
    let mut other = other.split(|b| *b == b'.');
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(b">"), Some(_)) | (Some(_), Some(b">")) => return true,
            (Some(b"*"), Some(_)) | (Some(_), Some(b"*")) => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

/// Returns whether every subject that matches `inner` also matches `outer`.
pub fn covers(outer: &str, inner: &str) -> bool {
    let mut inner = inner.split('.');
    for token in outer.split('.') {
        match (token, inner.next()) {
            (_, None) => return false,
            (">", Some(_)) => return true,
            ("*", Some(">")) => return false,
            ("*", Some(_)) => {}
            (wanted, Some(given)) if wanted == given => {}
            _ => return false,
        }
    }
    inner.next().is_none()
}

pub(super) fn invalid(rule: impl std::fmt::Display) -> ApiError {
    ApiError::stream_invalid_config(rule)
}
