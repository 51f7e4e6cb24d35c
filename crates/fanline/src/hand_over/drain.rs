//! The receiving side of a queue between threads (the *drain*): which thread empties the queue, and when.
//!
//! The drain consists of the observer and the receiving end. At any time the drain is stored in its slot,
//! taken by the thread that empties the queue, or dropped. While the flag `idle` is set, the drain is in its
//! slot, and no action is scheduled to empty the queue. The thread that clears the flag schedules that
//! action. The sender checks the flag after it has published a value. The thread that returns the drain to
//! its slot checks for values after it has set the flag. Fences ensure that at least one of the two sees the
//! other's change.

use std::sync::Arc;

use super::space::Space;
use super::{bounded, chunks};
use crate::fence::Fences;
use crate::guard::Registry;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait};
use crate::{Guard, Observer, Worker};

/// Number of values that one action delivers before it yields to other actions on its thread.
const VALUES_BEFORE_YIELD: usize = 4096;

/// If the recent rate of values, which `deliver` computes, is at least this number, the drain briefly waits
/// for more values before it stops.
const LINGER_VALUES_MIN: usize = 16;
/// Number of checks for more values while the drain waits before it stops. The wait takes about a
/// microsecond, in which a fast sender can write hundreds of values undisturbed.
const LINGER_LOOKS: usize = 8;
/// Number of spins before each of these checks.
const LINGER_SPINS: usize = 64;

/// The state that the sender and the drain share.
pub(super) struct Shared<T, E, O> {
    /// Whether delivery must stop. The flag is a hint and protects no data, so Relaxed suffices.
    closed: AtomicBool,
    idle: AtomicBool,
    ended: AtomicBool,
    end: Mutex<Option<End<E>>>,
    slot: Mutex<Slot<T, O>>,
    stopped: Condvar,
    fill: Fill<T>,
    upstream: Mutex<Guard>,
    fences: Fences,
}

/// The receiving side: the observer, and the end of the queue from which its values come.
pub(super) struct Drain<T, O> {
    pub(super) observer: O,
    pub(super) outlet: Outlet<T>,
}

pub(super) enum Outlet<T> {
    Unbounded(chunks::Receiver<T>),
    Bounded(chunks::Receiver<T>, Arc<Space>),
    DropOldest(Arc<bounded::Queue<T>>),
}

/// The length of the queue. A thread can read it without taking the drain.
enum Fill<T> {
    Unbounded(Arc<chunks::Written>),
    Bounded(Arc<chunks::Written>, Arc<Space>),
    DropOldest(Arc<bounded::Queue<T>>),
}

pub(super) enum End<E> {
    Error(E),
    Complete,
}

struct Slot<T, O> {
    drain: Option<Drain<T, O>>,
    /// The thread that has taken the drain.
    running: Option<ThreadId>,
    /// The thread that last scheduled the drain.
    sender: Option<ThreadId>,
    /// Whether the thread in `sender` is still inside the scheduling call.
    scheduling: bool,
    /// Whether an action was scheduled and has not started.
    scheduled: bool,
}

/// The relation between the thread that scheduled the drain and the current thread, which runs it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchedulingThread {
    /// The scheduling call is a caller of this action on the same stack, and waits for it to return.
    CallerOnStack,
    SameThread,
    OtherThread,
}

/// The reason why a drain stops.
enum Stop {
    /// The queue is empty.
    Empty,
    /// The action has delivered as many values as one action may deliver.
    Enough,
    /// The observer is closed.
    Closed,
    /// All values, and then the completion or the error, were delivered.
    Ended,
}

/// A scheduled action. If it is dropped before it ran, because a scheduler was shut down, it ends delivery.
struct ScheduledAction<T, E, O>(Option<Arc<Shared<T, E, O>>>);

impl<T, E, O> Drop for ScheduledAction<T, E, O> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.close();
        }
    }
}

impl<T, E, O> Shared<T, E, O> {
    pub(super) fn new(drain: Drain<T, O>) -> Self {
        let fill = match &drain.outlet {
            Outlet::Unbounded(receiver) => Fill::Unbounded(receiver.written()),
            Outlet::Bounded(receiver, space) => {
                Fill::Bounded(receiver.written(), Arc::clone(space))
            }
            Outlet::DropOldest(queue) => Fill::DropOldest(Arc::clone(queue)),
        };
        Self {
            closed: AtomicBool::new(false),
            idle: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            end: Mutex::new(None),
            slot: Mutex::new(Slot {
                drain: Some(drain),
                running: None,
                sender: None,
                scheduling: false,
                scheduled: false,
            }),
            stopped: Condvar::new(),
            fill,
            upstream: Mutex::new(Guard::closed()),
            fences: Fences::detect(),
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns whether the flag `idle` is set. The sender calls this after it has published a value. If the
    /// flag is set, the sender must [clear it](Shared::clear_idle).
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.fences.light();
        // Relaxed: the fence orders the load after the publication.
        self.idle.load(Ordering::Relaxed)
    }

    /// Clears the flag `idle`. Returns whether this call cleared it; if so, the caller must schedule an
    /// action.
    #[cold]
    pub(super) fn clear_idle(&self) -> bool {
        // Acquire: sees the drain in its slot.
        self.idle.swap(false, Ordering::AcqRel)
    }

    /// Stores the completion or the error, which the drain delivers after the values.
    pub(super) fn end(&self, end: End<E>) {
        *lock(&self.end) = Some(end);
        // Release: a drain that sees the flag also sees the values published before.
        self.ended.store(true, Ordering::Release);
    }

    /// Stores the guard of the source, or drops it if delivery has stopped.
    pub(super) fn set_upstream(&self, guard: Guard) {
        let mut upstream = lock(&self.upstream);
        let before = std::mem::replace(&mut *upstream, guard);
        drop(upstream);
        drop(before);
        if self.is_closed() {
            self.release_upstream();
        }
    }

    fn release_upstream(&self) {
        let guard = std::mem::take(&mut *lock(&self.upstream));
        drop(guard);
    }

    /// Returns whether a caller of this function, on the same stack, is emptying the queue.
    pub(super) fn drains_here(&self) -> bool {
        lock(&self.slot).running == Some(thread::current().id())
    }

    /// Stops delivery, and drops the queued values and the observer. If the observer is being called, it is
    /// dropped after that call.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // A thread that puts the drain back into its slot checks `closed` under the same lock.
        let drain = lock(&self.slot).drain.take();
        match &self.fill {
            Fill::Unbounded(_) => {}
            Fill::Bounded(_, space) => space.wake_all(),
            Fill::DropOldest(queue) => queue.clear(),
        }
        self.release_upstream();
        drop(drain);
    }

    /// Takes the drain out of its slot, if it is there.
    fn take_drain(&self, by: TakenBy) -> Option<Running<'_, T, E, O>> {
        let mut slot = lock(&self.slot);
        if by == TakenBy::Action {
            slot.scheduled = false;
        }
        let drain = slot.drain.take()?;
        slot.running = Some(thread::current().id());
        Some(Running {
            shared: self,
            drain: Some(drain),
        })
    }

    /// Sets the flag `idle` after the drain was put back. `read` is the total number of values that the drain
    /// has read. Returns `true` if there is new work, which the caller must then do.
    fn set_idle(&self, read: u64, sender: SchedulingThread) -> bool {
        // Release: a thread that clears the flag sees the drain in its slot.
        self.idle.swap(true, Ordering::Release);
        // If the sender is a caller of this action, it sends nothing before the action returns, so no fence
        // is needed.
        if sender != SchedulingThread::CallerOnStack {
            self.fences.heavy();
        }
        self.has_work(read) && self.clear_idle()
    }

    fn has_work(&self, read: u64) -> bool {
        // Acquire: the drain then sees the stored completion or error.
        self.ended.load(Ordering::Acquire)
            || self.is_closed()
            || match &self.fill {
                Fill::Unbounded(written) | Fill::Bounded(written, _) => written.count() != read,
                Fill::DropOldest(queue) => queue.len() > 0,
            }
    }
}

impl<T, E, O> Shared<T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    /// Schedules an action that empties the queue. The caller has cleared the flag `idle`.
    pub(super) fn schedule<W: Worker>(self: &Arc<Self>, worker: &W) {
        let mut slot = lock(&self.slot);
        slot.sender = Some(thread::current().id());
        slot.scheduling = true;
        drop(slot);
        self.schedule_action(worker);
        lock(&self.slot).scheduling = false;
    }

    fn schedule_action<W: Worker>(self: &Arc<Self>, worker: &W) {
        lock(&self.slot).scheduled = true;
        let action = ScheduledAction(Some(Arc::clone(self)));
        let run = |mut action: ScheduledAction<T, E, O>, worker: &W| {
            if let Some(shared) = action.0.take() {
                shared.run(worker);
            }
        };
        worker.schedule(action, run).detach();
    }

    /// Empties the queue, as a scheduled action. Does nothing if delivery has ended, or if a sender is
    /// emptying the queue itself.
    fn run<W: Worker>(self: &Arc<Self>, worker: &W) {
        let sender = self.sender();
        let may_linger = sender == SchedulingThread::OtherThread;
        let mut by = TakenBy::Action;
        while let Some(mut running) = self.take_drain(by) {
            let stop = self.deliver(running.drain(), may_linger);
            let Some(put_back) = running.stop(&stop) else {
                return;
            };
            if matches!(stop, Stop::Enough) {
                return self.schedule_action(worker);
            }
            if !self.set_idle(put_back.read, sender) {
                return;
            }
            by = TakenBy::Other;
        }
    }

    /// Empties the queue on the sender's thread. Returns `false` if another thread has taken the drain, or if
    /// delivery has ended.
    pub(super) fn drain_in_place(&self) -> bool {
        let Some(mut running) = self.take_drain(TakenBy::Other) else {
            return false;
        };
        let stop = self.deliver(running.drain(), false);
        // If an action is still scheduled, that action will take the drain. Otherwise set the flag `idle`,
        // which the caller checks after it has queued its value.
        if let Some(put_back) = running.stop(&stop)
            && !put_back.scheduled
        {
            self.idle.swap(true, Ordering::Release);
        }
        true
    }

    /// Delivers the queued values.
    fn deliver(&self, drain: &mut Drain<T, O>, may_linger: bool) -> Stop {
        let mut left = VALUES_BEFORE_YIELD;
        let mut recent = 0;
        while left > 0 {
            let burst = drain.outlet.available().min(left);
            if burst == 0 {
                // Acquire: sees the values that were published before the completion or error was stored.
                if !self.ended.load(Ordering::Acquire) {
                    return Stop::Empty;
                }
                if drain.outlet.available() == 0 {
                    self.deliver_end(&mut drain.observer);
                    return Stop::Ended;
                }
                continue;
            }
            if !self.deliver_burst(drain, burst) {
                return Stop::Closed;
            }
            left -= burst;
            recent = recent / 2 + burst;
            // If the drain stopped after each value, the sender would have to schedule it each time.
            if may_linger && recent >= LINGER_VALUES_MIN {
                self.linger(drain.read());
            }
        }
        Stop::Enough
    }

    /// Delivers as many values as `burst` says. Returns whether the observer accepts more.
    fn deliver_burst(&self, drain: &mut Drain<T, O>, burst: usize) -> bool {
        let observer = &mut drain.observer;
        match &mut drain.outlet {
            Outlet::Unbounded(receiver) => self.deliver_values(observer, burst, || receiver.pop()),
            Outlet::Bounded(receiver, space) => self.deliver_values(observer, burst, || {
                let value = receiver.pop();
                space.set_taken(receiver.read());
                value
            }),
            Outlet::DropOldest(queue) => self.deliver_values(observer, burst, || queue.pop()),
        }
    }

    #[inline]
    fn deliver_values(
        &self,
        observer: &mut O,
        burst: usize,
        mut pop: impl FnMut() -> Option<T>,
    ) -> bool {
        for _ in 0..burst {
            if self.is_closed() {
                return false;
            }
            // A queue that drops its oldest values may have fewer values now than when they were counted.
            let Some(value) = pop() else {
                return true;
            };
            observer.next_owned(value);
            if observer.is_closed() {
                return false;
            }
        }
        true
    }

    fn deliver_end(&self, observer: &mut O) {
        self.closed.store(true, Ordering::Relaxed);
        let end = lock(&self.end).take();
        match end {
            Some(End::Error(error)) => observer.error(&error),
            Some(End::Complete) => observer.complete(),
            None => {}
        }
    }

    /// Waits briefly for more values, because stopping and being scheduled again costs both sides more time.
    fn linger(&self, read: u64) {
        for _ in 0..LINGER_LOOKS {
            for _ in 0..LINGER_SPINS {
                std::hint::spin_loop();
            }
            if self.has_work(read) {
                return;
            }
        }
    }

    fn sender(&self) -> SchedulingThread {
        let slot = lock(&self.slot);
        match (slot.sender == Some(thread::current().id()), slot.scheduling) {
            (true, true) => SchedulingThread::CallerOnStack,
            (true, false) => SchedulingThread::SameThread,
            (false, _) => SchedulingThread::OtherThread,
        }
    }
}

impl<T, O> Drain<T, O> {
    fn read(&self) -> u64 {
        match &self.outlet {
            Outlet::Unbounded(receiver) | Outlet::Bounded(receiver, _) => receiver.read(),
            Outlet::DropOldest(_) => 0,
        }
    }
}

impl<T> Outlet<T> {
    /// Returns the number of values that can be received now.
    fn available(&mut self) -> usize {
        match self {
            Self::Unbounded(receiver) | Self::Bounded(receiver, _) => receiver.available(),
            Self::DropOldest(queue) => queue.len(),
        }
    }
}

/// A guard of a taken drain. If the guard is dropped and the drain was not put back, for example after a
/// panic, delivery ends.
struct Running<'a, T, E, O> {
    shared: &'a Shared<T, E, O>,
    drain: Option<Drain<T, O>>,
}

/// The state of the queue when a thread put the drain back: the number of values received so far, and whether
/// an action is scheduled.
struct PutBack {
    read: u64,
    scheduled: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TakenBy {
    /// The action that was scheduled to empty the queue.
    Action,
    Other,
}

impl<T, E, O> Running<'_, T, E, O> {
    fn drain(&mut self) -> &mut Drain<T, O> {
        self.drain
            .as_mut()
            .expect("the drain is taken until `stop`")
    }

    /// Puts the drain back into its slot, if more values may follow. Otherwise the guard's drop ends
    /// delivery.
    fn stop(mut self, stop: &Stop) -> Option<PutBack> {
        match stop {
            Stop::Closed | Stop::Ended => return None,
            Stop::Empty | Stop::Enough => {}
        }
        let mut slot = lock(&self.shared.slot);
        // A thread that closes the drain first sets `closed`, and then checks the slot.
        if self.shared.is_closed() {
            return None;
        }
        let drain = self.drain.take()?;
        let put_back = PutBack {
            read: drain.read(),
            scheduled: slot.scheduled,
        };
        slot.drain = Some(drain);
        slot.running = None;
        drop(slot);
        self.shared.stopped.notify_all();
        Some(put_back)
    }
}

impl<T, E, O> Drop for Running<'_, T, E, O> {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            self.shared.closed.store(true, Ordering::Relaxed);
            drop(drain);
            lock(&self.shared.slot).running = None;
            self.shared.stopped.notify_all();
            self.shared.close();
        }
    }
}

impl<T, E, O> Registry for Shared<T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Send + 'static,
{
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn remove_and_wait(&self, _key: u64) {
        self.close();
        let current = thread::current().id();
        let mut slot = lock(&self.slot);
        while slot.running.is_some_and(|thread| thread != current) {
            slot = wait(&self.stopped, slot);
        }
    }

    fn contains(&self, _key: u64) -> bool {
        !self.is_closed()
    }
}
