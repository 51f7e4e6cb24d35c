//! Hubs: fan-out and fan-in with backpressure, whose ends come and go while elements flow.
//!
//! | hub | producers | consumers | each element goes to |
//! | --- | --- | --- | --- |
//! | [`broadcast`] | one | any number, at any time | every consumer |
//!
//! All of them are bounded and lose nothing unless asked to; they need no runtime: what is awaited here
//! can be awaited anywhere, and plain threads use the `blocking_` methods of the same types.

mod blocking;
mod broadcast;
mod error;
mod timer;

pub use broadcast::{
    BroadcastHub, BroadcastOptions, BroadcastReceiver, BroadcastSender, CAPACITY_MAX, KillSwitch,
    NobodyListens, SlowConsumer, Start, broadcast, broadcast_with, broadcast_with_error,
    try_broadcast_with,
};
pub use error::{
    BoxError, Closed, HubError, OptionsError, RecvError, SendError, TryRecvError, TrySendError,
};
pub use timer::Timer;

pub(crate) use error::Ended;
