//! Behaviour of the library, seen from outside: one module for each subject of talk.
#![allow(missing_docs)]
mod observe_on;
mod schedulers;
mod virtual_time;
