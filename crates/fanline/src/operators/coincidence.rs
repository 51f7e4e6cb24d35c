//! `join` and `group_join`: pairs of values that are valid at the same time.

use alloc::collections::BTreeMap;
use core::marker::PhantomData;

use super::gate::{Event, Gate, Out, Stage};
use super::inputs::{connect, notify};
use super::unicast::{Feed, Unicast};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`join`](crate::CombineExt::join).
///
/// A value is valid from its arrival until the observable that `left_until` or `right_until` returns for it
/// emits or completes. Emits the result of `f` for each pair of a value of this source and one of `other`
/// that are valid at the same time.
///
/// Completes when both sources have completed, or when one has completed and none of its values is valid any
/// more. Fails with the first error of a source or of an observable. Stores the valid values. If a closure
/// panics, the subscription ends without a call to the observer.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut enter, guests) = fanline::subject::<&str>();
/// let (mut serve, dishes) = fanline::subject::<&str>();
/// let (mut leave, leaves) = fanline::subject::<()>();
/// let _guard = guests
///     .join(dishes, move |_| leaves.clone(), |_| fanline::empty::<()>(), |guest, dish| format!("{guest}: {dish}"))
///     .subscribe(|line| println!("{line}"));
/// enter.next("Ann");
/// serve.next("soup"); // Ann: soup
/// leave.next(());
/// serve.next("fish");
/// ```
#[derive(Clone, Debug)]
pub struct Join<A, B, L, R, F> {
    left: A,
    right: B,
    left_until: L,
    right_until: R,
    f: F,
}

impl<A, B, L, R, F> Join<A, B, L, R, F> {
    pub(super) fn new(left: A, right: B, left_until: L, right_until: R, f: F) -> Self {
        Self {
            left,
            right,
            left_until,
            right_until,
            f,
        }
    }
}

impl<A, B, C, L, R, LU, RU, F> Observable for Join<A, B, LU, RU, F>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    L: IntoObservable<Error = A::Error>,
    R: IntoObservable<Error = A::Error>,
    LU: FnMut(&A::Item) -> L + Send + 'static,
    RU: FnMut(&B::Item) -> R + Send + 'static,
    F: FnMut(&A::Item, &B::Item) -> C + Send + 'static,
{
    type Item = C;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<C, A::Error> + Send + 'static,
    {
        subscribe(
            self.left,
            self.right,
            self.left_until,
            self.right_until,
            Pairs {
                out: Out::new(observer),
                f: self.f,
            },
        )
    }
}

/// The observable returned by [`group_join`](crate::CombineExt::group_join).
///
/// A value is valid from its arrival until the observable that `left_until` or `right_until` returns for it
/// emits or completes. For each value of this source, emits the result of `f` for the value and an observable
/// of the values of `other` that are valid at the same time. That observable completes when the value of this
/// source is no longer valid.
///
/// The inner observables are [`Unicast`](crate::operators::Unicast)s: each buffers its values until it is
/// subscribed to, once. Completes when both sources have completed, after the inner observables, or when this
/// source has completed and none of its values is valid any more. Fails with the first error of a source or
/// of an observable, and so do the inner observables. Unsubscribing ends the inner observables without a
/// completion. Stores the valid values.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut enter, guests) = fanline::subject::<&str>();
/// let (mut serve, dishes) = fanline::subject::<u32>();
/// let (mut leave, leaves) = fanline::subject::<()>();
/// let _guard = guests
///     .group_join(dishes, move |_| leaves.clone(), |_| fanline::empty::<()>(), |guest, prices| {
///         let guest = *guest;
///         prices.sum().map(move |total| format!("{guest} pays {total}"))
///     })
///     .flat_map(Clone::clone)
///     .subscribe(|line| println!("{line}"));
/// enter.next("Ann");
/// serve.next(10);
/// serve.next(20);
/// leave.next(()); // Ann pays 30
/// ```
#[derive(Clone, Debug)]
pub struct GroupJoin<A, B, L, R, F> {
    left: A,
    right: B,
    left_until: L,
    right_until: R,
    f: F,
}

impl<A, B, L, R, F> GroupJoin<A, B, L, R, F> {
    pub(super) fn new(left: A, right: B, left_until: L, right_until: R, f: F) -> Self {
        Self {
            left,
            right,
            left_until,
            right_until,
            f,
        }
    }
}

impl<A, B, C, L, R, LU, RU, F> Observable for GroupJoin<A, B, LU, RU, F>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    L: IntoObservable<Error = A::Error>,
    R: IntoObservable<Error = A::Error>,
    LU: FnMut(&A::Item) -> L + Send + 'static,
    RU: FnMut(&B::Item) -> R + Send + 'static,
    F: FnMut(&A::Item, Unicast<B::Item, A::Error>) -> C + Send + 'static,
{
    type Item = C;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<C, A::Error> + Send + 'static,
    {
        subscribe(
            self.left,
            self.right,
            self.left_until,
            self.right_until,
            Groups {
                out: Out::new(observer),
                f: self.f,
            },
        )
    }
}

/// What an operator does with the valid values.
trait Match<A, B, E>: Send + 'static {
    /// A valid value of the left source.
    type Left: Send + 'static;

    /// Handles a new left value, given the valid right values.
    fn left<'a>(&mut self, value: A, rights: impl Iterator<Item = &'a B>) -> Self::Left
    where
        B: 'a;

    /// Handles a new right value, given the valid left values.
    fn right<'a>(&mut self, value: &B, lefts: impl Iterator<Item = &'a Self::Left>)
    where
        Self::Left: 'a;

    /// Handles a left value that is no longer valid.
    fn expired(&mut self, left: Self::Left);

    /// Passes the error on, to the valid left values first.
    fn error<'a>(&mut self, error: &E, lefts: impl Iterator<Item = &'a Self::Left>)
    where
        Self::Left: 'a;

    fn complete(&mut self);

    /// Whether the end of the right source may end the operator.
    const ENDS_WITH_RIGHT: bool;

    fn is_over(&self) -> bool;
}

struct Pairs<O, F> {
    out: Out<O>,
    f: F,
}

impl<A, B, C, E, O, F> Match<A, B, E> for Pairs<O, F>
where
    A: Send + 'static,
    O: Observer<C, E> + Send + 'static,
    F: FnMut(&A, &B) -> C + Send + 'static,
{
    type Left = A;

    const ENDS_WITH_RIGHT: bool = true;

    fn left<'a>(&mut self, value: A, rights: impl Iterator<Item = &'a B>) -> A
    where
        B: 'a,
    {
        for right in rights {
            let pair = (self.f)(&value, right);
            self.out.next_owned(pair);
            if self.out.is_closed() {
                break;
            }
        }
        value
    }

    fn right<'a>(&mut self, value: &B, lefts: impl Iterator<Item = &'a A>)
    where
        A: 'a,
    {
        for left in lefts {
            let pair = (self.f)(left, value);
            self.out.next_owned(pair);
            if self.out.is_closed() {
                break;
            }
        }
    }

    fn expired(&mut self, _left: A) {}

    fn error<'a>(&mut self, error: &E, _lefts: impl Iterator<Item = &'a A>)
    where
        A: 'a,
    {
        self.out.error(error);
    }

    fn complete(&mut self) {
        self.out.complete();
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}

struct Groups<O, F> {
    out: Out<O>,
    f: F,
}

impl<A, B, C, E, O, F> Match<A, B, E> for Groups<O, F>
where
    A: Send + 'static,
    B: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<C, E> + Send + 'static,
    F: FnMut(&A, Unicast<B, E>) -> C + Send + 'static,
{
    type Left = Feed<B, E>;

    const ENDS_WITH_RIGHT: bool = false;

    fn left<'a>(&mut self, value: A, rights: impl Iterator<Item = &'a B>) -> Feed<B, E>
    where
        B: 'a,
    {
        let (feed, group) = Feed::new(None);
        let group = (self.f)(&value, group);
        self.out.next_owned(group);
        rights.for_each(|right| feed.next(right));
        feed
    }

    fn right<'a>(&mut self, value: &B, lefts: impl Iterator<Item = &'a Feed<B, E>>)
    where
        Feed<B, E>: 'a,
    {
        lefts.for_each(|left| left.next(value));
    }

    fn expired(&mut self, left: Feed<B, E>) {
        left.complete();
    }

    fn error<'a>(&mut self, error: &E, lefts: impl Iterator<Item = &'a Feed<B, E>>)
    where
        Feed<B, E>: 'a,
    {
        lefts.for_each(|left| left.error(error));
        self.out.error(error);
    }

    fn complete(&mut self) {
        self.out.complete();
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}

fn subscribe<A, B, L, R, LU, RU, M>(
    left: A,
    right: B,
    left_until: LU,
    right_until: RU,
    matching: M,
) -> Guard
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
    L: IntoObservable<Error = A::Error>,
    R: IntoObservable<Error = A::Error>,
    LU: FnMut(&A::Item) -> L + Send + 'static,
    RU: FnMut(&B::Item) -> R + Send + 'static,
    M: Match<A::Item, B::Item, A::Error>,
{
    let gate = Gate::new(Coincidence {
        matching,
        left_until,
        right_until,
        lefts: BTreeMap::new(),
        rights: BTreeMap::new(),
        next_id: 0,
        left_complete: false,
        right_complete: false,
        types: PhantomData,
    });
    let guard = gate.guard();
    connect(&gate, left, Message::Left);
    connect(&gate, right, Message::Right);
    guard
}

struct Coincidence<A, B, E, LU, RU, M: Match<A, B, E>> {
    matching: M,
    left_until: LU,
    right_until: RU,
    /// The valid values of each source, by their numbers, in the order of their arrival.
    lefts: BTreeMap<u64, M::Left>,
    rights: BTreeMap<u64, B>,
    next_id: u64,
    left_complete: bool,
    right_complete: bool,
    types: PhantomData<fn(A, E)>,
}

enum Message<A, B, E> {
    Left(Event<A, E>),
    Right(Event<B, E>),
    LeftExpired(u64, Result<(), E>),
    RightExpired(u64, Result<(), E>),
}

impl<A, B, L, R, LU, RU, M> Coincidence<A, B, L::Error, LU, RU, M>
where
    A: Clone + Send + 'static,
    B: Clone + Send + 'static,
    L: IntoObservable<Error: Clone + Send + 'static>,
    R: IntoObservable<Error = L::Error>,
    LU: FnMut(&A) -> L + Send + 'static,
    RU: FnMut(&B) -> R + Send + 'static,
    M: Match<A, B, L::Error>,
{
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn left(&mut self, value: A, gate: &Gate<Self>) {
        let id = self.next_id();
        let until = (self.left_until)(&value);
        let left = self.matching.left(value, self.rights.values());
        self.lefts.insert(id, left);
        notify(gate, until, move |result| Message::LeftExpired(id, result));
    }

    fn right(&mut self, value: B, gate: &Gate<Self>) {
        let id = self.next_id();
        let until = (self.right_until)(&value);
        self.matching.right(&value, self.lefts.values());
        self.rights.insert(id, value);
        notify(gate, until, move |result| Message::RightExpired(id, result));
    }

    fn error(&mut self, error: &L::Error) {
        self.matching.error(error, self.lefts.values());
    }

    fn complete_if_done(&mut self) {
        let both = self.left_complete && self.right_complete;
        let no_left = self.left_complete && self.lefts.is_empty();
        let no_right = M::ENDS_WITH_RIGHT && self.right_complete && self.rights.is_empty();
        if both || no_left || no_right {
            for left in core::mem::take(&mut self.lefts).into_values() {
                self.matching.expired(left);
            }
            self.matching.complete();
        }
    }
}

impl<A, B, L, R, LU, RU, M> Stage for Coincidence<A, B, L::Error, LU, RU, M>
where
    A: Clone + Send + 'static,
    B: Clone + Send + 'static,
    L: IntoObservable<Error: Clone + Send + 'static>,
    R: IntoObservable<Error = L::Error>,
    LU: FnMut(&A) -> L + Send + 'static,
    RU: FnMut(&B) -> R + Send + 'static,
    M: Match<A, B, L::Error>,
{
    type Message = Message<A, B, L::Error>;

    fn receive(&mut self, message: Self::Message, gate: &Gate<Self>) {
        match message {
            Message::Left(Event::Next(value)) => self.left(value, gate),
            Message::Right(Event::Next(value)) => self.right(value, gate),
            Message::Left(Event::Slice(values)) => {
                values.into_iter().for_each(|value| self.left(value, gate));
            }
            Message::Right(Event::Slice(values)) => {
                values.into_iter().for_each(|value| self.right(value, gate));
            }
            Message::Left(Event::Error(error))
            | Message::Right(Event::Error(error))
            | Message::LeftExpired(_, Err(error))
            | Message::RightExpired(_, Err(error)) => self.error(&error),
            Message::Left(Event::Complete) => {
                self.left_complete = true;
                self.complete_if_done();
            }
            Message::Right(Event::Complete) => {
                self.right_complete = true;
                self.complete_if_done();
            }
            Message::LeftExpired(id, Ok(())) => {
                if let Some(left) = self.lefts.remove(&id) {
                    self.matching.expired(left);
                }
                self.complete_if_done();
            }
            Message::RightExpired(id, Ok(())) => {
                self.rights.remove(&id);
                self.complete_if_done();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.matching.is_over()
    }
}
