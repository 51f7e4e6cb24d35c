//! What decides in Fanline: topics, matching, codecs, sessions. It is handed bytes and `now`, and
//! gives back what to do. It knows nothing of sockets, files, threads, clocks or locks.

mod auth;
mod limits;

pub use auth::Auth;
pub use limits::Limits;
