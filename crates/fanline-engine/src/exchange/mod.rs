//! Who gets what: interest, routes, and delivery.

pub(crate) mod router;
