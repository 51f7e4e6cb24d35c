//! loom models of the queue between threads: a sender with three values, and a receiving side on another
//! thread.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::ScheduledObserver;
use crate::sync::{Condvar, Mutex, lock, thread, wait};
use crate::{Guard, Observer, Time, Worker};

type Job = Box<dyn FnOnce(&Lane) + Send>;

/// A worker with one thread, which runs scheduled jobs.
#[derive(Clone)]
struct Lane(Arc<(Mutex<Vec<Job>>, Condvar)>);

impl Lane {
    fn new() -> Self {
        Self(Arc::new((Mutex::new(Vec::new()), Condvar::new())))
    }

    /// Runs jobs until `done` returns true.
    fn run_until(&self, done: impl Fn() -> bool) {
        while !done() {
            let (jobs, came) = &*self.0;
            let mut queue = lock(jobs);
            while queue.is_empty() {
                queue = wait(came, queue);
            }
            let job = queue.remove(0);
            drop(queue);
            job(self);
        }
    }
}

impl Worker for Lane {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn schedule_at<S, A>(&self, _due: Time, state: S, action: A) -> Guard
    where
        S: Send + 'static,
        A: FnOnce(S, &Self) + Send + 'static,
    {
        let (jobs, came) = &*self.0;
        lock(jobs).push(Box::new(move |lane| action(state, lane)));
        came.notify_one();
        Guard::closed()
    }

    fn schedule_periodic<S, A>(&self, _period: Duration, _state: S, _action: A) -> Guard
    where
        S: Send + 'static,
        A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
    {
        Guard::closed()
    }

    fn runs_here(&self) -> bool {
        false
    }
}

#[derive(Clone, Default)]
struct Seen(Arc<std::sync::Mutex<(Vec<u32>, bool)>>);

impl Seen {
    fn get(&self) -> (Vec<u32>, bool) {
        self.0.lock().unwrap().clone()
    }
}

impl Observer<u32> for Seen {
    fn next(&mut self, value: &u32) {
        self.0.lock().unwrap().0.push(*value);
    }

    fn error(&mut self, error: &std::convert::Infallible) {
        match *error {}
    }

    fn complete(&mut self) {
        let mut seen = self.0.lock().unwrap();
        assert!(!seen.1, "the end is delivered once");
        seen.1 = true;
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(3).check(f);
}

/// A lost wake-up would block the receiving thread forever, which loom reports as a deadlock.
#[test]
fn delivers_all_values_and_then_the_end() {
    model(|| {
        let lane = Lane::new();
        let seen = Seen::default();
        let (mut scheduled, guard) = ScheduledObserver::new(seen.clone(), lane.clone());
        let sender = thread::spawn(move || {
            scheduled.next_owned(1);
            scheduled.next_owned(2);
            scheduled.next_owned(3);
            scheduled.complete();
        });
        lane.run_until(|| seen.get().1);
        assert_eq!(seen.get(), (vec![1, 2, 3], true));
        sender.join().unwrap();
        guard.detach();
    });
}

#[test]
fn unsubscribe_stops_delivery_in_any_drain_state() {
    model(|| {
        let lane = Lane::new();
        let seen = Seen::default();
        let (mut scheduled, guard) = ScheduledObserver::new(seen.clone(), lane.clone());
        scheduled.next_owned(1);
        let drain = {
            let (lane, seen) = (lane.clone(), seen.clone());
            thread::spawn(move || {
                let mut once = std::cell::Cell::new(false);
                lane.run_until(|| once.replace(true));
                let _ = (once.get_mut(), seen);
            })
        };
        guard.unsubscribe_and_wait();
        let before = seen.get();
        scheduled.next_owned(2);
        drain.join().unwrap();
        assert!(scheduled.is_closed());
        assert_eq!(
            seen.get(),
            before,
            "nothing is delivered after unsubscribing"
        );
        assert!(matches!(&*before.0, [] | [1]) && !before.1);
    });
}

/// The sender finds the queue full and sleeps. A lost wake-up would block the sender forever.
#[test]
fn send_to_full_queue_waits_for_room() {
    model(|| {
        let lane = Lane::new();
        let seen = Seen::default();
        let (mut scheduled, guard) =
            ScheduledObserver::bounded(seen.clone(), lane.clone(), super::Bound::block(1));
        let sender = thread::spawn(move || {
            scheduled.next_owned(1);
            scheduled.next_owned(2);
            scheduled.complete();
        });
        lane.run_until(|| seen.get().1);
        assert_eq!(seen.get(), (vec![1, 2], true));
        sender.join().unwrap();
        guard.detach();
    });
}
