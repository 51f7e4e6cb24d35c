//! Observables made of values, iterators, and closures, for the start of a chain.
//!
//! The functions are also at the crate's root: `fanline::from_iter(0..3)`. An observable that cannot fail
//! has [`Infallible`](std::convert::Infallible) as its error;
//! [`with_error_type`](crate::ObservableExt::with_error_type) adapts it to a chain that can fail.

#[cfg(feature = "std")]
mod case;
mod conditional;
mod defer;
mod emitter;
mod ends;
mod from_iter;
mod using;

#[cfg(feature = "std")]
pub use case::{Case, case};
pub use conditional::{IfThen, WhileDo, if_then, while_do};
pub use defer::{Defer, defer};
pub use emitter::{Create, Emitter, create};
pub use ends::{Empty, Never, Throw, empty, never, throw};
pub use from_iter::{
    FromFn, FromIter, FromRange, Generate, Of, RepeatValue, TryFromIter, from_fn, from_iter,
    generate, of, range, repeat_value, try_from_iter,
};
pub use using::{Using, using};
