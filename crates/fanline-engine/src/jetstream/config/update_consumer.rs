//! Checks changes of a consumer's configuration.

use super::consumer::ConsumerConfig;
use super::level::own_metadata;
use crate::jetstream::error::ApiError;

impl ConsumerConfig {
    /// Checks whether a consumer with this configuration can change to another one. The caller has checked
    /// the new configuration itself.
    ///
    /// # Errors
    /// The rule that the change breaks.
    pub fn check_update(&self, requested: &ConsumerConfig) -> Result<(), ApiError> {
        let rules = [
            (
                self.deliver_policy != requested.deliver_policy,
                "deliver policy can not be updated",
            ),
            (
                self.opt_start_seq != requested.opt_start_seq,
                "start sequence can not be updated",
            ),
            (
                self.opt_start_time != requested.opt_start_time,
                "start time can not be updated",
            ),
            (
                self.ack_policy != requested.ack_policy,
                "ack policy can not be updated",
            ),
            (
                self.replay_policy != requested.replay_policy,
                "replay policy can not be updated",
            ),
            (
                self.idle_heartbeat != requested.idle_heartbeat,
                "heart beats can not be updated",
            ),
            (
                self.flow_control != requested.flow_control,
                "flow control can not be updated",
            ),
            (
                self.is_push() && !requested.is_push(),
                "can not update push consumer to pull based",
            ),
            (
                !self.is_push() && requested.is_push(),
                "can not update pull consumer to push based",
            ),
            (
                self.max_waiting != requested.max_waiting,
                "max waiting can not be updated",
            ),
            (
                self.mem_storage != requested.mem_storage,
                "storage type can not be updated",
            ),
            (
                self.sourcing != requested.sourcing,
                "sourcing can not be updated",
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, rule)) => Err(ApiError::consumer_create(rule)),
            None => Ok(()),
        }
    }

    /// Returns whether both configurations are the same, except for labels that the server has set.
    pub fn same_as(&self, other: &ConsumerConfig) -> bool {
        let own = |config: &ConsumerConfig| ConsumerConfig {
            metadata: own_metadata(&config.metadata),
            ..config.clone()
        };
        own(self) == own(other)
    }
}
