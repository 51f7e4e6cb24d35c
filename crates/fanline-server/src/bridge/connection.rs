//! A bridge's connection to its server, and the thread that serves it.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use fanline::{OnPanic, Subject};
use tokio::runtime;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::blocking;
use super::fault::{BridgeError, Fault, report};
use super::receivers::Receivers;
use crate::client::{Client, ClientError, ConnectOptions, Disconnect, Event, Outgoing, ServerInfo};
use crate::shared::Interest;
use crate::sync::{AtomicBool, Ordering};
use crate::{Auth, Handle};

/// Interval of checks for sources that nothing can observe any more.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for writing buffered messages when the bridge closes.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// Largest number of pending bytes up to which an observer can publish on the bridge's own thread. This
/// thread cannot wait for room, so further values are skipped, and reported as a fault.
const OWN_THREAD_PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;

thread_local! {
    /// Address of the bridge that this thread serves, or null. Each send compares it with its own bridge, to
    /// find out whether it runs on the bridge's thread. Comparing thread ids would cost more, because
    /// `thread::current` changes a reference count.
    static SERVED: Cell<*const Inner> = const { Cell::new(ptr::null()) };
}

/// Keeps a bridge open. Handles, bindings, and subscriptions own it together. When the last owner is dropped,
/// the connection writes its buffered messages, and its thread ends.
pub(super) struct Connection {
    pub(super) inner: Arc<Inner>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.inner.stop.notify_one();
    }
}

/// State that the parts of a bridge share.
pub(super) struct Inner {
    pub(super) client: Client,
    pub(super) receivers: Receivers,
    pub(super) faults: Subject<Fault>,
    /// Whether messages go directly from publisher to observer within this process, instead of through the
    /// server and back. This requires that the server neither changes the subject of a message nor rejects a
    /// message.
    pub(super) is_direct: bool,
    pub(super) interest: Interest,
    /// The longest protocol line, in bytes, that the server accepted when the bridge was opened. A longer
    /// line would close the connection for all users of the bridge.
    line_bytes_max: usize,
    /// Whether the server has stopped or closed the connection.
    pub(super) is_over: AtomicBool,
    runtime: runtime::Handle,
    stop: Notify,
    /// Notified when a receiver is added. While there are receivers, the bridge regularly removes those that
    /// nothing can observe any more.
    has_receivers: Notify,
}

/// Opens a connection and starts its thread.
pub(super) fn open(
    server: &Handle,
    options: &ConnectOptions,
) -> Result<Arc<Connection>, BridgeError> {
    let is_direct = !matches!(server.auth(), Auth::Directory(_));
    // The server must not report missing responders, because receivers in this process may respond.
    let options = options.clone().echo(!is_direct).no_responders(false);
    let server = server.clone();
    let (opened, is_open) = mpsc::channel();
    std::thread::Builder::new()
        .name("bridge".into())
        .spawn(move || serve(server, &options, is_direct, &opened))
        .map_err(BridgeError::Thread)?;
    let gone = |_| ClientError::Disconnected(Disconnect::Closed);
    let inner = is_open.recv().map_err(gone)??;
    Ok(Arc::new(Connection { inner }))
}

type Opened = mpsc::Sender<Result<Arc<Inner>, BridgeError>>;

/// Serves the connection until nothing needs it.
fn serve(server: Handle, options: &ConnectOptions, is_direct: bool, opened: &Opened) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    // An error is sent to the caller of `open`, which waits.
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return drop(opened.send(Err(BridgeError::Thread(error)))),
    };
    runtime.block_on(async {
        let client = match server.client_with(options).await {
            Ok(client) => client,
            Err(error) => return drop(opened.send(Err(error.into()))),
        };
        let interest = server.interest();
        let line_bytes_max = server.limits().control_line_bytes_max;
        drop(server);
        let inner = Arc::new(Inner {
            client,
            receivers: Receivers::default(),
            faults: Subject::new().on_observer_panic(OnPanic::Ignore),
            is_direct,
            interest,
            line_bytes_max,
            is_over: AtomicBool::new(false),
            runtime: runtime::Handle::current(),
            stop: Notify::new(),
            has_receivers: Notify::new(),
        });
        SERVED.set(Arc::as_ptr(&inner));
        let events = inner.client.events();
        if opened.send(Ok(Arc::clone(&inner))).is_ok() {
            inner.run(events).await;
        }
    });
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Returns whether the current thread serves the bridge, and must not block.
    pub(super) fn is_own_thread(&self) -> bool {
        ptr::eq(SERVED.get(), self)
    }

    /// Runs a future on the bridge's thread, and waits for its result.
    pub(super) fn call<T, F>(&self, what: F) -> Result<T, BridgeError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, BridgeError>> + Send + 'static,
    {
        if self.is_own_thread() {
            return Err(BridgeError::InsideObserver);
        }
        let (sender, answer) = oneshot::channel();
        self.spawn(async move {
            // Never fails, because the receiver waits below.
            let _ = sender.send(what.await);
        });
        let gone = |_| ClientError::Disconnected(self.end());
        blocking::wait(answer).map_err(gone)?
    }

    /// Runs a future on the bridge's thread.
    pub(super) fn spawn<F>(&self, what: F) -> tokio::task::AbortHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime.spawn(what).abort_handle()
    }

    /// Starts checks for receivers that nothing can observe any more.
    pub(super) fn note_receiver(&self) {
        self.has_receivers.notify_one();
    }

    /// Returns the reason of the disconnect.
    pub(super) fn end(&self) -> Disconnect {
        self.client.disconnect().unwrap_or(Disconnect::Closed)
    }

    pub(super) fn report(&self, fault: Fault) {
        report(&self.faults, fault);
    }

    /// Checks a message against the server's limits.
    pub(super) fn check(
        &self,
        message: &Outgoing<'_>,
        info: &ServerInfo,
    ) -> Result<(), ClientError> {
        message.check(info)?;
        self.check_line(message.line_bytes())
    }

    /// Checks the length of a protocol line, without its verb, against the server's limit.
    pub(super) fn check_line(&self, bytes: usize) -> Result<(), ClientError> {
        let bytes_max = self.line_bytes_max;
        match bytes > bytes_max {
            true => Err(ClientError::LineTooLong { bytes, bytes_max }),
            false => Ok(()),
        }
    }

    /// Sends encoded messages. If `waits`, blocks until there is room, except on the bridge's own thread.
    /// Returns whether the messages were sent.
    pub(super) fn send(&self, encoded: &[u8], waits: bool) -> Result<bool, ClientError> {
        if self.is_own_thread() {
            return self
                .client
                .send_within(OWN_THREAD_PENDING_BYTES_MAX, encoded);
        }
        if self.client.try_send(encoded)? {
            return Ok(true);
        }
        if !waits {
            return Ok(false);
        }
        blocking::wait(self.client.send(encoded)).map(|()| true)
    }

    async fn run(&self, mut events: broadcast::Receiver<Event>) {
        let mut sweeps = interval(SWEEP_INTERVAL);
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.notified() => {
                    // After the limit, buffered messages are lost.
                    let _ = timeout(DRAIN_LIMIT, self.client.drain()).await;
                    break;
                }
                event = events.recv() => match event {
                    Ok(Event::ServerError(text)) => self.report(Fault::Server(text)),
                    Ok(Event::Disconnected(_)) | Err(broadcast::error::RecvError::Closed) => break,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                },
                _ = sweeps.tick(), if !self.receivers.is_empty() => self.receivers.sweep(),
                () = self.has_receivers.notified() => {}
            }
        }
        // Relaxed: the flag protects no other data.
        self.is_over.store(true, Ordering::Relaxed);
        self.receivers.complete();
        self.report(Fault::Closed(self.end()));
        self.faults.complete();
    }
}
