//! Checks changes of a stream's configuration.

use super::check_stream::{Pedantry, invalid};
use super::level::own_metadata;
use super::stream::{Discard, Retention, StreamConfig};
use crate::jetstream::error::ApiError;
use crate::time::Nanos;

impl StreamConfig {
    /// Returns the configuration after an update to `requested`.
    ///
    /// # Errors
    /// The rule that the change breaks.
    pub fn updated(
        &self,
        requested: StreamConfig,
        pedantry: Pedantry,
    ) -> Result<StreamConfig, ApiError> {
        let seals = requested.sealed && !self.sealed;
        let mut requested = requested.checked(pedantry)?;
        if seals {
            requested.seal();
        }
        self.check_mirror_change(&requested)?;
        match self.rule_against(&requested) {
            Some(rule) => Err(invalid(rule)),
            None => Ok(requested),
        }
    }

    /// Returns whether both configurations are the same, except for labels that the server has set.
    pub fn same_as(&self, other: &StreamConfig) -> bool {
        let own = |config: &StreamConfig| StreamConfig {
            metadata: own_metadata(&config.metadata),
            ..config.clone()
        };
        own(self) == own(other)
    }

    /// Sets the fields of a sealed stream, which refuses additions and removals.
    fn seal(&mut self) {
        self.max_age = Nanos::ZERO;
        self.discard = Discard::New;
        self.deny_delete = true;
        self.deny_purge = true;
        self.allow_rollup_hdrs = false;
    }

    /// Checks that a mirror stays unchanged or becomes an ordinary stream.
    fn check_mirror_change(&self, requested: &StreamConfig) -> Result<(), ApiError> {
        match (&self.mirror, &requested.mirror) {
            (_, None) => Ok(()),
            (Some(is), Some(requested)) if is == requested => Ok(()),
            _ => Err(ApiError::STREAM_MIRROR_NOT_UPDATABLE),
        }
    }

    fn rule_against(&self, requested: &StreamConfig) -> Option<&'static str> {
        let queue = |config: &StreamConfig| config.retention == Retention::WorkQueue;
        let rules = [
            (
                self.storage != requested.storage,
                "stream configuration update can not change storage type",
            ),
            (
                queue(self) != queue(requested),
                "stream configuration update can not change retention policy to/from workqueue",
            ),
            (
                self.sealed && !requested.sealed,
                "stream configuration update can not unseal a sealed stream",
            ),
            (
                self.deny_delete && !requested.deny_delete,
                "stream configuration update can not cancel deny message deletes",
            ),
            (
                self.deny_purge && !requested.deny_purge,
                "stream configuration update can not cancel deny purge",
            ),
            (
                self.allow_msg_ttl && !requested.allow_msg_ttl,
                "message TTL status can not be disabled",
            ),
            (
                self.allow_msg_counter != requested.allow_msg_counter,
                "stream configuration update can not change message counter setting",
            ),
            (
                self.allow_msg_schedules && !requested.allow_msg_schedules,
                "message schedules can not be disabled",
            ),
            (
                self.persist_mode != requested.persist_mode,
                "stream configuration update can not change persist mode",
            ),
        ];
        let broken = rules.into_iter().find(|(broken, _)| *broken);
        broken.map(|(_, rule)| rule)
    }
}
