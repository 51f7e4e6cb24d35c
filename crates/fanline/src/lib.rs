#![doc = include_str!("../README.md")]
//! # Questions before you use the library
//!
//! [`coming_from`] translates names from other libraries, and [`testing`] makes tests that depend on time
//! exact.
//!
//! - [Choose a subject](#choose-a-subject)
//! - [Cost](#cost)
//! - [Observer panics](#observer-panics)
//! - [Re-entrancy](#re-entrancy)
//! - [Late subscribers](#late-subscribers)
//! - [Slow observers](#slow-observers)
//! - [Unsubscribe](#unsubscribe)
//! - [Drop of closures and values](#drop-of-closures-and-values)
//! - [Errors](#errors)
//! - [Threads](#threads)
//! - [Features](#features)
//!
//! # Choose a subject
//!
//! First, decide what late observers receive:
//!
//! | late observers receive | exclusive: one [`Producer`] | shared: clones of a handle |
//! | --- | --- | --- |
//! | only later values | [`subject()`] | [`Subject::new`] |
//! | the current value first; there always is one | [`behavior`] | [`BehaviorSubject::new`] |
//! | the last value, after the subject has completed | [`last_value`] | [`AsyncSubject::new`] |
//! | every value | [`replay`]`(`[`Replay::all`]`())` | [`ReplaySubject::new`]`(…)` |
//! | the last value, if there is one | `replay(`[`Replay::one`]`())` | [`ReplaySubject::new`]`(…)` |
//! | the last n values | `replay(`[`Replay::many`]`(n))` | [`ReplaySubject::new`]`(…)` |
//! | the values no older than a duration `d` | `replay(`[`Replay::within`]`(d))` | [`ReplaySubject::new`]`(…)` |
//! | the last n values no older than `d` | `replay(`[`Replay::many_within`]`(n, d))` | [`ReplaySubject::new`]`(…)` |
//!
//! Then, decide where values are emitted:
//!
//! - **One place in the program**: the exclusive form. There is one producer. Emitting takes it by `&mut`, so
//!   the compiler guarantees that calls do not overlap. Any part of the program can subscribe, through clones
//!   of a [`Source`].
//! - **Several threads, or the subject's own observers**: the shared form, Rx's classic subject. Emitting
//!   takes `&self`, and clones are the same subject.
//! - **One thread, with values or observers that are not [`Send`]**: [`LocalSubject`], and its flavors
//!   [`LocalBehaviorSubject`], [`LocalAsyncSubject`], and [`LocalReplaySubject`].
//! - **Many observers of one type**: [`subject_of`] and [`replay_of`] call them without an indirection.
//!
//! If consumers pull elements and the producer must wait for them, use a [`hub`].
//!
//! ```
//! use fanline::{BehaviorSubject, Replay};
//! use std::time::Duration;
//!
//! let (mut tx, source) = fanline::replay::<u32>(Replay::many_within(2, Duration::from_secs(60)));
//! tx.next_slice(&[1, 2, 3]);
//! assert_eq!(source.snapshot(), [2, 3]);
//!
//! let volume = BehaviorSubject::new(5);
//! let knob = volume.clone(); // the same subject, on any thread
//! std::thread::spawn(move || knob.next(7)).join().unwrap();
//! assert_eq!(volume.value(), Ok(7));
//! ```
//!
//! The flavors of replay differ only in what they retain; [`Replay`] documents when each flavor drops a
//! value. If a subject is disposed of, or if its producer or last handle is dropped before the subject has
//! completed or failed, it ends silently: observers are dropped, and neither `complete` nor `error` is
//! called. If the subject should complete when the producer is dropped, as a channel does, call
//! [`Producer::complete_on_drop`]:
//!
//! ```
//! use fanline::prelude::*;
//!
//! let (tx, source) = fanline::subject::<u32>();
//! let tx = tx.complete_on_drop();
//! let last = source.last_value();
//! drop(tx);
//! assert_eq!(last.blocking_wait(), Ok(None)); // completed
//! ```
//!
//! # Cost
//!
//! **Emit.** A message costs one indirect call for each observer, plus:
//!
//! | | for each message |
//! | --- | --- |
//! | exclusive | no lock and no atomic read-modify-write: plain loads and stores |
//! | shared | one atomic read-modify-write, however many observers there are; for a while after contention between threads, two |
//! | one thread ([`UnsyncSubject`]) | no atomic read-modify-write |
//!
//! The exclusive form needs a memory fence between emission and subscription. On Linux, the thread that
//! subscribes or unsubscribes executes it for both sides (`membarrier`). On other systems each message costs
//! one more full fence.
//!
//! **Retain.** Each flavor stores only what it needs:
//!
//! | flavor | stored for each value | allocations |
//! | --- | --- | --- |
//! | [`subject()`] | nothing | none |
//! | [`behavior`], [`last_value`], [`Replay::one`], [`Replay::many`] | the value, in a ring | none after the ring has reached its full size, except while late observers read |
//! | [`Replay::all`] | the value, in chunks | one per 2,048 values or per 2 MiB of them; the first chunks are smaller |
//! | [`Replay::within`] | the value; a timestamp is stored once per millisecond, not once per value | as for [`Replay::all`]; chunks are reused |
//! | [`Replay::many_within`] | as for [`Replay::within`], in a ring | none |
//!
//! Retained values are not cloned for late observers: each observer gets a reference to the same stored
//! value. Emission allocates nothing else, whatever the number of observers, with these exceptions: a value
//! that is queued because the shared form is busy, a retained slice whose values allocate when cloned,
//! several values with destructors that expire at once, and operators that document that they store values.
//!
//! A slice costs less than its values one by one, because each observer is called once for the whole slice.
//! With many observers, these calls are most of the cost.
//!
//! ```
//! let (mut tx, source) = fanline::subject::<u32>();
//! source.subscribe(|value| println!("{value}")).detach();
//! tx.next_slice(&[1, 2, 3]); // one call of the observer's `next_slice`
//! ```
//!
//! **Subscribe.** One allocation for the observer's box, one lock, and the time to deliver retained values.
//! The cost of subscribing and unsubscribing does not depend on the number of other observers.
//!
//! **Chain.** Operators are generic structs without boxes: a chain is compiled to one observer.
//! [`boxed`](ObservableExt::boxed) gives a chain a short type, and costs one indirect call per value.
//!
//! The times in nanoseconds depend on the machine. The repository's benchmark compares every flavor in both
//! forms with reference loops written for the same load. With `--rivals` it also compares RxJava 3, rxRust,
//! and tokio's broadcast:
//!
//! ```sh
//! cargo run --release -p fanline-bench -- replay
//! cargo run --release -p fanline-bench -- schedulers
//! ```
//!
//! # Observer panics
//!
//! An observer that panics is removed, and all others get the value. Then the panic resumes in the thread
//! that emitted the value. The subject stays consistent: nothing is poisoned, and the next value is emitted
//! as usual.
//!
//! ```
//! use fanline::Subject;
//! use std::panic::{AssertUnwindSafe, catch_unwind};
//! use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//!
//! let s = Subject::<u32>::new();
//! s.subscribe(|_| panic!("no good")).detach();
//! let sum = Arc::new(AtomicU32::new(0));
//! let seen = sum.clone();
//! s.subscribe(move |value| { seen.fetch_add(*value, Ordering::Relaxed); }).detach();
//!
//! # std::panic::set_hook(Box::new(|_| ()));
//! let emitted = catch_unwind(AssertUnwindSafe(|| s.next(1)));
//! assert!(emitted.is_err()); // resumed in the emitter, after every observer was called
//! assert_eq!(s.observer_count(), 1);
//! s.next(2);
//! assert_eq!(sum.load(Ordering::Relaxed), 3); // the other observer missed nothing
//! ```
//!
//! [`OnPanic`] offers two alternatives, to continue or to abort: [`Producer::on_observer_panic`],
//! [`Subject::on_observer_panic`], and their counterparts on every other subject. A panic in an operator's
//! closure counts as a panic of the observer at the end of the chain. A panic during the delivery of retained
//! values unwinds out of `subscribe`. On a scheduler, a panic ends one action, but no thread; each scheduler
//! documents where the panic goes.
//!
//! # Re-entrancy
//!
//! An observer may call any method of its own subject, because it never runs under a lock. A value that an
//! observer emits is delivered after the current one, for all observers: breadth first.
//!
//! ```
//! use fanline::Subject;
//! use std::sync::{Arc, Mutex};
//!
//! let s = Subject::<u32>::new();
//! let order = Arc::new(Mutex::new(Vec::new()));
//! let (log, again) = (order.clone(), s.clone());
//! s.subscribe(move |value| {
//!     log.lock().unwrap().push(format!("A{value}"));
//!     if *value == 1 {
//!         again.next(2); // queued: returns before any observer gets it
//!     }
//! })
//! .detach();
//! let log = order.clone();
//! s.subscribe(move |value| log.lock().unwrap().push(format!("B{value}"))).detach();
//! s.next(1);
//! assert_eq!(*order.lock().unwrap(), ["A1", "B1", "A2", "B2"]);
//! ```
//!
//! So every observer sees the values in the same order. A nested `complete` or `error` is queued in the same
//! way; `dispose` takes effect at once. Values from other threads join the same queue, and the thread that is
//! emitting delivers them. No thread waits. A call of `next` may therefore return before its value has
//! reached any observer, or deliver values of other threads.
//!
//! The exclusive form cannot be re-entered, so it needs no queue. An observer would have to own the producer,
//! which the compiler rejects:
//!
//! ```compile_fail,E0382
//! let (mut tx, source) = fanline::subject::<u32>();
//! source.subscribe(move |value| tx.next(value + 1)).detach();
//! tx.next(1); // moved into the closure
//! ```
//!
//! # Late subscribers
//!
//! A subscriber gets the retained values inside the call of `subscribe`, on its own thread. Then it gets
//! every later value. Each value arrives exactly once and in order, even while another thread emits, and
//! however long the subscriber takes for the retained values. The emitter and the other observers do not wait
//! for it. If it is slower than the emitter, `subscribe` continues until it has caught up.
//!
//! ```
//! use fanline::{Replay, prelude::*, stream::Unbounded};
//!
//! let (mut tx, source) = fanline::replay::<u32>(Replay::all());
//! tx.next(0);
//! let emitter = std::thread::spawn(move || {
//!     (1..10_000).for_each(|value| tx.next(value));
//!     tx.complete();
//! });
//! // Subscribes at some point during the emission:
//! let seen = source.into_stream(Unbounded).blocking_iter();
//! assert!(seen.eq(0..10_000));
//! # emitter.join().unwrap();
//! ```
//!
//! If an observer subscribes from inside its callback, a replay subject immediately delivers its retained
//! values, including the value that is being emitted. A plain subject starts with the next value.
//!
//! ```
//! let s = fanline::Subject::<u32>::new();
//! let late = s.clone();
//! s.subscribe(move |value| {
//!     let first = value + 1;
//!     late.subscribe(move |value| assert!(*value >= first)).detach();
//! })
//! .detach();
//! s.next(1);
//! s.next(2);
//! assert_eq!(s.observer_count(), 3);
//! ```
//!
//! After the subject has completed, failed, or been disposed of:
//!
//! | subject | a late observer gets |
//! | --- | --- |
//! | [`subject()`], [`behavior`] | the completion or the error |
//! | [`last_value`] | the last value and the completion; or the error |
//! | [`replay`] | the retained values, then the completion or the error; values continue to leave time windows, see [`Replay::within`] |
//! | any subject that was disposed of | nothing, and its guard is closed |
//!
//! # Slow observers
//!
//! Subjects call their observers one after the other, on the thread that emits. So a slow observer delays the
//! emitter and all other observers, and no value is lost or queued. Insert a queue where you need one, and
//! choose what it does when it is full:
//!
//! | operator | when the consumer is slower |
//! | --- | --- |
//! | no operator | the emitter waits for each call |
//! | [`observe_on`](ObservableExt::observe_on) | values are queued for the scheduler's worker; memory grows |
//! | [`observe_on_with`](ObservableExt::observe_on_with) a [`Bound`](scheduler::Bound) | if the queue is full: the emitter blocks, the oldest or newest value is dropped, or the chain fails |
//! | [`into_stream`](ObservableExt::into_stream) with a [policy](stream#choose-a-policy) | the same choices, or the latest value only; lost values are counted, and reported on request |
//! | a [`hub`] in place of a subject | the producer waits for the slowest consumer in bounded memory, unless configured otherwise |
//! | [`sample`](TimeExt::sample), [`throttle`](TimeExt::throttle), [`debounce`](TimeExt::debounce) | fewer values |
//!
//! ```
//! use fanline::{ObservableExt, stream::{Bounded, Lagged}};
//!
//! let (mut tx, source) = fanline::subject::<u32>();
//! let slow = source.into_stream(Bounded::drop_oldest(2).report_lag());
//! (1..=5).for_each(|value| tx.next(value));
//! tx.complete();
//! assert_eq!(slow.blocking_iter().collect::<Vec<_>>(), [Err(Lagged(3)), Ok(4), Ok(5)]);
//! ```
//!
//! An observer that is slow to read *retained* values delays nothing else, but costs memory: all values that
//! are retained in the meantime stay until this observer has read them.
//!
//! # Unsubscribe
//!
//! Drop the [`Guard`], or call [`unsubscribe`](Guard::unsubscribe). Both work from any thread, from inside
//! the observer, and more than once. To make a subscription last as long as its source,
//! [`detach`](Guard::detach) it. A guard that is not bound to a name is dropped at once, and unsubscribes;
//! the compiler warns about it.
//!
//! An observer may remove another one while a value is emitted. If the removed observer has not yet received
//! that value, it does not receive it:
//!
//! ```
//! use fanline::Subject;
//! use std::sync::{Arc, Mutex};
//!
//! let s = Subject::<u32>::new();
//! let second = Arc::new(Mutex::new(None));
//! let other = second.clone();
//! s.subscribe(move |_| drop(other.lock().unwrap().take())).detach();
//! *second.lock().unwrap() = Some(s.subscribe(|_| unreachable!("removed before its turn")));
//! s.next(1);
//! ```
//!
//! When `unsubscribe` returns, another thread may still be calling the observer, or be about to call it.
//! [`unsubscribe_and_wait`](Guard::unsubscribe_and_wait) returns after that call. Do not use it while holding
//! a lock that the observer takes.
//!
//! ```
//! use std::sync::Arc;
//!
//! let s = fanline::Subject::<u32>::new();
//! let resource = Arc::new(());
//! let used = resource.clone();
//! let guard = s.subscribe(move |_| { let _ = &used; });
//! let emitter = std::thread::spawn(move || (0..1000).for_each(|value| s.next(value)));
//! guard.unsubscribe_and_wait();
//! // From here on the observer is not running.
//! # emitter.join().unwrap();
//! # assert_eq!(Arc::strong_count(&resource), 1);
//! ```
//!
//! An operator that needs no more values ends its upstream subscription, so `take(1)` leaves no observer
//! behind:
//!
//! ```
//! use fanline::prelude::*;
//!
//! let (mut tx, source) = fanline::subject::<u32>();
//! source.take(1).subscribe(|value| println!("{value}")).detach();
//! tx.next(1);
//! assert!(!tx.has_observers());
//! ```
//!
//! # Drop of closures and values
//!
//! - An **observer** is dropped, with everything that its closure owns, when it is unsubscribed, after the
//!   source has ended, after it has panicked, or when it reports that it is [closed](Observer::is_closed). If
//!   it is unsubscribed during an emission, that emission drops it, or at the latest the next one.
//! - A **value** that is not retained is dropped by the call that emits it, after the last observer has
//!   received it.
//! - A **retained value** is dropped by the first emission, subscription, completion, or error that finds it
//!   no longer retained. While a subscriber reads retained values, the drop waits until the subscriber has
//!   finished. [`Source::trim`] empties a time window on an idle subject.
//! - **All retained values** are dropped when the subject is disposed of. This includes dropping the producer
//!   or the last handle before the subject has completed or failed. After completion or failure, they are
//!   dropped with the last source or handle.
//!
//! Destructors and observers run without a lock and may use the subject.
//!
//! ```
//! use fanline::Replay;
//! use std::sync::Arc;
//!
//! let (mut tx, source) = fanline::replay::<Arc<u32>>(Replay::one());
//! let (first, second) = (Arc::new(1), Arc::new(2));
//! tx.next(first.clone());
//! assert_eq!(Arc::strong_count(&first), 2); // retained
//! tx.next(second.clone());
//! assert_eq!(Arc::strong_count(&first), 1); // displaced
//! tx.dispose();
//! assert_eq!(Arc::strong_count(&second), 1);
//! # drop(source);
//! ```
//!
//! # Errors
//!
//! Subjects made by [`subject()`], [`Subject::new`], and similar constructors cannot fail. Their error type
//! is [`Infallible`](std::convert::Infallible), so there is nothing to handle. Subjects that can fail are
//! made by [`subject_with_error`], [`Subject::with_error`], and similar constructors. An error ends the
//! subject, and late observers get it as well. Observers get it by reference, so it need not be [`Clone`].
//!
//! ```
//! use fanline::{Subject, prelude::*};
//! use std::sync::{Arc, Mutex};
//!
//! let s = Subject::<u32, String>::with_error();
//! let report = Arc::new(Mutex::new(String::new()));
//! let sink = report.clone();
//! s.subscribe_with(
//!     observer(|value: &u32| println!("{value}"))
//!         .on_error(move |error: &String| sink.lock().unwrap().push_str(error))
//!         .on_complete(|| println!("done")),
//! )
//! .detach();
//! s.error("out of paper".to_owned());
//! s.next(1); // nothing happens after the end
//! assert_eq!(*report.lock().unwrap(), "out of paper");
//! ```
//!
//! Chains that are joined must have the same error type: [`with_error_type`](ObservableExt::with_error_type)
//! adds one to a chain that cannot fail, and [`map_err`](ObservableExt::map_err) changes it.
//! [`catch`](CombineExt::catch), [`retry`](CombineExt::retry), and
//! [`on_error_return`](ObservableExt::on_error_return) handle errors.
//!
//! A function that builds a chain panics if an argument is invalid, for example a bound of 0. The message
//! names the argument. Each such function documents this under *Panics*.
//!
//! # Threads
//!
//! The library has a single set of types, not one for multi-threaded and one for single-threaded use. Values
//! and errors of a subject are `Send + Sync`, because observers on several threads may read the same one.
//! Observers are `Send`, because they run on whichever thread emits. The compiler enforces it:
//!
//! ```compile_fail,E0277
//! let s = fanline::Subject::<u32>::new();
//! let seen = std::rc::Rc::new(std::cell::Cell::new(0));
//! s.subscribe(move |value| seen.set(*value)).detach(); // an `Rc` cannot change threads
//! ```
//!
//! On one thread, [`LocalSubject`] and its flavors take observers and values that are not `Send`. At the end of
//! any chain, [`subscribe_local`](ObservableExt::subscribe_local) takes an observer that stays on its thread, and
//! a [`ThreadBound`] lets the closures of operators use what stays there. The values must then arrive on that
//! thread: [`observe_on`](ObservableExt::observe_on) a [manual event loop](scheduler::EventLoop::manual) brings
//! them there.
//!
//! ```
//! use fanline::{prelude::*, scheduler::EventLoop};
//! use std::{cell::Cell, rc::Rc};
//!
//! let (ui, mut driver) = EventLoop::manual(|| { /* wake the loop of the user interface */ });
//! let (mut tx, source) = fanline::subject::<u32>();
//! let widget = Rc::new(Cell::new(0));
//! let shown = widget.clone();
//! let guard = source.observe_on(ui).subscribe_local(move |value| shown.set(*value));
//! std::thread::spawn(move || tx.next(42)).join().unwrap();
//! assert_eq!(widget.get(), 0);
//! driver.run_pending(); // on the thread of the widget
//! assert_eq!(widget.get(), 42);
//! # drop(guard);
//! ```
//!
//! The library starts threads in two cases only: for a scheduler that has threads, and for a time window,
//! whose default clock, [`Coarse`], is updated by one thread for the whole process.
//! [`observe_on`](ObservableExt::observe_on) moves work to another thread and preserves the order;
//! [`flat_map_on`](CombineExt::flat_map_on) spreads it over several.
//!
//! # Features
//!
//! No runtime is needed: streams and futures work under any runtime.
//!
//! - `std`, enabled by default: everything that needs an operating system. Without it, the crate needs only `core`
//!   and `alloc`, and 32-bit atomics; see [below](#without-the-standard-library).
//! - `tokio`: a scheduler on a tokio runtime, `TokioScheduler` in [`scheduler`].
//!
//! # Without the standard library
//!
//! With `default-features = false`, the crate has all subjects and the operators that need no clock, no scheduler,
//! and no hash table. Time windows, hubs, streams, and [`ThreadBound`] are missing. A [`Scheduler`] can be yours. Three
//! things differ:
//!
//! - A thread that finds a lock taken *spins*: it tries again until the lock is released. The locks are held for a
//!   few instructions. But an interrupt handler must not use a subject, or drop a guard, that the interrupted code
//!   may be using, because the handler would spin forever. The same holds for threads with strict priorities.
//! - A panic of an observer is not caught, so it ends the program.
//! - Threads cannot be distinguished. `Guard::unsubscribe_and_wait` is missing, and a guard of a subject for one thread
//!   leaves the removal of the observer to the next use of the subject.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(feature = "std"),
    allow(dead_code, reason = "parts that wait or use time have no callers")
)]

extern crate alloc;

pub mod clock;
#[cfg(any(doc, doctest))]
pub mod coming_from;
pub mod create;
mod fence;
mod guard;
#[cfg(feature = "std")]
mod hand_over;
#[cfg(feature = "std")]
pub mod hub;
mod observable;
mod observer;
pub mod operators;
#[cfg(feature = "std")]
mod pinned;
pub mod scheduler;
mod spin_lock;
#[cfg(feature = "std")]
pub mod stream;
mod subject;
mod sync;
#[cfg(feature = "std")]
pub mod testing;
mod unwind;

pub use clock::{Clock, Time};
#[cfg(feature = "std")]
pub use clock::{Coarse, Precise};
#[cfg(feature = "std")]
pub use create::case;
pub use create::{
    Emitter, create, defer, empty, from_fn, from_iter, generate, if_then, never, of, range,
    repeat_value, throw, try_from_iter, using, while_do,
};
pub use guard::Guard;
pub use observable::{BoxObservable, IntoObservable, Observable};
pub use observer::{
    BoxObserver, Callbacks, Called, CompleteCallback, ErrorCallback, Ignored, Observer, observer,
};
pub use operators::{CombineExt, Notification, ObservableExt};
#[cfg(feature = "std")]
pub use operators::{TimeExt, interval, interval_on, timer, timer_on};
#[cfg(feature = "std")]
pub use pinned::ThreadBound;
pub use scheduler::{Scheduler, Worker};
#[cfg(feature = "std")]
pub use stream::{from_future, from_stream, try_from_future, try_from_stream};
pub use subject::{
    AsyncSubject, BehaviorSubject, End, FromLocal, FromSource, LocalAsyncSubject,
    LocalBehaviorSubject, LocalReplaySubject, LocalSubject, Members, NoValue, OnPanic, Producer,
    Replay, ReplaySubject, SharedSubject, Source, Subject, UnsyncSubject, behavior,
    behavior_with_error, last_value, last_value_with_error, replay, replay_of, replay_with_error,
    subject, subject_of, subject_with_error,
};

/// The flavors as types, for naming the type of a producer.
pub mod policy {
    pub use crate::subject::policy::{
        All, Current, Last, Many, ManyWithin, One, Policy, Publish, Within,
    };
    pub use crate::subject::{AnyReplay, Boxed, Entry, Flavor, Inline};
}

/// The traits and functions that most programs need: `use fanline::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "std")]
    pub use crate::TimeExt;
    pub use crate::{
        CombineExt, Guard, IntoObservable, Observable, ObservableExt, Observer, Scheduler, Worker,
        observer::observer,
    };
}
