//! Streams of sources, and sources of streams.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, too, stop at what cannot be"
)]

mod from_stream;
mod hand;
mod into_stream;
mod subjects;
mod values;
