//! Streams and sinks: the way to and from asynchronous code, whatever its runtime.
//!
//! - [`into_stream`](crate::ObservableExt::into_stream) makes a `Stream` of a source that cannot
//!   fail, [`try_into_stream`](crate::ObservableExt::try_into_stream) of one that can.
//! - [`first_value`](crate::ObservableExt::first_value) and
//!   [`last_value`](crate::ObservableExt::last_value) make a future.
//! - An [`AsyncSubject`](crate::AsyncSubject) can be awaited.
//! - [`from_stream`], [`from_future`] and their fallible forms make an observable.
//! - A [`Producer`](crate::Producer) is a `Sink`, and so is every shared subject and every reference
//!   to one.
//!
//! Plain threads use the same types: [`IntoStream::blocking_next`], [`IntoStream::blocking_iter`] and
//! [`FirstValue::blocking_wait`].
//!
//! # Which policy do I want?
//!
//! A source pushes whether or not anyone awaits; the policy says what happens when the consumer is
//! slower. The type of the items follows from it, so that nothing is lost unseen.
//!
//! | I want | policy | items | when the consumer is slow |
//! | --- | --- | --- | --- |
//! | every value, and memory is not the question | [`Unbounded`] | `T` | the queue grows |
//! | every value in bounded memory | [`Bounded::block`] | `T` | `next` of the source waits |
//! | every value or a clear failure | [`Bounded::fail`] | `Result<T, Overflow>` | the stream ends with [`Overflow`] |
//! | recent values | [`Bounded::drop_oldest`] | `T` | the oldest of the queue go |
//! | the beginning of each burst | [`Bounded::drop_newest`] | `T` | what arrives is not taken |
//! | only where things stand now | [`Latest`] | `T` | the newer value takes the older one's place |
//! | to know what I missed, and where | any of the three above, with `report_lag()` | `Result<T, Lagged>` | [`Lagged`] stands where values are missing |
//!
//! Without `report_lag` the number of values lost is still there to be asked:
//! [`IntoStream::lost`].
//!
//! With an error of the source's own, each item is wrapped once more: `Result<T, E>`, or
//! `Result<Result<T, Lagged>, E>`; the outer one is about the source and the inner one about the queue.
//!
//! # What it costs
//!
//! A value is cloned once (moved, if nobody else gets it) and put in the queue under a short lock, a
//! slice under one lock for all. The consumer takes all that waits at once ([`Unbounded`]) or up to
//! half of the capacity ([`Bounded::block`], [`Bounded::fail`]), so a burst costs it few locks; where
//! values may be dropped it takes one at a time. The capacity is exact: it counts every value that
//! the stream has not yielded. The consumer's task is woken once when a value arrives while it
//! waits, and not again before it has looked.

mod from_stream;
mod into_stream;
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
pub use policy::{Bounded, FailWhenFull, Lagged, Latest, Overflow, Policy, ReportLag, Unbounded};
pub use sink::Closed;
pub use value::{FirstValue, LastValue};
