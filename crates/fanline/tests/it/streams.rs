//! Streams of sources, and sources of streams.

mod from_stream;
mod hand;
mod into_stream;
mod subjects;
mod values;
