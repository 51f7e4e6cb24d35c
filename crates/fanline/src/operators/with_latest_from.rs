use super::gate::Out;
use super::join::{First, Join, join};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`with_latest_from`](crate::CombineExt::with_latest_from) and
/// [`with_latest_from_with`](crate::CombineExt::with_latest_from_with).
///
/// Emits each value with the latest value of `other`; values that arrive before `other` has emitted are
/// dropped.
///
/// `other` is subscribed to first. Completes when this source completes, whether or not `other` has
/// completed; fails with the first error. Stores one value of `other`.
/// [`with_latest_from_with`](crate::CombineExt::with_latest_from_with) takes a closure `f` instead of
/// cloning values into a pair.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut click, clicks) = fanline::subject::<&str>();
/// let (mut mode, modes) = fanline::subject::<u32>();
/// let _guard = clicks.with_latest_from(modes).subscribe(|pair| println!("{pair:?}"));
/// mode.next(1);
/// click.next("here"); // ("here", 1)
/// ```
///
/// ```
/// use fanline::prelude::*;
///
/// let rate = fanline::BehaviorSubject::new(3);
/// fanline::from_iter([1, 2])
///     .with_latest_from_with(rate.clone(), |amount, rate| amount * rate)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [3, 6]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct WithLatestFrom<A, B, F> {
    source: A,
    other: B,
    f: F,
}

impl<A, B, F> WithLatestFrom<A, B, F> {
    pub(super) fn new(source: A, other: B, f: F) -> Self {
        Self { source, other, f }
    }
}

impl<A, B, C, F> Observable for WithLatestFrom<A, B, F>
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
        let stage = Sampled {
            out: Out::new(observer),
            f: self.f,
            latest: None,
        };
        // `other` is subscribed to first, so that a value that it emits at once is not too late.
        join(self.source, self.other, stage, First::Right)
    }
}

struct Sampled<B, O, F> {
    out: Out<O>,
    f: F,
    latest: Option<B>,
}

impl<A, B, C, E, O, F> Join<A, B, E> for Sampled<B, O, F>
where
    B: Clone + Send + 'static,
    O: Observer<C, E> + Send + 'static,
    F: FnMut(&A, &B) -> C + Send + 'static,
{
    fn left(&mut self, value: &A) {
        if let Some(latest) = &self.latest {
            let value = (self.f)(value, latest);
            self.out.next_owned(value);
        }
    }

    fn right(&mut self, value: &B) {
        self.latest = Some(value.clone());
    }

    fn right_owned(&mut self, value: B) {
        self.latest = Some(value);
    }

    fn left_complete(&mut self) {
        self.out.complete();
    }

    fn right_complete(&mut self) {}

    fn left_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}
