//! What the threads of a pool work off: lanes that have something due.
//!
//! Two kinds of lock, always taken in this order: a lane's, then the queue's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::task::{Place, Task, Timetable};
use super::tasks::{Key, Tasks};
use super::thread_pool::PoolWorker;
use crate::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock, wait, wait_timeout,
};
use crate::{Clock, Precise, Time};

/// The actions of one worker. At most one thread runs it.
pub(super) struct Lane {
    queue: Arc<Queue>,
    state: Mutex<LaneState>,
}

struct LaneState {
    tasks: Tasks<PoolWorker>,
    turn: Turn,
    /// Under which key the queue has noted when to look at this lane, while it is idle.
    alarm: Option<Key>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Nothing is due.
    Idle,
    /// In the queue.
    Ready,
    /// With a thread.
    Running,
}

/// The queue of a pool: lanes that are ready, and when to look at those that are not.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Threads wait on it for a token.
    work: Condvar,
    /// The one thread that waits for the first alarm waits on it.
    alarm: Condvar,
    /// Handles of the pool and of its workers. Who takes it to zero then takes the lock, under which
    /// threads look at it before they wait: relaxed suffices for the count itself.
    handles: AtomicUsize,
    /// A copy of the state's, for a look without the lock that need not be up to date: relaxed.
    shut_down: AtomicBool,
}

struct QueueState {
    ready: VecDeque<Arc<Lane>>,
    alarms: BTreeMap<Key, Arc<Lane>>,
    alarms_set: u64,
    /// Threads that wait for work and have not been given a token.
    waiting: usize,
    /// Wake-ups that were given and not yet taken, so that each wakes a thread of its own.
    tokens: usize,
    /// Whether a thread waits for the first alarm.
    watched: bool,
    shut_down: bool,
}

/// Whom to wake when the locks are released.
#[must_use]
enum Wake {
    Nobody,
    Waiting,
    Watch,
}

/// Who hands something to the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// A thread of the pool that comes to the queue next, so that nobody need be woken.
    Pool,
    Other,
}

/// When the queue is to look at a lane.
enum Look {
    Now,
    At(Time),
    Never,
}

impl Lane {
    pub(super) fn new(queue: Arc<Queue>) -> Arc<Self> {
        Arc::new(Self {
            queue,
            state: Mutex::new(LaneState {
                tasks: Tasks::new(),
                turn: Turn::Idle,
                alarm: None,
            }),
        })
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(super) fn queue_ptr(&self) -> *const Queue {
        Arc::as_ptr(&self.queue)
    }

    /// Queues a task; false when the pool was shut down.
    pub(super) fn push(self: &Arc<Self>, due: Time, task: Arc<dyn Task<PoolWorker>>) -> bool {
        let now = Precise.now();
        let mut state = lock(&self.state);
        if let Err(cancelled) = state.tasks.insert(due.max(now), task) {
            drop(state);
            drop(cancelled);
            return true;
        }
        // A thread that has the lane, or will, looks at all its tasks.
        let wake = match state.turn {
            Turn::Idle => self.arrange(&mut state, now, Caller::Other),
            Turn::Ready | Turn::Running => Wake::Nobody,
        };
        let dropped = self.dropped(&mut state);
        drop(state);
        self.queue.wake(wake);
        dropped.is_none()
    }

    /// The first task when it is due.
    pub(super) fn pop_due(&self) -> Option<Arc<dyn Task<PoolWorker>>> {
        if self.queue.shut_down.load(Ordering::Relaxed) {
            return None;
        }
        let now = Precise.now();
        let (_, task) = lock(&self.state).tasks.pop_due(now)?;
        Some(task)
    }

    /// A thread has done enough for this lane.
    pub(super) fn end_turn(self: &Arc<Self>) {
        let now = Precise.now();
        let mut state = lock(&self.state);
        let wake = self.arrange(&mut state, now, Caller::Pool);
        let dropped = self.dropped(&mut state);
        drop(state);
        self.queue.wake(wake);
        drop(dropped);
    }

    /// Has the queue look at the lane when its first task is due.
    fn arrange(self: &Arc<Self>, state: &mut LaneState, now: Time, caller: Caller) -> Wake {
        let look = match state.tasks.next_due() {
            Some(due) if due <= now => Look::Now,
            Some(due) => Look::At(due),
            None => Look::Never,
        };
        state.turn = match look {
            Look::Now => Turn::Ready,
            Look::At(_) | Look::Never => Turn::Idle,
        };
        if let (Look::At(due), Some((alarm, _))) = (&look, state.alarm)
            && *due == alarm
        {
            return Wake::Nobody;
        }
        let wake;
        (state.alarm, wake) = self.queue.place(self, state.alarm, &look, caller);
        wake
    }

    /// What a lane of a pool that was shut down still holds; the caller drops it after the lock.
    fn dropped(&self, state: &mut LaneState) -> Option<BTreeMap<Key, Arc<dyn Task<PoolWorker>>>> {
        let shut_down = self.queue.shut_down.load(Ordering::Relaxed);
        shut_down.then(|| state.tasks.take_all())
    }

    /// A thread takes the lane, unless it is with one already.
    fn begin_turn(&self, from: Turn) -> bool {
        let mut state = lock(&self.state);
        let free = state.turn == from;
        if free {
            state.turn = Turn::Running;
        }
        free
    }

    /// The alarm has gone off, whether or not the lane is taken for it.
    fn alarm_over(&self, key: Key) {
        let mut state = lock(&self.state);
        if state.alarm == Some(key) {
            state.alarm = None;
        }
    }
}

impl Timetable for Lane {
    fn forget(&self, place: &Place) {
        let mut state = lock(&self.state);
        let removed = state.tasks.remove(place);
        // An alarm for a lane with other tasks may go off for nothing; one for a lane with none would
        // keep the lane and the pool.
        let alarm = if state.tasks.is_empty() {
            state.alarm.take()
        } else {
            None
        };
        let lane = alarm.and_then(|key| self.queue.remove_alarm(key));
        drop(state);
        drop(removed);
        drop(lane);
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                ready: VecDeque::new(),
                alarms: BTreeMap::new(),
                alarms_set: 0,
                waiting: 0,
                tokens: 0,
                watched: false,
                shut_down: false,
            }),
            work: Condvar::new(),
            alarm: Condvar::new(),
            handles: AtomicUsize::new(1),
            shut_down: AtomicBool::new(false),
        }
    }

    pub(super) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn drop_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Threads may be about to wait for what now never comes.
            drop(lock(&self.state));
            self.wake_all();
        }
    }

    pub(super) fn shut_down(&self) {
        let mut state = lock(&self.state);
        state.shut_down = true;
        self.shut_down.store(true, Ordering::Relaxed);
        let ready = std::mem::take(&mut state.ready);
        let alarms = std::mem::take(&mut state.alarms);
        drop(state);
        self.wake_all();
        for lane in ready.into_iter().chain(alarms.into_values()) {
            let dropped = lock(&lane.state).tasks.take_all();
            drop(dropped);
        }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        lock(&self.state).shut_down
    }

    /// The next lane for a thread, which has it to itself until it ends the turn. None when the
    /// thread shall end.
    pub(super) fn next(&self) -> Option<Arc<Lane>> {
        let mut state = lock(&self.state);
        loop {
            if state.shut_down {
                return None;
            }
            let first = state.alarms.first_key_value().map(|(key, _)| *key);
            let until = first.map(|(due, _)| Precise.until(due));
            if let (Some(key), Some(Duration::ZERO)) = (first, until) {
                let lane = state.alarms.remove(&key);
                state = self.leave(state);
                drop(state);
                if let Some(lane) = lane {
                    lane.alarm_over(key);
                    if lane.begin_turn(Turn::Idle) {
                        return Some(lane);
                    }
                }
                state = lock(&self.state);
                continue;
            }
            if let Some(lane) = state.ready.pop_front() {
                drop(self.leave(state));
                if lane.begin_turn(Turn::Ready) {
                    return Some(lane);
                }
                state = lock(&self.state);
                continue;
            }
            if self.is_over(&state) {
                drop(state);
                self.wake_all();
                return None;
            }
            state = match until {
                Some(until) if !state.watched => {
                    state.watched = true;
                    state = wait_timeout(&self.alarm, state, until);
                    state.watched = false;
                    state
                }
                _ => self.wait_for_token(state),
            };
        }
    }

    fn wait_for_token<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        state.waiting += 1;
        loop {
            state = wait(&self.work, state);
            if state.tokens > 0 {
                state.tokens -= 1;
                return state;
            }
            if state.shut_down || self.is_over(&state) {
                state.waiting = state.waiting.saturating_sub(1);
                return state;
            }
        }
    }

    /// A thread goes to work: another watches for the alarms that remain.
    fn leave<'a>(&self, mut state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        if !state.watched && !state.alarms.is_empty() {
            let wake = state.call_waiting();
            self.wake(wake);
        }
        state
    }

    /// No work is left and none can come, except from lanes that other threads run; those come here
    /// again themselves.
    fn is_over(&self, state: &QueueState) -> bool {
        self.handles.load(Ordering::Relaxed) == 0
            && state.ready.is_empty()
            && state.alarms.is_empty()
    }

    /// Replaces what was noted about a lane. Gives back the key of its new alarm.
    fn place(
        &self,
        lane: &Arc<Lane>,
        alarm: Option<Key>,
        look: &Look,
        caller: Caller,
    ) -> (Option<Key>, Wake) {
        let mut state = lock(&self.state);
        // The caller holds the lane: this is never the last handle of it.
        let replaced = alarm.and_then(|key| state.alarms.remove(&key));
        let placed = match look {
            _ if state.shut_down => (None, Wake::Nobody),
            Look::Never => (None, Wake::Nobody),
            Look::Now => {
                state.ready.push_back(Arc::clone(lane));
                (None, state.wake_for_work(caller))
            }
            Look::At(due) => {
                let (key, first) = state.set_alarm(*due, lane);
                (Some(key), state.wake_for_alarm(first, caller))
            }
        };
        drop(state);
        drop(replaced);
        placed
    }

    fn remove_alarm(&self, key: Key) -> Option<Arc<Lane>> {
        let mut state = lock(&self.state);
        let lane = state.alarms.remove(&key);
        let over = self.is_over(&state);
        drop(state);
        if over {
            self.wake_all();
        }
        lane
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::Waiting => self.work.notify_one(),
            Wake::Watch => self.alarm.notify_one(),
        }
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.alarm.notify_all();
    }
}

impl QueueState {
    /// Notes when to look at a lane; whether that is now the first.
    fn set_alarm(&mut self, due: Time, lane: &Arc<Lane>) -> (Key, bool) {
        let key = (due, self.alarms_set);
        self.alarms_set += 1;
        let next = self.alarms.first_key_value();
        let first = next.is_none_or(|(next, _)| key < *next);
        self.alarms.insert(key, Arc::clone(lane));
        (key, first)
    }

    fn wake_for_work(&mut self, caller: Caller) -> Wake {
        match caller {
            Caller::Pool => Wake::Nobody,
            Caller::Other if self.waiting > 0 => self.call_waiting(),
            Caller::Other if self.watched => Wake::Watch,
            Caller::Other => Wake::Nobody,
        }
    }

    fn wake_for_alarm(&mut self, first: bool, caller: Caller) -> Wake {
        match (self.watched, caller) {
            (true, _) if first => Wake::Watch,
            (false, Caller::Other) => self.call_waiting(),
            (true, _) | (false, Caller::Pool) => Wake::Nobody,
        }
    }

    /// Gives a token to a thread that waits, if any does.
    fn call_waiting(&mut self) -> Wake {
        if self.waiting == 0 {
            return Wake::Nobody;
        }
        self.waiting -= 1;
        self.tokens += 1;
        Wake::Waiting
    }
}
