//! Points in time and durations, in the forms that nats-server reads and writes.

mod duration;
mod timestamp;

pub use duration::{DurationError, Nanos};
pub use timestamp::Timestamp;
