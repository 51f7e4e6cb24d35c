//! Hubs: fan-out and fan-in with backpressure. Producers and consumers attach and detach while elements flow.
//!
//! | hub | producers | consumers | each element goes to |
//! | --- | --- | --- | --- |
//! | [`broadcast`] | one | any number, at any time | every consumer |
//! | [`merge`] | any number, at any time | one | the consumer |
//! | [`partition`] | one | any number, at any time | the consumer that a partitioner chooses |
//!
//! All hubs are bounded, and lose elements only if configured to. They need no runtime: their futures work
//! under any executor, and plain threads use the `blocking_` methods of the same types.

mod blocking;
mod broadcast;
mod error;
mod feeding;
mod merge;
mod partition;
mod pulling;
mod timer;
mod waker_slot;

pub use broadcast::{
    BroadcastHub, BroadcastOptions, BroadcastReceiver, BroadcastSender, CAPACITY_MAX, KillSwitch,
    Next, NextRef, NobodyListens, SlowConsumer, Start, broadcast, broadcast_with,
    broadcast_with_error, try_broadcast_with,
};
pub use error::{
    BoxError, Closed, HubError, OptionsError, RecvError, SendError, TryRecvError, TrySendError,
};
pub use merge::{
    MergeHub, MergeOptions, MergeReceiver, MergeSender, merge, merge_with, merge_with_error,
    try_merge_with,
};
pub use partition::{
    Consumer, Consumers, ConsumersIter, FullConsumer, LeftElements, PartitionHub, PartitionOptions,
    PartitionReceiver, PartitionSender, Partitioner, partition, partition_stateful, partition_with,
    partition_with_error, try_partition_with,
};
pub use timer::Timer;

pub(crate) use error::Ended;
