//! What streams and consumers are asked to be: JSON as nats-server reads and prints it.

mod consumer;
mod decode;
mod stream;
mod values;

pub use consumer::{AckPolicy, ConsumerConfig, DeliverPolicy, PriorityPolicy, ReplayPolicy};
pub use decode::{Strictness, decode};
pub use stream::{
    Compression, ConsumerLimits, Discard, External, PersistMode, Placement, Republish, Retention,
    SourceConsumer, Storage, StreamConfig, StreamSource, SubjectTransform, SyncMode,
};
pub use values::{Metadata, Nanos, Timestamp};
