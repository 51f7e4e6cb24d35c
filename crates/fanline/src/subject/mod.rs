//! Subjects: multicast with and without memory.

mod combiner;
mod core;
mod end;
mod gate;
mod handles;
mod list;
mod local;
mod log;
#[cfg(all(test, fanline_loom))]
mod models;
mod observing;
mod owner;
pub(crate) mod policy;
mod producer;
mod registrations;
mod shared;
mod source;
mod store;

pub use end::End;
pub use handles::{
    AnyReplay, AsyncSubject, BehaviorSubject, Flavor, NoValue, ReplaySubject, SharedSubject,
    Subject,
};
pub use list::{Boxed, Entry, Inline};
pub use local::{
    FromLocal, LocalAsyncSubject, LocalBehaviorSubject, LocalReplaySubject, LocalSubject,
    UnsyncSubject,
};
pub use policy::Replay;
pub use producer::{
    OnPanic, Producer, behavior, behavior_with_error, last_value, last_value_with_error, replay,
    replay_of, replay_with_error, subject, subject_of, subject_with_error,
};
pub use source::{FromSource, Members, Source};
