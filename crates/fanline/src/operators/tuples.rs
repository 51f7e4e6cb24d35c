//! `zip` and `combine_latest` of up to eight observables of different types.

use crate::{CombineExt, Guard, IntoObservable, Observable, Observer};

/// Emits the first values of all sources as a tuple, then the second ones, and so on.
///
/// `sources` is a tuple of two to eight observables. They are subscribed to in their order. Completes when
/// one source has completed and all its values are in tuples; fails with the first error. Stores, without
/// bound, the values of the faster sources. For two sources, see also [`CombineExt::zip`].
///
/// ```
/// use fanline::{operators, prelude::*};
///
/// operators::zip((fanline::from_iter(["a", "b"]), fanline::range(1..), fanline::repeat_value(true)))
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [("a", 1, true), ("b", 2, true)]))
///     .detach();
/// ```
pub fn zip<T: SourceTuple>(sources: T) -> ZipTuple<T> {
    ZipTuple(sources)
}

/// An observable of tuples of the n-th values; see [`zip`](crate::operators::zip()).
#[derive(Clone, Debug)]
pub struct ZipTuple<T>(T);

/// Emits the latest values of all sources as a tuple whenever one of them emits, as soon as all have emitted.
///
/// `sources` is a tuple of two to eight observables. They are subscribed to in their order. Completes when
/// all have completed, or when one completes without a value; fails with the first error. Stores one value of
/// each source. For two sources, see also [`CombineExt::combine_latest`].
///
/// ```
/// use fanline::{operators, prelude::*};
///
/// let (mut bid, bids) = fanline::subject::<u32>();
/// let (mut ask, asks) = fanline::subject::<u32>();
/// let (mut open, opens) = fanline::subject::<bool>();
/// let _guard = operators::combine_latest((bids, asks, opens)).subscribe(|all| println!("{all:?}"));
/// bid.next(99);
/// ask.next(101);
/// open.next(true); // (99, 101, true)
/// bid.next(100); // (100, 101, true)
/// ```
pub fn combine_latest<T: SourceTuple>(sources: T) -> CombineLatestTuple<T> {
    CombineLatestTuple(sources)
}

/// An observable of tuples of the latest values; see [`combine_latest`](crate::operators::combine_latest()).
#[derive(Clone, Debug)]
pub struct CombineLatestTuple<T>(T);

mod private {
    pub trait Sealed {}
}

/// A tuple of two to eight observables with the same error type, for [`zip`](crate::operators::zip()) and
/// [`combine_latest`](crate::operators::combine_latest()). It cannot be implemented outside this crate.
pub trait SourceTuple: private::Sealed {
    /// The tuple of the values.
    type Item;
    /// The error of all sources.
    type Error;

    #[doc(hidden)]
    fn subscribe_zip<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, Self::Error> + Send + 'static;

    #[doc(hidden)]
    fn subscribe_combine_latest<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, Self::Error> + Send + 'static;
}

impl<T: SourceTuple> Observable for ZipTuple<T> {
    type Item = T::Item;
    type Error = T::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T::Item, T::Error> + Send + 'static,
    {
        self.0.subscribe_zip(observer)
    }
}

impl<T: SourceTuple> Observable for CombineLatestTuple<T> {
    type Item = T::Item;
    type Error = T::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T::Item, T::Error> + Send + 'static,
    {
        self.0.subscribe_combine_latest(observer)
    }
}

/// Implements [`SourceTuple`] for a tuple: combines the first two sources to pairs, and adds one source after
/// the other to the tuple. This has the same output as one operator with all sources.
macro_rules! source_tuple {
    ($first:ident $($other:ident)+) => {
        impl<$first, $($other),+> private::Sealed for ($first, $($other),+) {}

        impl<$first, $($other),+> SourceTuple for ($first, $($other),+)
        where
            $first: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
            $($other: IntoObservable<Item: Clone + Send + 'static, Error = $first::Error>),+
        {
            type Item = ($first::Item, $($other::Item),+);
            type Error = $first::Error;

            #[expect(non_snake_case, reason = "a variable has the name of its type parameter")]
            fn subscribe_zip<O>(self, observer: O) -> Guard
            where
                O: Observer<Self::Item, Self::Error> + Send + 'static,
            {
                let ($first, $($other),+) = self;
                source_tuple!(@zip observer; $first; ($first); $($other)+)
            }

            #[expect(non_snake_case, reason = "a variable has the name of its type parameter")]
            fn subscribe_combine_latest<O>(self, observer: O) -> Guard
            where
                O: Observer<Self::Item, Self::Error> + Send + 'static,
            {
                let ($first, $($other),+) = self;
                source_tuple!(@combine observer; $first; ($first); $($other)+)
            }
        }
    };
    // `$chain` emits a flat tuple of the names in `$done`; a single name stands for a value without a tuple.
    (@zip $o:ident; $chain:expr; ($($done:ident),+); $next:ident $($rest:ident)*) => {
        source_tuple!(
            @zip $o;
            $chain.zip_with($next, |source_tuple!(@pattern $($done),+), $next| ($($done,)+ $next));
            ($($done,)+ $next);
            $($rest)*
        )
    };
    (@zip $o:ident; $chain:expr; ($($done:ident),+);) => {
        $chain.subscribe_with($o)
    };
    (@combine $o:ident; $chain:expr; ($($done:ident),+); $next:ident $($rest:ident)*) => {
        source_tuple!(
            @combine $o;
            $chain.combine_latest_with(
                $next,
                |source_tuple!(@pattern $($done),+), $next| ($($done.clone(),)+ $next.clone()),
            );
            ($($done,)+ $next);
            $($rest)*
        )
    };
    (@combine $o:ident; $chain:expr; ($($done:ident),+);) => {
        $chain.subscribe_with($o)
    };
    (@pattern $only:ident) => { $only };
    (@pattern $($done:ident),+) => { ($($done),+) };
}

source_tuple!(A B);
source_tuple!(A B C);
source_tuple!(A B C D);
source_tuple!(A B C D E);
source_tuple!(A B C D E F);
source_tuple!(A B C D E F G);
source_tuple!(A B C D E F G H);
