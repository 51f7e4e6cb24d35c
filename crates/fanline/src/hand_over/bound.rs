use std::sync::Arc;

/// The capacity of a queue between threads, and its overflow policy.
///
/// Only queued values count toward the capacity, not the value that the downstream observer is processing.
///
/// ```
/// use fanline::{Subject, prelude::*};
/// use fanline::scheduler::{Bound, VirtualTime};
///
/// let time = VirtualTime::new();
/// let s = Subject::<u32, &str>::with_error();
/// s.source()
///     .observe_on_with(time.clone(), Bound::fail(2, || "too slow"))
///     .subscribe_with(
///         fanline::observer(|n: &u32| assert!(*n <= 2))
///             .on_error(|error: &&str| assert_eq!(*error, "too slow")),
///     )
///     .detach();
/// s.next_slice(&[1, 2, 3]);
/// time.run();
/// assert!(!s.has_observers());
/// ```
#[derive(Clone)]
pub struct Bound<E = std::convert::Infallible> {
    pub(super) capacity: usize,
    pub(super) overflow: Overflow<E>,
}

#[derive(Clone)]
pub(super) enum Overflow<E> {
    Block,
    DropOldest,
    DropNewest,
    Fail(Arc<dyn Fn() -> E + Send + Sync>),
}

impl<E> Bound<E> {
    /// Blocks the emitting thread until there is room.
    ///
    /// Some threads must not wait, because they are needed to make room: the threads that run actions of the
    /// same worker, loop, or pool, and any thread on virtual time. Such a thread empties the queue itself,
    /// inside the call that found the queue full. If the downstream observer makes that call, the value is
    /// queued although the queue is full.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn block(capacity: usize) -> Self {
        Self::new(capacity, Overflow::Block)
    }

    /// Drops the oldest queued value.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn drop_oldest(capacity: usize) -> Self {
        Self::new(capacity, Overflow::DropOldest)
    }

    /// Drops the new value.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn drop_newest(capacity: usize) -> Self {
        Self::new(capacity, Overflow::DropNewest)
    }

    /// When the queue is full, accepts no more values from the source. Delivers the queued values, and then
    /// the error that `make` returns.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn fail(capacity: usize, make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self::new(capacity, Overflow::Fail(Arc::new(make)))
    }

    fn new(capacity: usize, overflow: Overflow<E>) -> Self {
        assert!(capacity > 0, "`capacity` must be at least 1");
        Self { capacity, overflow }
    }
}

impl<E> std::fmt::Debug for Bound<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let overflow = match &self.overflow {
            Overflow::Block => "block",
            Overflow::DropOldest => "drop oldest",
            Overflow::DropNewest => "drop newest",
            Overflow::Fail(_) => "fail",
        };
        f.debug_struct("Bound")
            .field("capacity", &self.capacity)
            .field("overflow", &overflow)
            .finish()
    }
}
