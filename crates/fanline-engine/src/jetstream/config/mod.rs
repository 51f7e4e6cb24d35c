//! Configurations of streams and consumers, in nats-server's JSON.

mod check_consumer;
mod check_source;
mod check_stream;
mod consumer;
mod decode;
mod durability;
mod level;
mod overlaps;
mod stream;
#[cfg(test)]
mod tests;
mod update_consumer;
mod update_stream;

pub use crate::time::{Nanos, Timestamp};
pub use check_consumer::{
    ACK_PENDING_DEFAULT, ACK_WAIT_DEFAULT, GROUP_BYTES_MAX, INACTIVE_THRESHOLD_DEFAULT,
    PINNED_TIMEOUT_DEFAULT, WAITING_DEFAULT, check_consumer_name,
};
pub use check_stream::{
    DESCRIPTION_BYTES_MAX, DUPLICATE_WINDOW_DEFAULT, METADATA_BYTES_MAX, NAME_BYTES_MAX, Pedantry,
    REPLICAS_MAX, covers, overlap,
};
pub use consumer::{AckPolicy, ConsumerConfig, DeliverPolicy, PriorityPolicy, ReplayPolicy};
pub use decode::{Strictness, decode, decode_with_flag};
pub use durability::Durability;
pub use level::{API_LEVEL, Metadata, own_metadata, shown_metadata, stored_metadata};
pub(in crate::jetstream) use overlaps::{OVERLAP_STEPS_MAX, Overlaps, too_many_filters};
pub use stream::{
    Compression, ConsumerLimits, Discard, External, PersistMode, Placement, Republish, Retention,
    SourceConsumer, Storage, StreamConfig, StreamSource, SubjectTransform, SyncMode,
};
