//! Observers that stay on one thread, for chains whose observers must be `Send`.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::thread::ThreadId;

use crate::Observer;

thread_local! {
    /// The pinned observers of this thread.
    static PINNED: RefCell<Table> = const { RefCell::new(Table::new()) };
}

struct Table {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

enum Slot {
    Free,
    /// The observer is being called, further up on the stack.
    Called,
    Present(Box<dyn Any>),
}

impl Table {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// A handle of an observer that stays on the thread that made it. The handle may move to another thread, but
/// using it there panics.
pub(crate) struct Pinned<O> {
    thread: ThreadId,
    slot: usize,
    observer: PhantomData<fn(O)>,
}

impl<O: 'static> Pinned<O> {
    pub(crate) fn new(observer: O) -> Self {
        let slot = PINNED.with_borrow_mut(|table| {
            let slot = table.free.pop().unwrap_or_else(|| {
                table.slots.push(Slot::Free);
                table.slots.len() - 1
            });
            table.slots[slot] = Slot::Present(Box::new(observer));
            slot
        });
        Self {
            thread: std::thread::current().id(),
            slot,
            observer: PhantomData,
        }
    }

    /// Takes the observer out of its slot for the call, because it may itself add and drop pinned observers.
    fn with<R>(&self, call: impl FnOnce(&mut O) -> R) -> R {
        let here = std::thread::current();
        assert!(
            here.id() == self.thread,
            "this observer was made by `subscribe_local` on thread {:?} and is called on thread {:?}: \
             bring the values there with `observe_on`",
            self.thread,
            here.id(),
        );
        let taken = PINNED
            .with_borrow_mut(|table| std::mem::replace(&mut table.slots[self.slot], Slot::Called));
        let Slot::Present(mut observer) = taken else {
            unreachable!("calls to one observer never overlap");
        };
        let mut put_back = PutBack {
            slot: self.slot,
            observer: None,
        };
        let result = {
            let observer = observer
                .downcast_mut::<O>()
                .expect("the slot was filled with this type");
            call(observer)
        };
        put_back.observer = Some(observer);
        result
    }
}

/// Fills the slot again after a call. An observer that panicked is not put back.
struct PutBack {
    slot: usize,
    observer: Option<Box<dyn Any>>,
}

impl Drop for PutBack {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            PINNED.with_borrow_mut(|table| table.slots[self.slot] = Slot::Present(observer));
        }
    }
}

impl<T, E, O: Observer<T, E> + 'static> Observer<T, E> for Pinned<O> {
    fn next(&mut self, value: &T) {
        self.with(|observer| observer.next(value));
    }

    fn next_owned(&mut self, value: T) {
        self.with(|observer| observer.next_owned(value));
    }

    fn next_slice(&mut self, values: &[T]) {
        self.with(|observer| observer.next_slice(values));
    }

    fn error(&mut self, error: &E) {
        self.with(|observer| observer.error(error));
    }

    fn complete(&mut self) {
        self.with(O::complete);
    }

    fn is_closed(&self) -> bool {
        // The chain calls this after each value, on the thread that emits. If that is not the observer's
        // thread, the result is `false`.
        std::thread::current().id() == self.thread
            && PINNED.with_borrow(|table| match &table.slots[self.slot] {
                Slot::Present(observer) => observer.downcast_ref::<O>().is_some_and(O::is_closed),
                Slot::Free | Slot::Called => false,
            })
    }
}

impl<O> Drop for Pinned<O> {
    fn drop(&mut self) {
        if std::thread::current().id() != self.thread {
            // The observer cannot be dropped on this thread. The observer's own thread drops it when that
            // thread ends.
            return;
        }
        // If this thread is ending, it has already dropped the table, and the observer with it.
        let removed = PINNED.try_with(|table| {
            let mut table = table.borrow_mut();
            let removed = std::mem::replace(&mut table.slots[self.slot], Slot::Free);
            table.free.push(self.slot);
            removed
        });
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use crate::{LocalSubject, ObservableExt, Subject};

    #[test]
    fn subscribe_local_accepts_observer_that_is_not_send() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let subject = LocalSubject::new();
        let sink = seen.clone();
        let guard = subject
            .clone()
            .map(|value: &u32| value * 2)
            .subscribe_local(move |value| sink.borrow_mut().push(*value));
        subject.next(1);
        subject.next(2);
        assert_eq!(Rc::strong_count(&seen), 2);
        drop(guard);
        assert_eq!(Rc::strong_count(&seen), 1, "dropped with its guard");
        assert_eq!(*seen.borrow(), [2, 4]);
    }

    #[test]
    fn call_on_another_thread_panics_and_removes_observer() {
        let subject = Subject::<u32>::new();
        subject.clone().subscribe_local(|_| {}).detach();
        let elsewhere = subject.clone();
        let outcome = std::thread::spawn(move || elsewhere.next(1)).join();
        let message = *outcome.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("observe_on"), "{message}");
        assert!(!subject.has_observers());
    }
}
