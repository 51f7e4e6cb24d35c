//! In-process fan-out. This release holds the contract that everything else stands on, the
//! [`Observer`]; subjects, replay and hubs come next and are not here yet.

mod clock;
pub mod create;
mod guard;
mod observable;
mod observer;
pub mod operators;
pub mod scheduler;
mod sync;

pub use clock::{Clock, Time};
pub use create::{
    Emitter, create, defer, empty, from_fn, from_iter, generate, never, of, range, repeat_value,
    throw, try_from_iter,
};
pub use guard::Guard;
pub use observable::{BoxObservable, IntoObservable, Observable};
pub use observer::{
    BoxObserver, Callbacks, Called, CompleteCallback, ErrorCallback, Ignored, Observer, observer,
};
pub use operators::ObservableExt;
pub use scheduler::{Scheduler, Worker};

/// What most programs that use the library need: `use fanline::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Guard, IntoObservable, Observable, ObservableExt, Observer, Scheduler, Worker, observer,
    };
}
