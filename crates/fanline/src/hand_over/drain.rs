//! Who empties the queue, and when.
//!
//! At any time the drain, which has the observer and the receiving end, is in one of three places: in
//! its seat, with the action that empties the queue, or gone. While the flag `idle` is up it sits, and
//! nobody is to come for it: whoever takes the flag down schedules the action that does. The sender
//! looks at the flag after it has published a value, and the drain looks for values after it has put up
//! the flag; the fences see to it that they do not miss each other.

use std::sync::Arc;

use super::space::Space;
use super::{bounded, chunks};
use crate::fence::Fences;
use crate::guard::Registry;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait};
use crate::{Guard, Observer, Worker};

/// How many values one action passes on before it lets others of its thread go first.
const TURN_VALUES_MAX: usize = 4096;

/// A drain that finds so many values at a time, of late, waits for more a while before it leaves.
const LINGER_VALUES_MIN: usize = 16;
/// How often it looks, and how long it waits before each look: about a microsecond, in which a fast
/// sender writes hundreds of values undisturbed.
const LINGER_LOOKS: usize = 8;
const LINGER_SPINS: usize = 64;

/// What the sender and the drain have in common.
pub(super) struct Shared<T, E, O> {
    /// Nothing more is to be passed on. A hint to stop, which guards no data: relaxed.
    closed: AtomicBool,
    idle: AtomicBool,
    ended: AtomicBool,
    end: Mutex<Option<End<E>>>,
    seat: Mutex<Seat<T, O>>,
    left: Condvar,
    fill: Fill<T>,
    upstream: Mutex<Guard>,
    fences: Fences,
}

/// The observer, and where its values come from.
pub(super) struct Drain<T, O> {
    pub(super) observer: O,
    pub(super) outlet: Outlet<T>,
}

pub(super) enum Outlet<T> {
    Unbounded(chunks::Receiver<T>),
    Bounded(chunks::Receiver<T>, Arc<Space>),
    DropOldest(Arc<bounded::Queue<T>>),
}

/// What can be seen of the queue from outside.
enum Fill<T> {
    Unbounded(Arc<chunks::Written>),
    Bounded(Arc<chunks::Written>, Arc<Space>),
    DropOldest(Arc<bounded::Queue<T>>),
}

pub(super) enum End<E> {
    Error(E),
    Complete,
}

struct Seat<T, O> {
    drain: Option<Drain<T, O>>,
    /// The thread with which the drain is.
    running: Option<ThreadId>,
    /// The thread that scheduled it last.
    sender: Option<ThreadId>,
    /// That thread is still at scheduling.
    scheduling: bool,
    /// An action was scheduled and has not begun.
    called: bool,
}

/// Where the sender is that had the drain scheduled, seen from the drain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    /// It waits for this action to return.
    UpTheStack,
    SameThread,
    Elsewhere,
}

/// Why a drain stops.
enum Stop {
    /// Nothing is queued.
    Empty,
    /// It has done enough for one turn.
    Enough,
    /// Nothing more is wanted.
    Closed,
    /// All values and then the end were passed on.
    Ended,
}

/// An action that was scheduled. Dropped before it ran, when a scheduler is shut down, it closes.
struct Turn<T, E, O>(Option<Arc<Shared<T, E, O>>>);

impl<T, E, O> Drop for Turn<T, E, O> {
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
            seat: Mutex::new(Seat {
                drain: Some(drain),
                running: None,
                sender: None,
                scheduling: false,
                called: false,
            }),
            left: Condvar::new(),
            fill,
            upstream: Mutex::new(Guard::closed()),
            fences: Fences::detect(),
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The sender's look at the flag, after it has published something: whether to
    /// [take it](Shared::take_flag).
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.fences.light();
        // Relaxed: ordered by the fence.
        self.idle.load(Ordering::Relaxed)
    }

    /// Takes down the flag; true for the one who did and now must schedule.
    #[cold]
    pub(super) fn take_flag(&self) -> bool {
        // Acquire: after the drain sat down.
        self.idle.swap(false, Ordering::AcqRel)
    }

    /// Leaves the end for the drain to find behind the values.
    pub(super) fn end(&self, end: End<E>) {
        *lock(&self.end) = Some(end);
        // Release: after the last value was published.
        self.ended.store(true, Ordering::Release);
    }

    /// Keeps the guard of the source, or drops it when nothing more is wanted.
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

    /// Whether the drain is with this thread, further up its stack.
    pub(super) fn drains_here(&self) -> bool {
        lock(&self.seat).running == Some(thread::current().id())
    }

    /// Nothing more is passed on; what waits is dropped, and the observer with it unless it is being
    /// called.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // Who sits down looks at `closed` in the same lock.
        let drain = lock(&self.seat).drain.take();
        match &self.fill {
            Fill::Unbounded(_) => {}
            Fill::Bounded(_, space) => space.wake_all(),
            Fill::DropOldest(queue) => queue.clear(),
        }
        self.release_upstream();
        drop(drain);
    }

    /// Gets the drain out of its seat.
    fn stand_up(&self, by: By) -> Option<Running<'_, T, E, O>> {
        let mut seat = lock(&self.seat);
        if by == By::Action {
            seat.called = false;
        }
        let drain = seat.drain.take()?;
        seat.running = Some(thread::current().id());
        Some(Running {
            shared: self,
            drain: Some(drain),
        })
    }

    /// Puts up the flag that nobody comes for the drain, which has read so much; true when something
    /// has come in the meantime and the caller must.
    fn rest(&self, read: u64, sender: Whereabouts) -> bool {
        // Release: after it sat down.
        self.idle.swap(true, Ordering::Release);
        // A sender up the stack does nothing before it returns there.
        if sender != Whereabouts::UpTheStack {
            self.fences.heavy();
        }
        self.has_work(read) && self.take_flag()
    }

    fn has_work(&self, read: u64) -> bool {
        // Acquire: before the end is read.
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
    /// Has the queue emptied on the worker. The caller has taken down the flag.
    pub(super) fn schedule<W: Worker>(self: &Arc<Self>, worker: &W) {
        let mut seat = lock(&self.seat);
        seat.sender = Some(thread::current().id());
        seat.scheduling = true;
        drop(seat);
        self.call(worker);
        lock(&self.seat).scheduling = false;
    }

    fn call<W: Worker>(self: &Arc<Self>, worker: &W) {
        lock(&self.seat).called = true;
        let turn = Turn(Some(Arc::clone(self)));
        let run = |mut turn: Turn<T, E, O>, worker: &W| {
            if let Some(shared) = turn.0.take() {
                shared.run(worker);
            }
        };
        worker.schedule(turn, run).detach();
    }

    /// The action that empties the queue. It finds no drain when all is over, and when a sender is
    /// emptying the queue in place.
    fn run<W: Worker>(self: &Arc<Self>, worker: &W) {
        let sender = self.sender();
        let may_linger = sender == Whereabouts::Elsewhere;
        let mut by = By::Action;
        while let Some(mut running) = self.stand_up(by) {
            let stop = self.deliver(running.drain(), may_linger);
            let Some(seated) = running.stop(&stop) else {
                return;
            };
            if matches!(stop, Stop::Enough) {
                return self.call(worker);
            }
            if !self.rest(seated.read, sender) {
                return;
            }
            by = By::Other;
        }
    }

    /// Empties the queue on the sender's thread; whether the drain was there to do it.
    pub(super) fn drain_in_place(&self) -> bool {
        let Some(mut running) = self.stand_up(By::Other) else {
            return false;
        };
        let stop = self.deliver(running.drain(), false);
        // An action that was called for the drain still comes for it. Without one, the caller sees
        // the flag after it has queued its value.
        if let Some(seated) = running.stop(&stop)
            && !seated.called
        {
            self.idle.swap(true, Ordering::Release);
        }
        true
    }

    /// Passes on what is queued.
    fn deliver(&self, drain: &mut Drain<T, O>, may_linger: bool) -> Stop {
        let mut left = TURN_VALUES_MAX;
        let mut recent = 0;
        while left > 0 {
            let burst = drain.outlet.available().min(left);
            if burst == 0 {
                // Acquire: before the values that came before the end.
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
            // To go after each value as it comes would hold up whoever writes them.
            if may_linger && recent >= LINGER_VALUES_MIN {
                self.linger(drain.read());
            }
        }
        Stop::Enough
    }

    /// Passes on so many values; whether more are wanted.
    fn deliver_burst(&self, drain: &mut Drain<T, O>, burst: usize) -> bool {
        let observer = &mut drain.observer;
        match &mut drain.outlet {
            Outlet::Unbounded(receiver) => self.pass_on(observer, burst, || receiver.pop()),
            Outlet::Bounded(receiver, space) => self.pass_on(observer, burst, || {
                let value = receiver.pop();
                space.took(receiver.read());
                value
            }),
            Outlet::DropOldest(queue) => self.pass_on(observer, burst, || queue.pop()),
        }
    }

    #[inline]
    fn pass_on(&self, observer: &mut O, burst: usize, mut pop: impl FnMut() -> Option<T>) -> bool {
        for _ in 0..burst {
            if self.is_closed() {
                return false;
            }
            // The sender may have taken out values since they were counted.
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

    /// Waits a moment for more, since to leave and be called back costs both sides more.
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

    fn sender(&self) -> Whereabouts {
        let seat = lock(&self.seat);
        match (seat.sender == Some(thread::current().id()), seat.scheduling) {
            (true, true) => Whereabouts::UpTheStack,
            (true, false) => Whereabouts::SameThread,
            (false, _) => Whereabouts::Elsewhere,
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
    /// How many values can be taken out now.
    fn available(&mut self) -> usize {
        match self {
            Self::Unbounded(receiver) | Self::Bounded(receiver, _) => receiver.available(),
            Self::DropOldest(queue) => queue.len(),
        }
    }
}

/// The drain is with this thread. Unless it sits down again, which a panic prevents, all is over.
struct Running<'a, T, E, O> {
    shared: &'a Shared<T, E, O>,
    drain: Option<Drain<T, O>>,
}

/// How the drain sat down.
struct Seated {
    read: u64,
    called: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The action that was scheduled for it.
    Action,
    Other,
}

impl<T, E, O> Running<'_, T, E, O> {
    fn drain(&mut self) -> &mut Drain<T, O> {
        self.drain.as_mut().expect("it is here until it stops")
    }

    /// The drain sits down, if more may come.
    fn stop(mut self, stop: &Stop) -> Option<Seated> {
        match stop {
            Stop::Closed | Stop::Ended => return None,
            Stop::Empty | Stop::Enough => {}
        }
        let mut seat = lock(&self.shared.seat);
        // Who closes says so first, and then looks into the seat.
        if self.shared.is_closed() {
            return None;
        }
        let drain = self.drain.take()?;
        let seated = Seated {
            read: drain.read(),
            called: seat.called,
        };
        seat.drain = Some(drain);
        seat.running = None;
        drop(seat);
        self.shared.left.notify_all();
        Some(seated)
    }
}

impl<T, E, O> Drop for Running<'_, T, E, O> {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            self.shared.closed.store(true, Ordering::Relaxed);
            drop(drain);
            lock(&self.shared.seat).running = None;
            self.shared.left.notify_all();
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
        let mut seat = lock(&self.seat);
        while seat.running.is_some_and(|thread| thread != current) {
            seat = wait(&self.left, seat);
        }
    }

    fn contains(&self, _key: u64) -> bool {
        !self.is_closed()
    }
}
