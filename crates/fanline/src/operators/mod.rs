//! Operators: observables made of observables.
//!
//! The operators are methods of three traits, which the [prelude](crate::prelude) imports: [`ObservableExt`]
//! for those with one source, [`CombineExt`] for those that subscribe to several observables, or several times,
//! and [`TimeExt`] for those that depend on time. The documentation of the type that a method returns describes
//! in full which values it emits, when it completes or fails, what it stores, and when it panics. It has an
//! example.
//!
//! [Names in Rx](names_in_rx) lists the operators of RxJava and Rx.NET, and their names here.
//!
//! # Short types
//!
//! A chain has the type of its last operator, which includes the types of the operators before it. Where the
//! type must be written, as in a field or at a module boundary, [`boxed`](ObservableExt::boxed) hides it: the
//! type [`BoxObservable`](crate::BoxObservable) depends only on the types of the values and errors.
//!
//! # Closures that take owned values or stay on their thread
//!
//! [`subscribe_owned`](ObservableExt::subscribe_owned) takes a closure that receives owned values instead of
//! references. A value that other observers receive too is cloned; a value made by an operator is moved. The
//! closure is not told about completion or failure.
//!
//! ```
//! use fanline::prelude::*;
//!
//! let (tx, rx) = std::sync::mpsc::channel();
//! fanline::from_iter(1..=2)
//!     .map(|n| format!("no. {n}"))
//!     .subscribe_owned(move |text| tx.send(text).expect("receiver exists"))
//!     .detach();
//! assert_eq!(rx.iter().collect::<Vec<_>>(), ["no. 1", "no. 2"]);
//! ```
//!
//! [`subscribe_local`](ObservableExt::subscribe_local) takes a closure that need not be `Send`: it stays on
//! this thread, and values must arrive on this thread. If the last operator emits on another thread,
//! [`observe_on`](ObservableExt::observe_on) with an event loop of this thread moves the values here. If a
//! value arrives on another thread, the observer panics there. If the guard is dropped on another thread, the
//! closure is dropped when this thread ends.
//!
//! The closures of operators must be `Send`. A [`ThreadBound`](crate::ThreadBound) gives them access to a value
//! that is not. It has the same rules as `subscribe_local`.

#[cfg(any(doc, doctest))]
pub mod names_in_rx;

mod accumulate;
mod boundaries;
mod buffer_count;
#[cfg(feature = "std")]
mod buffer_time;
mod catch;
mod coincidence;
mod collect;
mod combine_latest;
mod concat;
mod concat_map_eager;
mod count;
#[cfg(feature = "std")]
mod debounce;
mod default_if_empty;
#[cfg(feature = "std")]
mod delay;
mod delay_error;
#[cfg(feature = "std")]
mod delay_subscription;
mod delay_with;
#[cfg(feature = "std")]
mod distinct;
mod distinct_until_changed;
mod enumerate;
mod exhaust_map;
mod expand;
mod ext;
mod extreme;
mod filter;
mod filter_map;
mod finalize;
mod flat_map;
mod flat_map_iter;
#[cfg(feature = "std")]
mod flat_map_on;
mod fold;
#[cfg(feature = "std")]
mod for_duration;
mod forward;
mod funnel;
mod gate;
#[cfg(feature = "std")]
mod group_by;
#[cfg(feature = "std")]
mod group_by_until;
mod hooks;
mod ignore_elements;
mod inner_all;
mod inputs;
#[cfg(feature = "std")]
mod interval;
mod join;
mod last;
mod map;
mod map_err;
mod map_to;
mod materialize;
mod merge;
mod multicast;
#[cfg(feature = "std")]
mod observe_on;
mod on_error_complete;
mod on_error_return;
mod owned;
mod paced;
mod pairwise;
mod predicate;
mod race;
mod ref_count;
mod repeat;
mod resubscribe;
mod resubscribe_when;
mod retry;
mod sample;
#[cfg(feature = "std")]
mod sample_every;
mod scan;
mod sequence_equal;
mod serialize;
mod series;
mod signal;
mod single;
mod skip;
mod skip_until;
mod skip_while;
mod sorted;
mod start_with;
#[cfg(feature = "std")]
mod subscribe_on;
mod sum;
mod switch_all;
mod switch_if_empty;
mod switch_map;
mod take;
mod take_last;
mod take_until;
mod take_while;
mod tap;
#[cfg(feature = "std")]
mod throttle;
#[cfg(feature = "std")]
mod timed;
#[cfg(feature = "std")]
mod timeout;
#[cfg(feature = "std")]
mod timeout_with;
mod timestamp;
#[cfg(feature = "std")]
mod to_map;
mod tuples;
mod unicast;
mod upstreams;
mod window_count;
#[cfg(feature = "std")]
mod window_time;
mod with_latest_from;
mod zip;

pub use boundaries::{BufferWhen, WindowWhen};
pub use buffer_count::{BufferCount, BufferCountEvery};
#[cfg(feature = "std")]
pub use buffer_time::BufferTime;
pub use catch::Catch;
pub use coincidence::{GroupJoin, Join};
pub use collect::Collect;
pub use combine_latest::CombineLatest;
pub use concat::{Concat, ConcatList, concat};
pub use concat_map_eager::ConcatMapEager;
pub use count::Count;
#[cfg(feature = "std")]
pub use debounce::Debounce;
pub use default_if_empty::DefaultIfEmpty;
#[cfg(feature = "std")]
pub use delay::Delay;
pub use delay_error::{
    CombineLatestDelayError, ConcatDelayError, FlatMapDelayError, MergeDelayError, ZipDelayError,
};
#[cfg(feature = "std")]
pub use delay_subscription::DelaySubscription;
pub use delay_with::DelayWith;
#[cfg(feature = "std")]
pub use distinct::{Distinct, DistinctByKey};
pub use distinct_until_changed::{
    DistinctUntilChanged, DistinctUntilChangedBy, DistinctUntilChangedByKey,
};
pub use enumerate::Enumerate;
pub use exhaust_map::ExhaustMap;
pub use expand::Expand;
#[cfg(feature = "std")]
pub use ext::TimeExt;
pub use ext::{CombineExt, ObservableExt};
pub use extreme::{Max, MaxBy, Min, MinBy};
pub use filter::Filter;
pub use filter_map::FilterMap;
pub use finalize::Finalize;
pub use flat_map::{ConcatMap, FlatMap};
pub use flat_map_iter::FlatMapIter;
#[cfg(feature = "std")]
pub use flat_map_on::FlatMapOn;
pub use fold::{Fold, Reduce};
#[cfg(feature = "std")]
pub use for_duration::{SkipFor, SkipLastFor, TakeFor, TakeLastFor};
#[cfg(feature = "std")]
pub use group_by::{GroupBy, Grouped};
#[cfg(feature = "std")]
pub use group_by_until::GroupByUntil;
pub use hooks::{OnDispose, OnSubscribe};
pub use ignore_elements::IgnoreElements;
pub use inner_all::MergeAll;
#[cfg(feature = "std")]
pub use interval::{Interval, TimerSource, interval, interval_on, timer, timer_on};
pub use last::LastElement;
pub use map::Map;
pub use map_err::{MapErr, WithErrorType};
pub use map_to::MapTo;
pub use materialize::{Dematerialize, Materialize, Notification};
pub use merge::{Merge, MergeList, merge};
pub use multicast::{Connectable, FromShared, MulticastSource, Shareable};
#[cfg(feature = "std")]
pub use observe_on::ObserveOn;
pub use on_error_complete::OnErrorComplete;
pub use on_error_return::OnErrorReturn;
pub use paced::{DebounceWith, ThrottleWith};
pub use pairwise::Pairwise;
pub use predicate::{AllMatch, Any, Contains, IsEmpty};
pub use race::{Race, RaceAll, RaceList, race};
pub use ref_count::{AutoConnect, RefCount};
pub use repeat::{DoWhile, Repeat};
pub use resubscribe_when::{RepeatWhen, RetryWhen};
pub use retry::{Backoff, Retry, RetryWith};
pub use sample::Sample;
#[cfg(feature = "std")]
pub use sample_every::SampleEvery;
pub use scan::Scan;
pub use sequence_equal::SequenceEqual;
pub use serialize::{Serialize, Serialized};
pub use single::{NotSingle, Single};
pub use skip::Skip;
pub use skip_until::SkipUntil;
pub use skip_while::SkipWhile;
pub use sorted::{Sorted, SortedBy};
pub use start_with::{EndWith, StartWith};
#[cfg(feature = "std")]
pub use subscribe_on::SubscribeOn;
pub use sum::{Average, Sum};
pub use switch_all::SwitchAll;
pub use switch_if_empty::SwitchIfEmpty;
pub use switch_map::SwitchMap;
pub use take::{ElementAt, First, Take};
pub use take_last::{SkipLast, TakeLast};
pub use take_until::TakeUntil;
pub use take_while::{TakeUntilMatch, TakeWhile};
pub use tap::Tap;
#[cfg(feature = "std")]
pub use throttle::{Edge, Throttle};
#[cfg(feature = "std")]
pub use timeout::Timeout;
#[cfg(feature = "std")]
pub use timeout_with::TimeoutWith;
pub use timestamp::{TimeInterval, Timestamp, Timestamped, WithInterval};
#[cfg(feature = "std")]
pub use to_map::{ToMap, ToMultimap};
pub use tuples::{CombineLatestTuple, SourceTuple, ZipTuple, combine_latest, zip};
pub use unicast::{FromUnicast, Unicast, UnicastProducer, unicast, unicast_with_error};
pub use window_count::WindowCount;
#[cfg(feature = "std")]
pub use window_time::WindowTime;
pub use with_latest_from::WithLatestFrom;
pub use zip::Zip;
