//! Streams from sources, and sources from streams.
#![allow(
    clippy::unwrap_used,
    reason = "in tests and their helpers it is an assertion"
)]

mod from_stream;
mod into_stream;
mod manual;
mod subjects;
mod values;
