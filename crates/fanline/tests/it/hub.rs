//! Hubs, seen from outside.

mod broadcast;
