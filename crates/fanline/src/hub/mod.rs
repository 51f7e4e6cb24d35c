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
//!
//! The functions [`broadcast()`], [`merge()`], and [`partition()`] make a hub with its most important option. The
//! builders [`BroadcastHub::options`], [`MergeHub::options`], and [`PartitionHub::options`] set all options.
//!
//! # Names
//!
//! | name | meaning |
//! | --- | --- |
//! | `On…` ([`OnEmpty`], [`OnSlow`], [`OnFull`], [`OnLeave`]) | what the hub does in this case |
//! | `Wait` | the producer waits: its future is pending, or its `blocking_` call blocks the thread |
//! | `DropOldest`, `DropNewest`, `Drop` | elements are lost |
//! | `lost`, `Lagged` | the number of elements that a consumer lost |
//! | `lag` | the number of elements that a consumer has not received yet |
//! | `complete`, `fail` | ends the hub, without or with an error |
//! | `is_closed` | the hub accepts no more elements |
//! | `has_ended`, `error` | the consumer has seen the end, and the error if the hub failed |

mod blocking;
mod broadcast;
mod deadline;
mod error;
mod feeding;
mod merge;
mod partition;
mod pulling;
mod timer;
mod waker_slot;

pub use broadcast::{
    BroadcastHub, BroadcastOptions, BroadcastPermit, BroadcastReceiver, BroadcastSender,
    CAPACITY_MAX, KillSwitch, Next, NextRef, OnEmpty, OnSlow, Relay, Start, broadcast,
};
pub use error::{
    BoxError, HubClosed, HubError, OptionsError, RecvError, RecvTimeoutError, SendError,
    SendTimeoutError, TryRecvError, TrySendError,
};
pub use merge::{MergeHub, MergeOptions, MergePermit, MergeReceiver, MergeSender, merge};
pub use partition::{
    Consumer, Consumers, ConsumersIter, OnFull, OnLeave, PartitionHub, PartitionOptions,
    PartitionPermit, PartitionReceiver, PartitionSender, Partitioner, partition,
};

pub(crate) use error::Ended;
