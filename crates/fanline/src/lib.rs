//! In-process fan-out: one value, every observer. Subjects multicast what is put into them, five
//! flavours of replay tell late observers what they missed, and schedulers, operators and streams take
//! values to other threads and into asynchronous code. It is Rx as a Rust programmer would have it:
//! values go by reference, a subscription is a guard, what you do not use costs nothing, and nobody is
//! ever called back under a lock.
//!
//! ```
//! use fanline::{Replay, prelude::*};
//! use std::sync::{Arc, Mutex};
//!
//! let (mut tx, temperatures) = fanline::replay::<f64>(Replay::many(2));
//! tx.next_slice(&[19.5, 20.0, 21.5]);
//!
//! // Whoever comes late gets the last two first, and then what follows.
//! let warm = Arc::new(Mutex::new(Vec::new()));
//! let seen = warm.clone();
//! let guard = temperatures
//!     .filter(|celsius| *celsius > 20.0)
//!     .map(|celsius| format!("{celsius} °C"))
//!     .subscribe(move |text| seen.lock().unwrap().push(text.clone()));
//! tx.next(18.0);
//! tx.next(22.0);
//! drop(guard); // unsubscribes
//! tx.next(30.0);
//! assert_eq!(*warm.lock().unwrap(), ["21.5 °C", "22 °C"]);
//! ```
//!
//! This page answers what one asks before using it. [`coming_from`] has the names for those who know
//! another library, [`testing`] what makes tests of time exact, and `examples/` in the repository has
//! whole programs.
//!
//! - [Which subject do I want?](#which-subject-do-i-want)
//! - [What does it cost?](#what-does-it-cost)
//! - [What happens when an observer panics?](#what-happens-when-an-observer-panics)
//! - [What happens on re-entrancy?](#what-happens-on-re-entrancy)
//! - [What happens when I subscribe late?](#what-happens-when-i-subscribe-late)
//! - [What happens when an observer is slow?](#what-happens-when-an-observer-is-slow)
//! - [How do I unsubscribe?](#how-do-i-unsubscribe)
//! - [When are closures and values dropped?](#when-are-closures-and-values-dropped)
//! - [What about errors?](#what-about-errors)
//! - [What about threads?](#what-about-threads)
//! - [Features](#features)
//!
//! # Which subject do I want?
//!
//! First, what late observers are to get:
//!
//! | they get | exclusive: one [`Producer`] | shared: clones of a handle |
//! | --- | --- | --- |
//! | what comes after | [`subject()`] | [`Subject::new`] |
//! | the current value first; there always is one | [`behavior`] | [`BehaviorSubject::new`] |
//! | the last value, once the subject has completed | [`last_value`] | [`AsyncSubject::new`] |
//! | everything | [`replay`]`(`[`Replay::all`]`())` | [`ReplaySubject::new`]`(…)` |
//! | the last value, if there is one | `replay(`[`Replay::one`]`())` | the same |
//! | the last n values | `replay(`[`Replay::many`]`(n))` | the same |
//! | the values of the last so many seconds | `replay(`[`Replay::within`]`(d))` | the same |
//! | of those the last n | `replay(`[`Replay::many_within`]`(n, d))` | the same |
//!
//! Then, who emits:
//!
//! - **One place in the program**: the exclusive form. There is one producer, emitting takes it by
//!   `&mut`, and the compiler sees to it that calls do not overlap. Subscribing is for everybody, through
//!   clones of a [`Source`].
//! - **Several threads, or observers themselves**: the shared form, the subject that Rx knows. Emitting
//!   takes `&self`, and clones are the same subject.
//! - **One thread, with values or observers that are not [`Send`]**: [`LocalSubject`].
//! - **Many observers of one type**: [`subject_of`] and [`replay_of`] call them without an indirection.
//!
//! Where consumers pull instead of being called, and the producer is to wait for them, take a [`hub`].
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
//! The flavours of replay differ in nothing but what they retain; [`Replay`] says when they let go of it.
//! A subject that is disposed of, or whose producer or last handle is dropped before the end, ends
//! without a word: observers are dropped and not told. Where the end of the producer is the end of the
//! values, as with a channel, say so:
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
//! # What does it cost?
//!
//! **To emit.** A message costs one indirect call for each observer, and besides:
//!
//! | | for each message |
//! | --- | --- |
//! | exclusive | no lock and no atomic read-modify-write: plain loads and stores |
//! | shared | one read-modify-write, however many observers there are; two for a while after threads were in each other's way |
//! | [`LocalSubject`] | no atomic read-modify-write |
//!
//! The exclusive form relies on a fence that the rare side, who subscribes or unsubscribes, makes for
//! both. Linux has it (`membarrier`); elsewhere each message costs one full fence more.
//!
//! **To retain.** Each flavour stores what it needs and nothing else:
//!
//! | flavour | stored for each value | allocations |
//! | --- | --- | --- |
//! | [`subject()`] | nothing | none |
//! | [`behavior`], [`last_value`], [`Replay::one`], [`Replay::many`] | the value, in a ring | none, once the ring has its size |
//! | [`Replay::all`] | the value, in chunks | one for 2,048 values, or for 2 MiB of them |
//! | [`Replay::within`] | the value; the time once for each millisecond, not for each value | the same, and chunks are used again |
//! | [`Replay::many_within`] | the same, in a ring | none |
//!
//! Retained values are not cloned for those who come late: each observer is shown the same one, in
//! place. Emission allocates nothing else, whatever the number of observers. What does: a value that is
//! queued because the shared form is busy, a retained slice whose values allocate when they are cloned,
//! several values with destructors that fall off at once, and operators that keep values, which say so.
//!
//! A slice costs less than its values one by one, because each observer is called once for it: with many
//! observers, that is most of the cost.
//!
//! ```
//! let (mut tx, source) = fanline::subject::<u32>();
//! source.subscribe(|value| println!("{value}")).detach();
//! tx.next_slice(&[1, 2, 3]); // one call of the observer's `next_slice`
//! ```
//!
//! **To subscribe.** One allocation for the observer's box, a lock, and for retained values the time to
//! pass them on. Coming and going does not depend on how many others are subscribed.
//!
//! **To chain.** Operators are generic structs without boxes: a chain is compiled to one observer.
//! [`boxed`](ObservableExt::boxed) trades an indirect call for a short type.
//!
//! What that makes in nanoseconds is the machine's business. The repository's benchmark measures every
//! flavour in both forms beside loops written by hand for just that load, and beside RxJava 3, rxRust and
//! tokio's broadcast with `--rivals`:
//!
//! ```sh
//! cargo run --release -p fanline-bench -- replay
//! cargo run --release -p fanline-bench -- schedulers
//! ```
//!
//! # What happens when an observer panics?
//!
//! It is removed, all others get the value, and then the panic goes on in whoever emitted. The subject
//! stays in order: nothing is poisoned, and the next value is emitted as ever.
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
//! assert!(emitted.is_err()); // resumed in the emitter, after everybody was called
//! assert_eq!(s.observer_count(), 1);
//! s.next(2);
//! assert_eq!(sum.load(Ordering::Relaxed), 3); // the other one missed nothing
//! ```
//!
//! [`OnPanic`] has the other choices, to go on or to abort: [`Producer::on_observer_panic`],
//! [`Subject::on_observer_panic`] and the same of every other subject. A panic in an operator's closure is one
//! of the observer behind it. A panic while retained values are passed on unwinds out of `subscribe`. On a
//! scheduler it ends one action and no thread; each scheduler says where the panic goes.
//!
//! # What happens on re-entrancy?
//!
//! An observer may do with its subject what anybody may, since it is never called under a lock. A value
//! that it emits comes after the one it was given, for all observers: breadth first.
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
//!         again.next(2); // queued: returns before anybody has got it
//!     }
//! })
//! .detach();
//! let log = order.clone();
//! s.subscribe(move |value| log.lock().unwrap().push(format!("B{value}"))).detach();
//! s.next(1);
//! assert_eq!(*order.lock().unwrap(), ["A1", "B1", "A2", "B2"]);
//! ```
//!
//! So every observer sees the same order. A nested `complete` or `error` is queued in the same way;
//! `dispose` takes effect at once. What other threads emit meanwhile joins the same queue, and whoever
//! is emitting passes it on: nobody waits, and a call of `next` may return before its value has reached
//! anybody, or pass on values of others.
//!
//! The exclusive form cannot be re-entered, which is why it needs no queue. An observer would have to own
//! the producer:
//!
//! ```compile_fail,E0382
//! let (mut tx, source) = fanline::subject::<u32>();
//! source.subscribe(move |value| tx.next(value + 1)).detach();
//! tx.next(1); // moved into the closure
//! ```
//!
//! # What happens when I subscribe late?
//!
//! You get what the subject retains, inside the call of `subscribe` and on your thread, and then every
//! later value, each exactly once and in order. It does not matter whether something is being emitted, on
//! which thread, or how long you take for the retained values: the emitter and the other observers do
//! not wait for you. If you are slower than the emitter, `subscribe` goes on until you have caught up.
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
//! // In the midst of it, wherever that is:
//! let seen = source.into_stream(Unbounded).blocking_iter();
//! assert!(seen.eq(0..10_000));
//! # emitter.join().unwrap();
//! ```
//!
//! Subscribed to from inside an observer, a replay subject passes on at once what it retains, the value
//! that is being emitted among it; a plain subject begins with the next value.
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
//! After the end:
//!
//! | | a late observer gets |
//! | --- | --- |
//! | [`subject()`], [`behavior`] | the end |
//! | [`last_value`] | the last value and the completion; or the error |
//! | [`replay`] | the retained values and the end; windows of time run on after it, see [`Replay::within`] |
//! | any, disposed of | nothing, and its guard is closed |
//!
//! # What happens when an observer is slow?
//!
//! Subjects call their observers on the thread that emits, one after the other. So a slow observer holds
//! up the emitter and everybody else, and nothing is ever lost or queued. Put a queue where you want one,
//! and say what it does when it is full:
//!
//! | | when the consumer is slower |
//! | --- | --- |
//! | nothing | the emitter waits for each call |
//! | [`observe_on`](ObservableExt::observe_on) | values queue up on a scheduler's lane; memory grows |
//! | [`observe_on_with`](ObservableExt::observe_on_with) a [`Bound`](scheduler::Bound) | blocks, drops the oldest, drops the newest, or fails |
//! | [`into_stream`](ObservableExt::into_stream) with a [policy](stream#which-policy-do-i-want) | the same choices, or the latest value alone; lost values are counted, and told where you ask for it |
//! | a [`hub`] in place of a subject | the producer waits for the slowest in bounded memory, unless told otherwise |
//! | [`sample`](ObservableExt::sample), [`throttle`](ObservableExt::throttle), [`debounce`](ObservableExt::debounce) | fewer values |
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
//! Who is slow with *retained* values holds up nobody, at the price of memory: what is retained from then
//! on stays until the replay is over.
//!
//! # How do I unsubscribe?
//!
//! Drop the [`Guard`], or call [`unsubscribe`](Guard::unsubscribe); from any thread, from inside the
//! observer, twice. To keep a subscription for as long as its source lasts, [`detach`](Guard::detach) it.
//! A guard that is not bound to a name is dropped at once, and unsubscribes; the compiler warns of it.
//!
//! An observer that is removed by another one while a value is emitted, and was not called for it yet, is
//! not called any more:
//!
//! ```
//! use fanline::Subject;
//! use std::sync::{Arc, Mutex};
//!
//! let s = Subject::<u32>::new();
//! let second = Arc::new(Mutex::new(None));
//! let other = second.clone();
//! s.subscribe(move |_| drop(other.lock().unwrap().take())).detach();
//! *second.lock().unwrap() = Some(s.subscribe(|_| unreachable!("it was removed before")));
//! s.next(1);
//! ```
//!
//! On another thread a call may be in progress, or just be decided upon, when `unsubscribe` returns.
//! [`unsubscribe_and_wait`](Guard::unsubscribe_and_wait) returns when it is over; do not call it with a
//! lock that the observer takes.
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
//! An operator ends its upstream subscription when nothing more is wanted, so `take(1)` leaves nobody
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
//! # When are closures and values dropped?
//!
//! - An **observer**, with all that its closure owns: when it is unsubscribed; after the end of the
//!   source; after a panic; when it says that it is [closed](Observer::is_closed). Unsubscribed while
//!   something is being emitted, it is dropped by that emission, at the latest by the next.
//! - A **value** that is not retained: by the call that emits it, after the last observer.
//! - A **retained value**: by the emission, the subscription or the end that finds it no longer retained;
//!   while somebody is being given retained values, once that is done. A window of time on a subject where
//!   nothing happens is emptied by [`Source::trim`].
//! - **All retained values**: when the subject is disposed of, as it is when the producer or the last
//!   handle is dropped before the end; after an end, with the last source or handle.
//!
//! Destructors run without a lock, as observers do, and may use the subject.
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
//! # What about errors?
//!
//! A subject made by [`subject()`], [`Subject::new`] and their like cannot fail: its error is
//! [`Infallible`](std::convert::Infallible), and nobody need handle it. One that can fail is made by
//! [`subject_with_error`], [`Subject::with_error`] and their like. An error ends the subject, and late
//! observers are given it as well. Observers get it by reference: it need not be [`Clone`] for a subject.
//!
//! ```
//! use fanline::{Subject, prelude::*};
//! use std::sync::{Arc, Mutex};
//!
//! let s = Subject::<u32, String>::with_error();
//! let said = Arc::new(Mutex::new(String::new()));
//! let heard = said.clone();
//! s.subscribe_with(
//!     observer(|value: &u32| println!("{value}"))
//!         .on_error(move |error: &String| heard.lock().unwrap().push_str(error))
//!         .on_complete(|| println!("done")),
//! )
//! .detach();
//! s.error("out of paper".to_owned());
//! s.next(1); // nothing happens after the end
//! assert_eq!(*said.lock().unwrap(), "out of paper");
//! ```
//!
//! Chains that are joined must agree on their error type:
//! [`with_error_type`](ObservableExt::with_error_type) gives one to what cannot fail, and
//! [`map_err`](ObservableExt::map_err) changes it. [`catch`](ObservableExt::catch),
//! [`retry`](ObservableExt::retry) and [`on_error_return`](ObservableExt::on_error_return) deal with it.
//!
//! Wrong arguments panic where the chain is put together, and the message names the argument: a bound of 0,
//! say. Each such function says so under *Panics*.
//!
//! # What about threads?
//!
//! There is one world, not one for threads and one without. Values and errors of a subject are
//! `Send + Sync`, since observers on several threads may look at one; observers are `Send`, since they are
//! called wherever somebody emits. The compiler holds you to it:
//!
//! ```compile_fail,E0277
//! let s = fanline::Subject::<u32>::new();
//! let seen = std::rc::Rc::new(std::cell::Cell::new(0));
//! s.subscribe(move |value| seen.set(*value)).detach(); // an `Rc` cannot change threads
//! ```
//!
//! On one thread, [`LocalSubject`] takes observers and values that need not be. And an observer that stays
//! on its thread can stand at the end of any chain,
//! [`subscribe_local`](ObservableExt::subscribe_local), provided that the values come there:
//! [`observe_on`](ObservableExt::observe_on) a [manual event loop](scheduler::EventLoop::manual) brings them.
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
//! Nothing in the library starts a thread unless it is asked to by a scheduler that has some, or by a
//! window of time, whose default clock, [`Coarse`], is read by one thread for the whole process.
//! [`observe_on`](ObservableExt::observe_on) moves work to another thread and keeps its order; to spread it
//! over several there is [`flat_map_on`](ObservableExt::flat_map_on).
//!
//! # Features
//!
//! None is on by default, and no runtime is needed: streams and futures work under any.
//!
//! - `tokio`: a scheduler on a tokio runtime, `TokioScheduler` in [`scheduler`].

pub mod clock;
#[cfg(any(doc, doctest))]
pub mod coming_from;
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
pub use operators::{Notification, ObservableExt, interval, timer};
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

/// The examples of the read-me file are tried with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
