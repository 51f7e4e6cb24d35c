//! Integration tests of the library, one module per area.
#![allow(missing_docs)]
#![allow(
    clippy::unwrap_used,
    reason = "in tests and their helpers it is an assertion"
)]

mod hub;
mod local_subject;
mod manual_source;
mod observe_on;
mod operators_boundaries;
mod operators_combine;
mod operators_errors;
mod operators_multicast;
mod operators_several;
mod operators_shape;
mod operators_sync;
mod operators_time;
mod operators_windows;
mod quick_start;
mod schedulers;
mod streams;
mod subjects;
mod virtual_time;
