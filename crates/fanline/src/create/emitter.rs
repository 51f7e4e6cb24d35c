use alloc::boxed::Box;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{BoxObserver, Guard, Observable, Observer};

/// Creates an observable from a closure, which is called at subscription with its own [`Emitter`].
///
/// The closure may emit at once, or move the emitter to another thread or to a callback of another library.
/// The closure returns either nothing, or the [`Guard`] of the resources that it has set up. That guard is
/// dropped when the emitter has ended or has been dropped, or when the observer is closed or unsubscribed. It
/// is dropped on the thread that causes this: the emitting or the unsubscribing thread. A detached
/// subscription continues until the emitter has ended or is dropped.
///
/// [`Guard::unsubscribe_and_wait`] on the subscription calls `unsubscribe_and_wait` on the guard that the
/// closure returned. It does not wait for a call of the emitter that is in progress.
///
/// ```
/// use fanline::{Emitter, prelude::*};
///
/// let ticks = fanline::create(|mut emitter: Emitter<u32>| {
///     let worker = std::thread::spawn(move || {
///         for n in 0..3 {
///             emitter.next(n);
///         }
///         emitter.complete();
///     });
///     worker.join().expect("nothing in it panics");
/// });
/// ticks.count().subscribe(|count| assert_eq!(*count, 3)).detach();
/// ```
pub fn create<T, E, F, G>(f: F) -> Create<F, T, E>
where
    F: FnOnce(Emitter<T, E>) -> G,
    G: Into<Guard>,
{
    Create {
        f,
        types: PhantomData,
    }
}

/// An observable that calls a closure; see [`create()`].
pub struct Create<F, T, E = Infallible> {
    f: F,
    types: PhantomData<fn() -> (T, E)>,
}

impl<F: Clone, T, E> Clone for Create<F, T, E> {
    fn clone(&self) -> Self {
        Self {
            f: self.f.clone(),
            types: PhantomData,
        }
    }
}

impl<F, T, E> fmt::Debug for Create<F, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Create").finish_non_exhaustive()
    }
}

impl<F, G, T, E> Observable for Create<F, T, E>
where
    F: FnOnce(Emitter<T, E>) -> G,
    G: Into<Guard>,
{
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        let state = Arc::new(EmitterState {
            closed: AtomicBool::new(false),
            teardown: Mutex::new(None),
        });
        let emitter = Emitter {
            observer: Some(Box::new(observer)),
            state: state.clone(),
        };
        state.store_teardown((self.f)(emitter).into());
        if state.is_closed() {
            return Guard::closed();
        }
        Guard::registered(state, 0)
    }
}

/// Returns a closed guard: there is nothing to clean up.
impl From<()> for Guard {
    fn from((): ()) -> Self {
        Self::closed()
    }
}

/// The sender of values in the closure of [`create()`]. Each subscription has only one emitter, so calls
/// cannot overlap. `complete` and `error` consume it, so nothing can follow them. If it is dropped without
/// completion or error, the observer receives neither.
///
/// After an unsubscription, the emitter discards values, and the next call of one of its methods drops the
/// observer.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use fanline::{Emitter, Guard, prelude::*};
///
/// /// A library with callbacks.
/// type Callback = Box<dyn FnMut(u32) + Send>;
/// let registered: Arc<Mutex<Option<Callback>>> = Arc::default();
///
/// let registry = registered.clone();
/// let events = fanline::create(move |mut emitter: Emitter<u32>| {
///     *registry.lock().unwrap() = Some(Box::new(move |event| emitter.next(event)));
///     Guard::new(move || drop(registry.lock().unwrap().take()))
/// });
/// let guard = events.subscribe(|event| println!("{event}"));
/// if let Some(callback) = &mut *registered.lock().unwrap() {
///     callback(7);
/// }
/// drop(guard);
/// assert!(registered.lock().unwrap().is_none());
/// ```
pub struct Emitter<T, E = Infallible> {
    observer: Option<BoxObserver<T, E>>,
    state: Arc<EmitterState>,
}

impl<T, E> Emitter<T, E> {
    /// Emits a value, or drops it if the observer is closed.
    pub fn next(&mut self, value: T) {
        self.emit(|observer| observer.next_owned(value));
    }

    /// Emits borrowed values.
    pub fn next_slice(&mut self, values: &[T]) {
        self.emit(|observer| observer.next_slice(values));
    }

    /// Ends with an error.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an error is passed by value, like the values"
    )]
    pub fn error(mut self, error: E) {
        self.emit(|observer| observer.error(&error));
    }

    /// Completes.
    pub fn complete(mut self) {
        self.emit(|observer| observer.complete());
    }

    /// Returns whether the observer needs no more values. The caller can then stop.
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
            || self
                .observer
                .as_ref()
                .is_none_or(|observer| observer.is_closed())
    }

    fn emit(&mut self, call: impl FnOnce(&mut BoxObserver<T, E>)) {
        if !self.is_closed()
            && let Some(observer) = &mut self.observer
        {
            call(observer);
        }
        if self.is_closed() && self.observer.take().is_some() {
            self.state.close();
        }
    }
}

impl<T, E> Drop for Emitter<T, E> {
    fn drop(&mut self) {
        drop(self.observer.take());
        self.state.close();
    }
}

impl<T, E> fmt::Debug for Emitter<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// State shared by an emitter and the guard of its subscription.
struct EmitterState {
    /// Whether the subscription is closed. Accesses are relaxed, because the flag protects no other data;
    /// `teardown` has its own lock. If an unsubscription happens before a call of an emitter's method, that
    /// call sees the flag.
    closed: AtomicBool,
    teardown: Mutex<Option<Guard>>,
}

impl EmitterState {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Stores the guard until the subscription is closed. If it is closed already, drops the guard.
    fn store_teardown(&self, guard: Guard) {
        let mut teardown = lock(&self.teardown);
        // The flag is checked under the lock, because `close` sets the flag first and then takes the guard
        // under the lock.
        if self.is_closed() {
            drop(teardown);
            drop(guard);
        } else {
            *teardown = Some(guard);
        }
    }

    fn close(&self) {
        drop(self.take_teardown());
    }

    fn take_teardown(&self) -> Option<Guard> {
        self.closed.store(true, Ordering::Relaxed);
        lock(&self.teardown).take()
    }
}

impl Registry for EmitterState {
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn remove_and_wait(&self, _key: u64) {
        if let Some(guard) = self.take_teardown() {
            guard.wait_and_close();
        }
    }

    fn contains(&self, _key: u64) -> bool {
        !self.is_closed()
    }
}
