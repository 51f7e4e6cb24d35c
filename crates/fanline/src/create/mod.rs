//! Where chains begin: observables made of values, iterators and closures.
//!
//! The functions are also at the crate's root: `fanline::from_iter(0..3)`. Those that have nothing to
//! fail with have [`Infallible`](std::convert::Infallible) as their error; use
//! [`with_error_type`](crate::ObservableExt::with_error_type) where they meet a chain that can fail.

mod defer;
mod emitter;
mod ends;
mod from_iter;

pub use defer::{Defer, defer};
pub use emitter::{Create, Emitter, create};
pub use ends::{Empty, Never, Throw, empty, never, throw};
pub use from_iter::{
    FromIter, FromRange, Of, TryFromIter, from_fn, from_iter, generate, of, range, repeat_value,
    try_from_iter,
};
