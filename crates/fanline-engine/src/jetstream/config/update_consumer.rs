//! Checks changes of a consumer's configuration.

use super::consumer::ConsumerConfig;
use super::level::own_metadata;
use crate::jetstream::error::ApiError;

impl ConsumerConfig {
    /// Checks whether a consumer with this configuration can change to another one, which was checked itself.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check_update(&self, wanted: &ConsumerConfig) -> Result<(), ApiError> {
        let rules = [
            (
                self.deliver_policy != wanted.deliver_policy,
                "deliver policy can not be updated",
            ),
            (
                self.opt_start_seq != wanted.opt_start_seq,
                "start sequence can not be updated",
            ),
            (
                self.opt_start_time != wanted.opt_start_time,
                "start time can not be updated",
            ),
            (
                self.ack_policy != wanted.ack_policy,
                "ack policy can not be updated",
            ),
            (
                self.replay_policy != wanted.replay_policy,
                "replay policy can not be updated",
            ),
            (
                self.idle_heartbeat != wanted.idle_heartbeat,
                "heart beats can not be updated",
            ),
            (
                self.flow_control != wanted.flow_control,
                "flow control can not be updated",
            ),
            (
                self.is_push() && !wanted.is_push(),
                "can not update push consumer to pull based",
            ),
            (
                !self.is_push() && wanted.is_push(),
                "can not update pull consumer to push based",
            ),
            (
                self.max_waiting != wanted.max_waiting,
                "max waiting can not be updated",
            ),
            (
                self.mem_storage != wanted.mem_storage,
                "storage type can not be updated",
            ),
            (
                self.sourcing != wanted.sourcing,
                "sourcing can not be updated",
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, rule)) => Err(ApiError::consumer_create(rule)),
            None => Ok(()),
        }
    }

    /// Whether both are the same, except for the server's own labels.
    pub fn same_as(&self, other: &ConsumerConfig) -> bool {
        let own = |config: &ConsumerConfig| ConsumerConfig {
            metadata: own_metadata(&config.metadata),
            ..config.clone()
        };
        own(self) == own(other)
    }
}
