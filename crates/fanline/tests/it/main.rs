//! Behaviour of the library, seen from outside: one module for each subject of talk.
#![allow(missing_docs)]
#![allow(
    clippy::unwrap_used,
    reason = "in tests it is an assertion, in their helpers too"
)]

mod first_lines;
mod hand;
mod hub;
mod local_subject;
mod observe_on;
mod operators_combine;
mod operators_errors;
mod operators_multicast;
mod operators_shape;
mod operators_sync;
mod operators_time;
mod operators_windows;
mod schedulers;
mod streams;
mod subjects;
mod virtual_time;
