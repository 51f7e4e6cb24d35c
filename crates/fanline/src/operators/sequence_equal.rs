use alloc::collections::VecDeque;

use super::gate::Out;
use super::join::{First, Join, join};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`sequence_equal`](crate::CombineExt::sequence_equal).
///
/// Emits whether both sources have equal values in the same order and number, as soon as this is known, and
/// completes.
///
/// The result is `false` at the first difference, and `true` when both sources have completed. Fails with the
/// first error that arrives before the result. Stores, without bound, the values of the faster source.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2])
///     .sequence_equal(fanline::range(1..=2))
///     .subscribe(|equal| assert!(*equal))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct SequenceEqual<A, B> {
    left: A,
    right: B,
}

impl<A, B> SequenceEqual<A, B> {
    pub(super) fn new(left: A, right: B) -> Self {
        Self { left, right }
    }
}

impl<A, B> Observable for SequenceEqual<A, B>
where
    A: Observable<Item: Clone + PartialEq + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item = A::Item, Error = A::Error>,
{
    type Item = bool;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<bool, A::Error> + Send + 'static,
    {
        let stage = Comparison {
            out: Out::new(observer),
            left: Side::default(),
            right: Side::default(),
        };
        join(self.left, self.right, stage, First::Left)
    }
}

struct Comparison<T, O> {
    out: Out<O>,
    left: Side<T>,
    right: Side<T>,
}

/// The state of one source. At most one of the two has uncompared values.
struct Side<T> {
    uncompared: VecDeque<T>,
    complete: bool,
}

impl<T> Default for Side<T> {
    fn default() -> Self {
        Self {
            uncompared: VecDeque::new(),
            complete: false,
        }
    }
}

impl<T> Side<T> {
    /// Returns whether a value has arrived for which `other` has no counterpart.
    fn is_longer_than(&self, other: &Self) -> bool {
        other.complete && !self.uncompared.is_empty()
    }
}

impl<T: PartialEq, O> Comparison<T, O> {
    fn compare<E>(&mut self)
    where
        O: Observer<bool, E>,
    {
        while let (Some(left), Some(right)) =
            (self.left.uncompared.front(), self.right.uncompared.front())
        {
            if left != right {
                self.emit(false);
                return;
            }
            self.left.uncompared.pop_front();
            self.right.uncompared.pop_front();
        }
        if self.left.is_longer_than(&self.right) || self.right.is_longer_than(&self.left) {
            self.emit(false);
        } else if self.left.complete && self.right.complete {
            self.emit(true);
        }
    }

    fn emit<E>(&mut self, equal: bool)
    where
        O: Observer<bool, E>,
    {
        self.out.next_owned(equal);
        self.out.complete();
    }
}

impl<T, E, O> Join<T, T, E> for Comparison<T, O>
where
    T: Clone + PartialEq + Send + 'static,
    O: Observer<bool, E> + Send + 'static,
{
    fn left(&mut self, value: &T) {
        self.left_owned(value.clone());
    }

    fn left_owned(&mut self, value: T) {
        self.left.uncompared.push_back(value);
        self.compare();
    }

    fn right(&mut self, value: &T) {
        self.right_owned(value.clone());
    }

    fn right_owned(&mut self, value: T) {
        self.right.uncompared.push_back(value);
        self.compare();
    }

    fn left_complete(&mut self) {
        self.left.complete = true;
        self.compare();
    }

    fn right_complete(&mut self) {
        self.right.complete = true;
        self.compare();
    }

    fn left_disconnected(&mut self) {
        if !self.left.complete {
            self.out.end_silently();
        }
    }

    fn right_disconnected(&mut self) {
        if !self.right.complete {
            self.out.end_silently();
        }
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
