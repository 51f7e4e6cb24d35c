//! What the server does over its sockets.

mod monitoring;
