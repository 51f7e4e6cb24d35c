//! Options of a merge hub.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::shared::Shared;
use super::{MergeHub, MergeReceiver};
use crate::Scheduler;
use crate::hub::timer::Timer;
use crate::hub::{BoxError, CAPACITY_MAX, OptionsError};

/// A builder of a merge hub; see [`MergeHub::options`].
///
/// ```
/// use fanline::hub::MergeHub;
///
/// let (hub, rx) = MergeHub::<u64>::options().total(100).build();
/// # drop((hub, rx));
/// ```
#[must_use = "options do nothing until `build` is called"]
pub struct MergeOptions<T, E = BoxError> {
    rules: Rules,
    types: PhantomData<fn() -> (T, E)>,
}

/// The options of a hub.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) per_producer: usize,
    pub(super) total: Option<usize>,
    pub(super) timer: Timer,
}

impl<T, E> MergeOptions<T, E> {
    pub(super) fn new() -> Self {
        Self {
            rules: Rules {
                per_producer: 16,
                total: None,
                timer: Timer::default(),
            },
            types: PhantomData,
        }
    }

    /// Sets the number of elements of one producer that can be queued; from 1 to [`CAPACITY_MAX`]. The default
    /// is 16.
    pub fn per_producer(mut self, count: usize) -> Self {
        self.rules.per_producer = count;
        self
    }

    /// Sets the number of elements of all producers together that can be queued; from 1 to [`CAPACITY_MAX`].
    /// This limit is never exceeded: producers wait for permits in the order of their requests.
    ///
    /// By default only the producers' own limits apply. Producers that have left still count while their
    /// elements are queued. So if producers come and go while the consumer does not receive, only this limit
    /// bounds the memory.
    pub fn total(mut self, count: usize) -> Self {
        self.rules.total = Some(count);
        self
    }

    /// Sets the scheduler whose time the `_timeout` methods use. The default is the process's
    /// [`ThreadPool`](crate::scheduler::ThreadPool), which starts on first use.
    pub fn scheduler(mut self, scheduler: impl Scheduler) -> Self {
        self.rules.timer = Timer::on(scheduler);
        self
    }

    /// Builds the hub.
    ///
    /// # Panics
    ///
    /// If an option is out of range; the message names it. [`try_build`](Self::try_build) returns an error
    /// instead.
    pub fn build(self) -> (MergeHub<T, E>, MergeReceiver<T, E>) {
        match self.try_build() {
            Ok(ends) => ends,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the hub, or returns an error.
    ///
    /// # Errors
    ///
    /// If an option is out of range; the error names it.
    #[expect(
        clippy::type_complexity,
        reason = "two ends, each with its element and error type"
    )]
    pub fn try_build(self) -> Result<(MergeHub<T, E>, MergeReceiver<T, E>), OptionsError> {
        self.rules.check()?;
        let (shared, head) = Shared::new(&self.rules);
        let shared = Arc::new(shared);
        Ok((
            MergeHub {
                shared: shared.clone(),
            },
            MergeReceiver::new(shared, head),
        ))
    }
}

impl Rules {
    fn check(&self) -> Result<(), OptionsError> {
        OptionsError::check_range("per_producer", self.per_producer, 1, CAPACITY_MAX)?;
        if let Some(total) = self.total {
            OptionsError::check_range("total", total, 1, CAPACITY_MAX)?;
        }
        Ok(())
    }
}

impl<T, E> Clone for MergeOptions<T, E> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            types: PhantomData,
        }
    }
}

impl<T, E> fmt::Debug for MergeOptions<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MergeOptions").field(&self.rules).finish()
    }
}
