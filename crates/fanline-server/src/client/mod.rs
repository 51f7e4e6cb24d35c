//! A NATS client over any byte stream.
