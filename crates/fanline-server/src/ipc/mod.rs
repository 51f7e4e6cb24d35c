//! What the threads of a server hand to each other: batches, commands, connections, and questions.
//!
//! It holds types and queues, and knows nothing of the threads at either end.

mod command;
mod common;
mod mailbox;
mod panic_guard;
mod query;
mod requests;
mod sync_times;
mod transport;

pub(crate) use command::{Command, Reload};
pub(crate) use common::{ARRIVALS_MAX, Common, Listeners, WebSocketListener};
pub(crate) use mailbox::Mailbox;
pub use panic_guard::JetStreamAtWork;
pub(crate) use panic_guard::{PanicStop, PoisonCell, catch_panic};
pub(crate) use query::{ClosedConnection, ConnectionEvent, ConnectionQuery, ConnectionReport};
pub(crate) use requests::{AccountRequest, AccountResolver, CalloutRequest, InlineService};
pub(crate) use sync_times::{SyncCounts, SyncTimes, bound as sync_bound};
pub(crate) use transport::{Incoming, LeafHandover, Listener, Transport, Upgraded};

/// Bytes in the pipe between a server and a client in its own process, in each direction.
pub(crate) const IN_PROCESS_PIPE_BYTES: usize = 256 * 1024;

/// What a handle asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Stop,
    LameDuck,
}
