//! Values and observers that stay on one thread, for chains whose closures and observers must be `Send`.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::thread::ThreadId;

use crate::Observer;

thread_local! {
    /// The bound values of this thread.
    static BOUND: RefCell<Table> = const { RefCell::new(Table::new()) };
}

struct Table {
    slots: Vec<Option<Rc<dyn Any>>>,
    free: Vec<usize>,
}

impl Table {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// A handle of a value that stays on the thread that made it. The handle is [`Send`] and [`Sync`], whatever the
/// value is. So the closure of any operator can use an `Rc`, if the operator calls it on that thread: in a chain
/// on a [`LocalSubject`](crate::LocalSubject), or behind [`observe_on`](crate::ObservableExt::observe_on) with
/// an event loop of that thread.
///
/// ```
/// use fanline::{LocalSubject, ThreadBound, prelude::*};
/// use std::{cell::RefCell, collections::HashMap, rc::Rc};
///
/// let names = Rc::new(RefCell::new(HashMap::from([(1, "Ada"), (2, "Grace")])));
/// let table = ThreadBound::new(names.clone());
/// let ids = LocalSubject::<u32>::new();
/// let seen = Rc::new(RefCell::new(String::new()));
/// let sink = seen.clone();
/// ids.clone()
///     .filter_map(move |id| table.with(|names| names.borrow().get(id).copied()))
///     .subscribe_local(move |name| sink.borrow_mut().push_str(name))
///     .detach();
/// ids.next_slice(&[2, 3, 1]);
/// assert_eq!(*seen.borrow(), "GraceAda");
/// ```
///
/// Each access costs a lookup in a table of the thread, a few nanoseconds. If the handle is dropped on another
/// thread, the value is dropped when its own thread ends.
pub struct ThreadBound<T> {
    thread: ThreadId,
    slot: usize,
    value: PhantomData<fn(T)>,
}

impl<T: 'static> ThreadBound<T> {
    /// Binds a value to this thread.
    pub fn new(value: T) -> Self {
        let value = Some(Rc::new(value) as Rc<dyn Any>);
        let slot = BOUND.with_borrow_mut(|table| match table.free.pop() {
            Some(slot) => {
                table.slots[slot] = value;
                slot
            }
            None => {
                table.slots.push(value);
                table.slots.len() - 1
            }
        });
        Self {
            thread: std::thread::current().id(),
            slot,
            value: PhantomData,
        }
    }

    /// Calls `access` with the value, and returns the result.
    ///
    /// # Panics
    ///
    /// If this is not the thread of the value.
    pub fn with<R>(&self, access: impl FnOnce(&T) -> R) -> R {
        let here = std::thread::current().id();
        assert!(
            here == self.thread,
            "this value is bound to thread {:?} and is used on thread {here:?}: bring the values of the \
             chain there with `observe_on`",
            self.thread,
        );
        self.try_with(access).expect("present until the drop")
    }

    /// Like [`with`](Self::with), but returns `None` on another thread.
    fn try_with<R>(&self, access: impl FnOnce(&T) -> R) -> Option<R> {
        if std::thread::current().id() != self.thread {
            return None;
        }
        // Taken out of the table for the access, which may add and drop bound values.
        let value = BOUND.with_borrow(|table| table.slots[self.slot].clone())?;
        let value = value.downcast_ref::<T>();
        Some(access(value.expect("the slot was filled with this type")))
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        if std::thread::current().id() != self.thread {
            // The value cannot be dropped on this thread. Its own thread drops it when that thread ends.
            return;
        }
        // If this thread is ending, it has already dropped the table, and the value with it.
        let removed = BOUND.try_with(|table| {
            let mut table = table.borrow_mut();
            table.free.push(self.slot);
            table.slots[self.slot].take()
        });
        drop(removed);
    }
}

impl<T> fmt::Debug for ThreadBound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBound")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// An observer that stays on its thread. Calls on another thread panic.
pub(crate) struct Pinned<O>(ThreadBound<RefCell<O>>);

impl<O: 'static> Pinned<O> {
    pub(crate) fn new(observer: O) -> Self {
        Self(ThreadBound::new(RefCell::new(observer)))
    }

    fn with<R>(&self, call: impl FnOnce(&mut O) -> R) -> R {
        // Calls to one observer never overlap.
        self.0.with(|observer| call(&mut observer.borrow_mut()))
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
        let is_closed = |observer: &RefCell<O>| observer.try_borrow().is_ok_and(|o| o.is_closed());
        self.0.try_with(is_closed).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::ThreadBound;
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

    #[test]
    fn closures_of_operators_use_bound_values() {
        let factor = Rc::new(RefCell::new(2));
        let bound = [(); 2].map(|()| ThreadBound::new(factor.clone()));
        let (subject, seen) = (LocalSubject::new(), Rc::new(RefCell::new(Vec::new())));
        let [mapped, scanned] = bound;
        let sink = seen.clone();
        let guard = subject
            .clone()
            .map(move |value: &u32| mapped.with(|factor| value * *factor.borrow()))
            .scan(0, move |sum, value| {
                scanned.with(|factor| sum + value + *factor.borrow())
            })
            .subscribe_local(move |value| sink.borrow_mut().push(*value));
        subject.next(1);
        *factor.borrow_mut() = 3;
        subject.next(1);
        assert_eq!(*seen.borrow(), [4, 10]);
        drop(guard);
        assert_eq!(Rc::strong_count(&factor), 1, "dropped with the chain");
    }

    #[test]
    fn nested_accesses_and_drops_during_an_access() {
        let outer = ThreadBound::new(RefCell::new(Some(ThreadBound::new(1))));
        let seen = outer.with(|cell| {
            let inner = cell.borrow_mut().take().expect("bound above");
            let sum = inner.with(|one| one + outer.with(|cell| i32::from(cell.borrow().is_none())));
            drop(inner);
            // Uses the slot that has become free.
            ThreadBound::new(sum).with(|sum| *sum)
        });
        assert_eq!(seen, 2);
    }

    #[test]
    fn value_is_inaccessible_on_another_thread_and_stays_until_its_thread_ends() {
        struct Announces(std::sync::mpsc::Sender<()>);
        impl Drop for Announces {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (tx, rx) = std::sync::mpsc::channel();
        let home = std::thread::spawn(move || ThreadBound::new(Announces(tx)));
        let bound = home.join().unwrap();
        let outcome = std::thread::spawn(move || bound.with(|_| ())).join();
        let message = *outcome.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("observe_on"), "{message}");
        assert_eq!(rx.recv(), Ok(()));
    }
}
