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
use super::fault::{BridgeError, Fault, tell};
use super::receivers::Receivers;
use crate::client::{Client, ClientError, ConnectOptions, Disconnect, Event, Outgoing, ServerInfo};
use crate::shared::Interest;
use crate::sync::{AtomicBool, Ordering};
use crate::{Auth, Handle};

/// How often it is looked for sources that nobody holds any more.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How long what is buffered may take to be written at the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// What may wait to be written of what observers publish on the bridge's own thread, which cannot wait.
/// More: left out, and told as a fault.
const BEYOND_BYTES_MAX: usize = 64 * 1024 * 1024;

thread_local! {
    /// The bridge whose thread this is. Looked at for each message, where the thread's id would have to be
    /// counted as used each time.
    static SERVED: Cell<*const Inner> = const { Cell::new(ptr::null()) };
}

/// What keeps a bridge going: its handles, what is bound, and what is subscribed. With the last of
/// them the connection is drained and its thread ends.
pub(super) struct Line {
    pub(super) inner: Arc<Inner>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.inner.stop.notify_one();
    }
}

/// What a bridge's parts share.
pub(super) struct Inner {
    pub(super) client: Client,
    pub(super) receivers: Receivers,
    pub(super) faults: Subject<Fault>,
    /// Messages within this process go from publisher to observer, and the server sends no echo: so
    /// it is where the server would not do anything else with them, as rename or refuse them.
    pub(super) is_direct: bool,
    pub(super) interest: Interest,
    /// The longest line that the server read when the bridge was opened. A longer one would cost all that use
    /// the bridge their connection.
    line_bytes_max: usize,
    /// The server has stopped, or has closed the connection.
    pub(super) is_over: AtomicBool,
    runtime: runtime::Handle,
    stop: Notify,
    /// There is something to be swept.
    has_receivers: Notify,
}

/// Opens a connection and starts its thread.
pub(super) fn open(server: &Handle, options: &ConnectOptions) -> Result<Arc<Line>, BridgeError> {
    let is_direct = !matches!(server.auth(), Auth::Directory(_));
    // That nobody listens elsewhere is no news to those who are answered in this process.
    let options = options.clone().echo(!is_direct).no_responders(false);
    let server = server.clone();
    let (opened, is_open) = mpsc::channel();
    std::thread::Builder::new()
        .name("bridge".into())
        .spawn(move || serve(server, &options, is_direct, &opened))
        .map_err(BridgeError::Thread)?;
    let gone = |_| ClientError::Disconnected(Disconnect::Closed);
    let inner = is_open.recv().map_err(gone)??;
    Ok(Arc::new(Line { inner }))
}

type Opened = mpsc::Sender<Result<Arc<Inner>, BridgeError>>;

/// The thread's work, until nobody needs it.
fn serve(server: Handle, options: &ConnectOptions, is_direct: bool, opened: &Opened) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    // Whoever opens it waits for an answer.
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
    /// Whether this is the thread that observers must not hold up.
    pub(super) fn is_own_thread(&self) -> bool {
        ptr::eq(SERVED.get(), self)
    }

    /// Has something done on the bridge's thread, and waits for what comes of it.
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
            // Whoever waits has no way to give up.
            let _ = sender.send(what.await);
        });
        let gone = |_| ClientError::Disconnected(self.end());
        blocking::wait(answer).map_err(gone)?
    }

    /// Has something done on the bridge's thread.
    pub(super) fn spawn<F>(&self, what: F) -> tokio::task::AbortHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime.spawn(what).abort_handle()
    }

    /// There is a receiver that may be forgotten one day.
    pub(super) fn note_receiver(&self) {
        self.has_receivers.notify_one();
    }

    /// Why it is over, if it is.
    pub(super) fn end(&self) -> Disconnect {
        self.client.disconnect().unwrap_or(Disconnect::Closed)
    }

    pub(super) fn tell(&self, fault: Fault) {
        tell(&self.faults, fault);
    }

    /// Whether the server takes a message.
    pub(super) fn check(
        &self,
        message: &Outgoing<'_>,
        info: &ServerInfo,
    ) -> Result<(), ClientError> {
        message.check(info)?;
        self.check_line(message.line_bytes())
    }

    /// Whether the server reads a line of so many bytes, without its verb.
    pub(super) fn check_line(&self, bytes: usize) -> Result<(), ClientError> {
        let bytes_max = self.line_bytes_max;
        match bytes > bytes_max {
            true => Err(ClientError::LineTooLong { bytes, bytes_max }),
            false => Ok(()),
        }
    }

    /// Sends what was encoded. With `waits` it holds up this thread until there is room, except the
    /// bridge's own. Says whether it was sent.
    pub(super) fn send(&self, encoded: &[u8], waits: bool) -> Result<bool, ClientError> {
        if self.is_own_thread() {
            return self.client.send_within(BEYOND_BYTES_MAX, encoded);
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
                    // What takes longer than that is lost with the process, or is nobody's any more.
                    let _ = timeout(DRAIN_LIMIT, self.client.drain()).await;
                    break;
                }
                event = events.recv() => match event {
                    Ok(Event::ServerError(text)) => self.tell(Fault::Server(text)),
                    Ok(Event::Disconnected(_)) | Err(broadcast::error::RecvError::Closed) => break,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                },
                _ = sweeps.tick(), if !self.receivers.is_empty() => self.receivers.sweep(),
                () = self.has_receivers.notified() => {}
            }
        }
        // A flag alone: what it stands for is looked up.
        self.is_over.store(true, Ordering::Relaxed);
        self.receivers.complete();
        self.tell(Fault::Closed(self.end()));
        self.faults.complete();
    }
}
