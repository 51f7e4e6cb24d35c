//! Messages between the threads of a server: batches, commands, connections, and queries.
//!
//! This module contains only types and queues. It does not depend on the threads that use them.

mod command;
mod common;
mod mailbox;
mod panic_guard;
mod query;
mod requests;
mod sync_times;
mod transport;

pub(crate) use command::{Command, GatewayCommand, Reload, RouteChange};
pub(crate) use common::{ARRIVALS_MAX, Common, Listeners, WebSocketListener};
pub(crate) use mailbox::Mailbox;
pub use panic_guard::JetStreamAtWork;
pub(crate) use panic_guard::{PanicStop, PoisonCell, catch_panic};
pub(crate) use query::{ClosedConnection, ConnectionEvent, ConnectionQuery, ConnectionReport};
pub(crate) use requests::{AccountRequest, AccountResolver, CalloutRequest, InlineService};
pub(crate) use sync_times::{SyncCounts, SyncTimes, bound as sync_bound};
pub(crate) use transport::{GreetedRoute, Incoming, LeafHandover, Listener, Transport, Upgraded};

/// Capacity in bytes, in each direction, of the pipe between a server and a client in its own process.
pub(crate) const IN_PROCESS_PIPE_BYTES: usize = 256 * 1024;

/// An order to the control thread, mostly from a server's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Stop,
    LameDuck,
}
