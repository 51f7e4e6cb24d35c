//! The queue of a thread pool: lanes with due actions. A *lane* is the serial queue of one worker.
//!
//! Lock order: a lane's lock is taken before the pool queue's lock.

use alloc::sync::Arc;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use super::task::{Task, TaskKey, TaskQueue};
use super::tasks::{Key, Tasks};
use super::thread_pool::PoolWorker;
use crate::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock, wait, wait_timeout,
};
use crate::{Clock, Precise, Time};

/// The actions of one worker. At most one thread runs a lane at a time.
pub(super) struct Lane {
    queue: Arc<Queue>,
    state: Mutex<LaneState>,
}

struct LaneState {
    tasks: Tasks<PoolWorker>,
    status: LaneStatus,
    /// The key of the alarm that the pool's queue has for this lane, if any.
    alarm: Option<Key>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LaneStatus {
    /// No action is due.
    Idle,
    /// The lane is in the queue of ready lanes.
    Ready,
    /// A thread runs the lane.
    Running,
}

/// The queue of a pool: ready lanes, and alarms for idle lanes with delayed actions.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// The condition variable on which threads wait for a token, that is, a wake-up for one thread.
    work: Condvar,
    /// The condition variable on which one thread waits for the time of the first alarm.
    alarm: Condvar,
    /// Number of handles of the pool and its workers. Waiting threads check the count under the lock, and a
    /// thread that decrements it to zero then takes the lock. So Relaxed suffices for the count.
    handles: AtomicUsize,
    /// A copy of the field in `QueueState`, for checks without the lock. The copy may be stale, so Relaxed
    /// suffices.
    shut_down: AtomicBool,
}

struct QueueState {
    ready: VecDeque<Arc<Lane>>,
    alarms: BTreeMap<Key, Arc<Lane>>,
    alarms_set: u64,
    /// Number of threads that wait for work and have no token yet.
    waiting: usize,
    /// Number of wake-ups that no thread has consumed yet. Each one is for a different thread.
    tokens: usize,
    /// Whether a thread waits for the first alarm.
    has_alarm_waiter: bool,
    shut_down: bool,
}

/// The thread to wake after the locks are released.
#[must_use]
enum Wake {
    NoThread,
    TokenWaiter,
    AlarmWaiter,
}

/// The thread that changes the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// A thread of the pool. It checks the queue next, so it is not necessary to wake another thread.
    Pool,
    Other,
}

/// The time at which the pool must run a lane.
enum NextRun {
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
                status: LaneStatus::Idle,
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

    /// Queues a task. Returns false if the pool was shut down.
    pub(super) fn push(self: &Arc<Self>, due: Time, task: Arc<dyn Task<PoolWorker>>) -> bool {
        let now = Precise.now();
        let mut state = lock(&self.state);
        if let Err(cancelled) = state.tasks.insert(due.max(now), task) {
            drop(state);
            drop(cancelled);
            return true;
        }
        // If a thread runs the lane, or will run it, that thread checks all tasks of the lane.
        let wake = match state.status {
            LaneStatus::Idle => self.reschedule(&mut state, now, Caller::Other),
            LaneStatus::Ready | LaneStatus::Running => Wake::NoThread,
        };
        let dropped = self.take_if_shut_down(&mut state);
        drop(state);
        self.queue.wake(wake);
        dropped.is_none()
    }

    /// Removes and returns the first task, if it is due.
    pub(super) fn pop_due(&self) -> Option<Arc<dyn Task<PoolWorker>>> {
        if self.queue.shut_down.load(Ordering::Relaxed) {
            return None;
        }
        let now = Precise.now();
        let (_, task) = lock(&self.state).tasks.pop_due(now)?;
        Some(task)
    }

    /// Releases the lane after a thread has run enough of its actions.
    pub(super) fn stop_running(self: &Arc<Self>) {
        let now = Precise.now();
        let mut state = lock(&self.state);
        let wake = self.reschedule(&mut state, now, Caller::Pool);
        let dropped = self.take_if_shut_down(&mut state);
        drop(state);
        self.queue.wake(wake);
        drop(dropped);
    }

    /// Adds the lane to the ready queue or sets an alarm, depending on the due time of its first task.
    fn reschedule(self: &Arc<Self>, state: &mut LaneState, now: Time, caller: Caller) -> Wake {
        let next_run = match state.tasks.next_due() {
            Some(due) if due <= now => NextRun::Now,
            Some(due) => NextRun::At(due),
            None => NextRun::Never,
        };
        state.status = match next_run {
            NextRun::Now => LaneStatus::Ready,
            NextRun::At(_) | NextRun::Never => LaneStatus::Idle,
        };
        if let (NextRun::At(due), Some((alarm, _))) = (&next_run, state.alarm)
            && *due == alarm
        {
            return Wake::NoThread;
        }
        let wake;
        (state.alarm, wake) = self
            .queue
            .update_entry(self, state.alarm, &next_run, caller);
        wake
    }

    /// Returns the remaining tasks of a lane if the pool was shut down. The caller drops them after it has
    /// released the lock.
    fn take_if_shut_down(
        &self,
        state: &mut LaneState,
    ) -> Option<BTreeMap<Key, Arc<dyn Task<PoolWorker>>>> {
        let shut_down = self.queue.shut_down.load(Ordering::Relaxed);
        shut_down.then(|| state.tasks.take_all())
    }

    /// Gives the lane to the calling thread, if the lane's status is `from`. Returns whether the calling
    /// thread got the lane.
    fn start_running(&self, from: LaneStatus) -> bool {
        let mut state = lock(&self.state);
        let free = state.status == from;
        if free {
            state.status = LaneStatus::Running;
        }
        free
    }

    /// Clears the alarm after its time was reached, even if the calling thread does not run the lane.
    fn clear_alarm(&self, key: Key) {
        let mut state = lock(&self.state);
        if state.alarm == Some(key) {
            state.alarm = None;
        }
    }
}

impl TaskQueue for Lane {
    fn remove_cancelled(&self, key: &TaskKey) {
        let mut state = lock(&self.state);
        let removed = state.tasks.remove(key);
        // If the lane has other tasks, leave the alarm in place, although a thread may wake up for nothing.
        // If the lane is empty, remove the alarm, because it would keep the lane and the pool alive.
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
                has_alarm_waiter: false,
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
            // Threads may be about to wait for work that can no longer arrive.
            drop(lock(&self.state));
            self.wake_all();
        }
    }

    pub(super) fn shut_down(&self) {
        let mut state = lock(&self.state);
        state.shut_down = true;
        self.shut_down.store(true, Ordering::Relaxed);
        let ready = core::mem::take(&mut state.ready);
        let alarms = core::mem::take(&mut state.alarms);
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

    /// Returns the next lane to run. The calling thread owns the lane until it calls `stop_running`. Returns
    /// `None` if the thread must end.
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
                state = self.hand_over_alarms(state);
                drop(state);
                if let Some(lane) = lane {
                    lane.clear_alarm(key);
                    if lane.start_running(LaneStatus::Idle) {
                        return Some(lane);
                    }
                }
                state = lock(&self.state);
                continue;
            }
            if let Some(lane) = state.ready.pop_front() {
                drop(self.hand_over_alarms(state));
                if lane.start_running(LaneStatus::Ready) {
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
                Some(until) if !state.has_alarm_waiter => {
                    state.has_alarm_waiter = true;
                    state = wait_timeout(&self.alarm, state, until);
                    state.has_alarm_waiter = false;
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

    /// Makes another thread wait for the remaining alarms. Called by a thread before it runs a lane.
    fn hand_over_alarms<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        if !state.has_alarm_waiter && !state.alarms.is_empty() {
            let wake = state.assign_token();
            self.wake(wake);
        }
        state
    }

    /// Returns whether no work is left, and no work can arrive. Lanes that other threads are running may
    /// still produce work, but those threads check the queue again.
    fn is_over(&self, state: &QueueState) -> bool {
        self.handles.load(Ordering::Relaxed) == 0
            && state.ready.is_empty()
            && state.alarms.is_empty()
    }

    /// Replaces the lane's entry in the queue. Returns the key of the lane's new alarm, and the thread to
    /// wake.
    fn update_entry(
        &self,
        lane: &Arc<Lane>,
        alarm: Option<Key>,
        next_run: &NextRun,
        caller: Caller,
    ) -> (Option<Key>, Wake) {
        let mut state = lock(&self.state);
        // The old entry is dropped when the lock is released. The caller has a reference to the lane, so the
        // lane itself is not dropped here.
        let replaced = alarm.and_then(|key| state.alarms.remove(&key));
        let updated = match next_run {
            _ if state.shut_down => (None, Wake::NoThread),
            NextRun::Never => (None, Wake::NoThread),
            NextRun::Now => {
                state.ready.push_back(Arc::clone(lane));
                (None, state.wake_for_work(caller))
            }
            NextRun::At(due) => {
                let (key, first) = state.set_alarm(*due, lane);
                (Some(key), state.wake_for_alarm(first, caller))
            }
        };
        drop(state);
        drop(replaced);
        updated
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
            Wake::NoThread => {}
            Wake::TokenWaiter => self.work.notify_one(),
            Wake::AlarmWaiter => self.alarm.notify_one(),
        }
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.alarm.notify_all();
    }
}

impl QueueState {
    /// Sets an alarm for a lane. Returns its key, and whether the alarm is now the first one.
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
            Caller::Pool => Wake::NoThread,
            Caller::Other if self.waiting > 0 => self.assign_token(),
            Caller::Other if self.has_alarm_waiter => Wake::AlarmWaiter,
            Caller::Other => Wake::NoThread,
        }
    }

    fn wake_for_alarm(&mut self, first: bool, caller: Caller) -> Wake {
        match (self.has_alarm_waiter, caller) {
            (true, _) if first => Wake::AlarmWaiter,
            (false, Caller::Other) => self.assign_token(),
            (true, _) | (false, Caller::Pool) => Wake::NoThread,
        }
    }

    /// Gives a token to a waiting thread, if there is one.
    fn assign_token(&mut self) -> Wake {
        if self.waiting == 0 {
            return Wake::NoThread;
        }
        self.waiting -= 1;
        self.tokens += 1;
        Wake::TokenWaiter
    }
}
