//! Streams and sinks: the bridge to and from asynchronous code, for any runtime.
//!
//! - [`into_stream`](crate::ObservableExt::into_stream) makes a `Stream` of a source that cannot fail.
//!   [`try_into_stream`](crate::ObservableExt::try_into_stream) makes one of a source that can fail.
//! - [`first_value`](crate::ObservableExt::first_value) and
//!   [`last_value`](crate::ObservableExt::last_value) make a future.
//! - An [`AsyncSubject`](crate::AsyncSubject) can be awaited.
//! - [`from_stream`], [`from_future`], and their fallible forms make an observable.
//! - A [`Producer`](crate::Producer) is a `Sink`, and so is every shared subject and every reference to
//!   one.
//!
//! Plain threads use the same types: [`IntoStream::blocking_next`], [`IntoStream::blocking_iter`] and
//! [`FirstValue::blocking_wait`]. [`MostRecent`] reads the newest value without waiting.
//!
//! # Choose a policy
//!
//! A source emits whether or not a consumer is waiting. The policy determines what happens when the consumer
//! is slower. The policy also determines the type of the items: if it reports losses or an overflow, they are
//! `Result`s.
//!
//! | requirement | policy | items | when the consumer is slow |
//! | --- | --- | --- | --- |
//! | every value, in unbounded memory | [`Unbounded`] | `T` | the queue grows |
//! | every value, in bounded memory | [`Bounded::block`] | `T` | `next` of the source waits |
//! | every value, or a clear failure | [`Bounded::fail`] | `Result<T, Overflow>` | the stream ends with [`Overflow`] |
//! | recent values | [`Bounded::drop_oldest`] | `T` | the oldest queued values are dropped |
//! | the beginning of each burst | [`Bounded::drop_newest`] | `T` | new values are dropped |
//! | only the current value | [`Latest`] | `T` | a new value replaces the queued one |
//! | the number and position of lost values | `drop_oldest`, `drop_newest`, or `Latest`, with `report_lag()` | `Result<T, Lagged>` | [`Lagged`] marks where values are missing |
//!
//! Without `report_lag`, [`IntoStream::lost`] still counts the lost values.
//!
//! If the source can fail, each item is wrapped once more: `Result<T, E>`, or `Result<Result<T, Lagged>, E>`.
//! The outer `Result` contains the source's error, the inner one the [`Lagged`] or [`Overflow`] of the queue.
//!
//! # Cost
//!
//! A value is cloned once (or moved, if no other observer receives it) and put into the queue under a short
//! lock; a slice takes one lock for all values. The consumer takes all queued values at once ([`Unbounded`]),
//! or up to half of the capacity ([`Bounded::block`], [`Bounded::fail`]), so it takes few locks for a burst.
//! With policies that drop values, it takes one value at a time. The capacity is exact: it counts every value
//! that the stream has not yielded. When a value arrives while the consumer waits, the consumer's task is
//! woken once, and not again before the task has polled.

mod from_stream;
mod into_stream;
mod most_recent;
mod park;
mod policy;
mod queue;
mod sink;
mod task;
mod value;

pub use from_stream::{
    FromFuture, FromStream, TryFromFuture, TryFromStream, from_future, from_stream,
    try_from_future, try_from_stream,
};
pub use into_stream::{BlockingIter, IntoStream, TryIntoStream};
pub use most_recent::MostRecent;
pub use policy::{
    Bounded, FailWhenFull, Lagged, Latest, Overflow, OverflowPolicy, ReportLag, Unbounded,
};
pub use sink::SubjectEnded;
pub use value::{FirstValue, LastValue};
