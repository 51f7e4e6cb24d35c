use alloc::collections::VecDeque;

use super::gate::Out;
use super::join::{First, Join, join};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`zip`](crate::CombineExt::zip) and [`zip_with`](crate::CombineExt::zip_with).
///
/// Emits the first values of both sources as a pair, then the second ones, and so on.
///
/// Completes when one source has completed and all its values are paired; fails with the first error.
/// Stores, without bound, the values of the faster source that are not paired yet.
/// [`zip_with`](crate::CombineExt::zip_with) takes a closure `f` instead of making a pair.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(["a", "b"])
///     .zip(fanline::from_iter(1..10))
///     .subscribe(|pair| println!("{pair:?}")) // ("a", 1) ("b", 2)
///     .detach();
/// ```
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2])
///     .zip_with(fanline::from_iter([10, 20]), |left, right| left + right)
///     .collect::<Vec<_>>()
///     .subscribe(|sums| assert_eq!(*sums, [11, 22]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Zip<A, B, F> {
    left: A,
    right: B,
    f: F,
}

impl<A, B, F> Zip<A, B, F> {
    pub(super) fn new(left: A, right: B, f: F) -> Self {
        Self { left, right, f }
    }
}

impl<A, B, C, F> Observable for Zip<A, B, F>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    F: FnMut(A::Item, B::Item) -> C + Send + 'static,
{
    type Item = C;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<C, A::Error> + Send + 'static,
    {
        let stage = Zipped {
            out: Out::new(observer),
            f: self.f,
            left: Side::default(),
            right: Side::default(),
        };
        join(self.left, self.right, stage, First::Left)
    }
}

struct Zipped<A, B, O, F> {
    out: Out<O>,
    f: F,
    left: Side<A>,
    right: Side<B>,
}

/// The state of one source. At most one of the two has unpaired values.
struct Side<T> {
    unpaired: VecDeque<T>,
    complete: bool,
    disconnected: bool,
}

impl<T> Default for Side<T> {
    fn default() -> Self {
        Self {
            unpaired: VecDeque::new(),
            complete: false,
            disconnected: false,
        }
    }
}

impl<T> Side<T> {
    /// Returns whether the source has completed and all its values are paired.
    fn is_exhausted(&self) -> bool {
        self.complete && self.unpaired.is_empty()
    }

    /// Returns whether the source has dropped its observer and all its values are paired. Then neither a pair
    /// nor a completion can follow.
    fn is_lost(&self) -> bool {
        self.disconnected && self.unpaired.is_empty()
    }
}

impl<A, B, O, F> Zipped<A, B, O, F> {
    fn emit<C, E>(&mut self, left: A, right: B)
    where
        O: Observer<C, E>,
        F: FnMut(A, B) -> C,
    {
        let value = (self.f)(left, right);
        self.out.next_owned(value);
        if self.left.is_exhausted() || self.right.is_exhausted() {
            self.out.complete();
        } else if self.left.is_lost() || self.right.is_lost() {
            self.out.end_silently();
        }
    }
}

impl<A, B, C, E, O, F> Join<A, B, E> for Zipped<A, B, O, F>
where
    A: Clone + Send + 'static,
    B: Clone + Send + 'static,
    O: Observer<C, E> + Send + 'static,
    F: FnMut(A, B) -> C + Send + 'static,
{
    fn left(&mut self, value: &A) {
        self.left_owned(value.clone());
    }

    fn left_owned(&mut self, value: A) {
        match self.right.unpaired.pop_front() {
            Some(right) => self.emit(value, right),
            None => self.left.unpaired.push_back(value),
        }
    }

    fn right(&mut self, value: &B) {
        self.right_owned(value.clone());
    }

    fn right_owned(&mut self, value: B) {
        match self.left.unpaired.pop_front() {
            Some(left) => self.emit(left, value),
            None => self.right.unpaired.push_back(value),
        }
    }

    fn left_complete(&mut self) {
        self.left.complete = true;
        if self.left.is_exhausted() || self.right.complete {
            self.out.complete();
        }
    }

    fn right_complete(&mut self) {
        self.right.complete = true;
        if self.right.is_exhausted() || self.left.complete {
            self.out.complete();
        }
    }

    fn left_disconnected(&mut self) {
        self.left.disconnected = true;
        if self.left.is_lost() {
            self.out.end_silently();
        }
    }

    fn right_disconnected(&mut self) {
        self.right.disconnected = true;
        if self.right.is_lost() {
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
