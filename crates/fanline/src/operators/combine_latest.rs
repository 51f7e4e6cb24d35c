use super::gate::Out;
use super::join::{First, Join, join};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`combine_latest`](crate::CombineExt::combine_latest) and
/// [`combine_latest_with`](crate::CombineExt::combine_latest_with).
///
/// Emits the latest values of this source and of `other` as a pair. A pair is emitted whenever one of the two
/// emits, as soon as both have emitted a value.
///
/// Completes when both have completed, or when one completes without a value; fails with the first error.
/// Stores one value of each source. [`combine_latest_with`](crate::CombineExt::combine_latest_with) takes
/// a closure `f` instead of cloning values into a pair.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut price, prices) = fanline::subject::<u32>();
/// let (mut amount, amounts) = fanline::subject::<u32>();
/// let _guard = prices.combine_latest(amounts).subscribe(|pair| println!("{pair:?}"));
/// price.next(10);
/// amount.next(2); // (10, 2)
/// price.next(11); // (11, 2)
/// ```
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut price, prices) = fanline::subject::<u32>();
/// let (mut amount, amounts) = fanline::subject::<u32>();
/// let total = fanline::BehaviorSubject::new(0);
/// let seen = total.clone();
/// let _guard = prices
///     .combine_latest_with(amounts, |price, amount| price * amount)
///     .subscribe(move |total| seen.next(*total));
/// price.next(10);
/// amount.next(2);
/// assert_eq!(total.value(), Ok(20));
/// ```
#[derive(Clone, Debug)]
pub struct CombineLatest<A, B, F> {
    left: A,
    right: B,
    f: F,
}

impl<A, B, F> CombineLatest<A, B, F> {
    pub(super) fn new(left: A, right: B, f: F) -> Self {
        Self { left, right, f }
    }
}

impl<A, B, C, F> Observable for CombineLatest<A, B, F>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    F: FnMut(&A::Item, &B::Item) -> C + Send + 'static,
{
    type Item = C;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<C, A::Error> + Send + 'static,
    {
        let stage = Combined {
            out: Out::new(observer),
            f: self.f,
            left: Latest::default(),
            right: Latest::default(),
        };
        join(self.left, self.right, stage, First::Left)
    }
}

struct Combined<A, B, O, F> {
    out: Out<O>,
    f: F,
    left: Latest<A>,
    right: Latest<B>,
}

struct Latest<T> {
    value: Option<T>,
    complete: bool,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self {
            value: None,
            complete: false,
        }
    }
}

impl<T> Latest<T> {
    /// Returns whether the source has completed without a value.
    fn is_empty(&self) -> bool {
        self.complete && self.value.is_none()
    }
}

impl<A, B, O, F> Combined<A, B, O, F> {
    fn emit<C, E>(&mut self)
    where
        O: Observer<C, E>,
        F: FnMut(&A, &B) -> C,
    {
        if let (Some(left), Some(right)) = (&self.left.value, &self.right.value) {
            let value = (self.f)(left, right);
            self.out.next_owned(value);
        }
    }

    fn complete<C, E>(&mut self)
    where
        O: Observer<C, E>,
    {
        let both = self.left.complete && self.right.complete;
        if both || self.left.is_empty() || self.right.is_empty() {
            self.out.complete();
        }
    }
}

impl<A, B, C, E, O, F> Join<A, B, E> for Combined<A, B, O, F>
where
    A: Clone + Send + 'static,
    B: Clone + Send + 'static,
    O: Observer<C, E> + Send + 'static,
    F: FnMut(&A, &B) -> C + Send + 'static,
{
    fn left(&mut self, value: &A) {
        self.left_owned(value.clone());
    }

    fn left_owned(&mut self, value: A) {
        self.left.value = Some(value);
        self.emit();
    }

    fn right(&mut self, value: &B) {
        self.right_owned(value.clone());
    }

    fn right_owned(&mut self, value: B) {
        self.right.value = Some(value);
        self.emit();
    }

    fn left_complete(&mut self) {
        self.left.complete = true;
        self.complete();
    }

    fn right_complete(&mut self) {
        self.right.complete = true;
        self.complete();
    }

    fn left_disconnected(&mut self) {
        if self.left.value.is_none() {
            self.out.end_silently();
        }
    }

    fn right_disconnected(&mut self) {
        if self.right.value.is_none() {
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
