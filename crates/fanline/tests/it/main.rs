//! Behaviour of the library, seen from outside: one module for each subject of talk.
#![allow(missing_docs)]
mod schedulers;

mod operators_sync;

mod hand;
mod hub;
mod operators_combine;
mod operators_errors;
mod operators_time;
mod streams;
