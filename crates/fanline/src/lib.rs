//! In-process fan-out. This release holds the contract that everything else stands on, the
//! [`Observer`]; subjects, replay and hubs come next and are not here yet.

pub mod clock;
pub mod create;
mod fence;
mod guard;
mod hand_over;
pub mod hub;
mod observable;
mod observer;
pub mod operators;
mod pinned;
pub mod scheduler;
pub mod stream;
mod subject;
mod sync;
pub mod testing;

pub use clock::{Clock, Coarse, Precise, Time};
pub use create::{
    Emitter, create, defer, empty, from_fn, from_iter, generate, never, of, range, repeat_value,
    throw, try_from_iter,
};
pub use guard::Guard;
pub use observable::{BoxObservable, IntoObservable, Observable};
pub use observer::{
    BoxObserver, Callbacks, Called, CompleteCallback, ErrorCallback, Ignored, Observer, observer,
};
pub use operators::{Notification, ObservableExt};
pub use scheduler::{Scheduler, Worker};
pub use stream::{from_future, from_stream, try_from_future, try_from_stream};
pub use subject::{
    AsyncSubject, BehaviorSubject, FromLocal, FromSource, LocalSubject, Members, NoValue, OnPanic,
    Producer, Replay, ReplaySubject, Source, Subject, behavior, behavior_with_error, last_value,
    last_value_with_error, replay, replay_of, replay_with_error, subject, subject_of,
    subject_with_error,
};

/// The flavours by name, for the types of producers.
pub mod policy {
    pub use crate::subject::policy::{
        All, Current, Last, Many, ManyWithin, One, Policy, Publish, Within,
    };
    pub use crate::subject::{Boxed, Inline};
}

/// What most programs that use the library need: `use fanline::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Guard, IntoObservable, Observable, ObservableExt, Observer, Scheduler, Worker, observer,
    };
}
