//! The JetStream thread: waits for batches, timers, the disk, and commands, and calls the engine.

mod disk;
#[cfg(test)]
mod failing_disk_tests;
mod inline;
#[cfg(feature = "replication")]
mod lanes;
mod machine;
mod setup;
pub(crate) mod store_folder;
mod store_key;
mod syncer;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanline_engine::auth::Access;
use fanline_engine::jetstream::{
    AccountOverview, AccountSync, Handler, JetStreams, Now, OverviewWanted, Ports,
};
use fanline_engine::store::DiskError;
use fanline_engine::{Batch, BatchCursor, JetStreamService, ServerInfo};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tracing::warn;

use crate::ipc::{Common, JetStreamAtWork, Mailbox};
use crate::sync::Ordering;
use crate::threads::block_on;
use disk::OpenFiles;
use inline::SharedService;
pub(crate) use setup::starter;
use store_folder::{AccountsFolder, StoreFolder};
use syncer::{Job, SyncOf, SyncOfReplicas, Synced, Syncer};

/// Maximum number of times in a row that the service applies messages that it has sent to itself, before
/// other work runs.
const SELF_BATCHES_MAX: usize = 16;
/// Interval of checks whether a full mailbox has room again.
const RECHECK_INTERVAL: Duration = Duration::from_millis(1);

/// A command to the JetStream service.
pub(crate) enum Command {
    /// Notifies clients that the server stops, before their connections close. Replies when the notifications
    /// are posted to the shards.
    AnnounceStop(oneshot::Sender<()>),
    /// Applies pending batches, syncs everything, and ends the thread.
    Stop,
    /// Replaces the accounts.
    SetAccounts(Arc<Access>),
    /// Returns the state of accounts and streams.
    Overview(OverviewWanted, oneshot::Sender<Vec<AccountOverview>>),
}

/// Handle of the running JetStream thread, for the control thread.
pub(crate) struct Running {
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) thread: JoinHandle<io::Result<()>>,
}

/// Function that starts the JetStream service. It receives the server's INFO.
pub(crate) type StartJetStream = Box<dyn FnOnce(&Arc<Common>, &ServerInfo) -> io::Result<Running>>;

/// A handler on the JetStream thread. What it does beyond [`Handler`] concerns replicated streams.
pub(crate) trait ThreadHandler: Handler + Send {
    /// Performs what follows from handled events. Call it after [`settle`](Handler::settle), and before syncs start.
    fn advance(&mut self, _access: &Access, _now: Now, _ports: &mut dyn Ports) {}

    /// Returns the next sync that belongs to no stream. Call it until it returns `None`.
    fn poll_job(&mut self) -> Option<Job> {
        None
    }

    /// Takes the result of a sync of [`poll_job`](Self::poll_job).
    fn handle_replicas_synced(&mut self, _of: SyncOfReplicas, _result: Result<(), DiskError>) {}
}

impl ThreadHandler for JetStreams {}

/// Arguments for creating a JetStream handler.
pub(crate) struct Parts<'a> {
    /// The folders of stored streams; `None` if JetStream is in memory only.
    pub(crate) folders: Option<AccountsFolder>,
    /// A random secret, different at each start.
    pub(crate) seed: [u8; 32],
    pub(crate) now: Now,
    pub(crate) access: &'a Access,
    pub(crate) ports: &'a mut dyn Ports,
}

/// Starts the thread. Returns after the recovery of stored streams, so that every shard receives the
/// service's subscriptions before its first connection.
///
/// `open` gets the folder of the store, and returns the function that creates the handler.
pub(crate) fn start<H: ThreadHandler + 'static, F: FnOnce(Parts<'_>) -> H>(
    common: &Arc<Common>,
    store: Option<StoreFolder>,
    open: impl FnOnce(Option<&Path>, &OpenFiles) -> io::Result<F> + Send + 'static,
) -> io::Result<Running> {
    let (commands, inbox) = unbounded_channel();
    let (ready, is_ready) = channel();
    let common = Arc::clone(common);
    let run = move || {
        let _at_work = JetStreamAtWork::begin();
        block_on(run(common, store, open, inbox, ready))?
    };
    let thread = std::thread::Builder::new()
        .name("jetstream".into())
        .spawn(run)?;
    match is_ready.recv() {
        Ok(()) => Ok(Running { commands, thread }),
        // The thread has ended before it was ready.
        Err(_) => Err(match thread.join() {
            Ok(Err(error)) => error,
            _ => io::Error::other("the JetStream service has panicked"),
        }),
    }
}

async fn run<H: ThreadHandler + 'static, F: FnOnce(Parts<'_>) -> H>(
    common: Arc<Common>,
    store: Option<StoreFolder>,
    open: impl FnOnce(Option<&Path>, &OpenFiles) -> io::Result<F>,
    commands: UnboundedReceiver<Command>,
    ready: Sender<()>,
) -> io::Result<()> {
    let (done, synced) = unbounded_channel();
    let syncer = Syncer::start(&done, &common)?;
    let files = OpenFiles::default();
    let folders = store.as_ref().map(|store| store.accounts(&files));
    let folders = folders.transpose()?;
    let make = open(store.as_ref().map(StoreFolder::path), &files)?;
    let index = common.mailboxes.len() - 1;
    let at = u16::try_from(index).expect("at most SHARDS_MAX shards");
    let seed = crate::identity::new_seed();
    let access = common.config.auth.directory();
    let mut service = JetStreamService::new(at, &common.config, seed, |ports| {
        make(Parts {
            folders: folders.clone(),
            seed,
            now: now(&common),
            access: &access,
            ports,
        })
    });
    service.set_accounts(&access);
    let mut thread = Service {
        index,
        service,
        self_batch: Batch::default(),
        folders,
        files,
        syncer,
        done,
        was_synced: false,
        access,
        sleeps_until: None,
        common: Arc::clone(&common),
    };
    thread.send_results();
    let shared = Arc::new(SharedService::new(thread));
    let service: Weak<SharedService<H>> = Arc::downgrade(&shared);
    // `set` fails only if there is a service already, but a server starts only one.
    let _ = common.jetstream.set(service);
    // The receiver is gone if the starter has given up.
    let _ = ready.send(());
    // This is a separate task, not a part of this future. The tokio runtime polls for events before it polls
    // this future again, and each such poll is a system call.
    let task =
        tokio::task::spawn_local(async move { run_service(&shared, commands, synced).await });
    let ended = task.await;
    // Releases the folder last, because another server may use it from then on.
    drop(store);
    ended?.ok_or_else(|| io::Error::other("the JetStream service has panicked"))
}

fn now(common: &Common) -> Now {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Now {
        since_start: common.started.elapsed(),
        unix_nanos: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX),
    }
}

/// The JetStream service with the state of its thread.
struct Service<H> {
    index: usize,
    common: Arc<Common>,
    service: JetStreamService<H>,
    /// Buffer for the messages that the service has sent to itself, while it applies them.
    self_batch: Batch,
    folders: Option<AccountsFolder>,
    files: OpenFiles,
    syncer: Syncer,
    /// Sender for finished syncs that need no sync thread.
    done: UnboundedSender<Synced>,
    /// Whether a sync has finished whose effects are not applied yet.
    was_synced: bool,
    access: Arc<Access>,
    /// Time at which the JetStream thread wakes up, without an earlier event.
    sleeps_until: Option<Duration>,
}

/// Runs until the command to stop arrives. Holds no lock while it waits. Returns `None` after a panic.
async fn run_service<H: ThreadHandler>(
    shared: &SharedService<H>,
    mut commands: UnboundedReceiver<Command>,
    mut synced: UnboundedReceiver<Synced>,
) -> Option<()> {
    let common = shared.common();
    let _guard = common.panic_stop.guard();
    loop {
        let pause = shared.lock()?.pause();
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(Command::Overview(wanted, to)) => shared.lock()?.send_overview(wanted, to),
                Some(Command::SetAccounts(access)) => shared.lock()?.set_accounts(access),
                Some(Command::AnnounceStop(done)) => shared.lock()?.announce_stop(done),
                // If the control thread has ended, the service ends, too.
                Some(Command::Stop) | None => break,
            },
            Some(done) = synced.recv() => shared.lock()?.handle_synced(done),
            () = wait(common, pause) => {}
        }
        {
            let mut thread = shared.lock()?;
            while let Ok(done) = synced.try_recv() {
                thread.handle_synced(done);
            }
            thread.continue_after_sync();
            thread.process_pending();
        }
        wait_for_room(common, &commands).await;
    }
    shared.lock()?.close();
    Some(())
}

/// How long the thread waits before it continues to work.
#[derive(Clone, Copy)]
enum Pause {
    /// Not at all, except that other tasks run first.
    None,
    /// Until a batch arrives, but at most until this time.
    Until(Duration),
    /// Until a batch arrives.
    Endless,
}

/// Waits for a batch or the timer.
async fn wait(common: &Common, pause: Pause) {
    let mailbox_wait = common.mailboxes[common.mailboxes.len() - 1].wait();
    match pause {
        Pause::None => tokio::task::yield_now().await,
        Pause::Until(at) => {
            // Whichever event comes first, the thread continues to work.
            let _ = tokio::time::timeout_at(common.instant(at), mailbox_wait).await;
        }
        Pause::Endless => mailbox_wait.await,
    }
}

/// Waits while a shard's mailbox is full; shards never wait for the JetStream service. Stops waiting when the
/// command to stop arrives, because the shards have ended by then and will not empty their mailboxes.
async fn wait_for_room(common: &Common, commands: &UnboundedReceiver<Command>) {
    while commands.is_empty() && !commands.is_closed() && is_any_full(common) {
        tokio::time::sleep(RECHECK_INTERVAL).await;
    }
}

fn is_any_full(common: &Common) -> bool {
    let (_, shards) = common
        .mailboxes
        .split_last()
        .expect("the JetStream service has one");
    shards.iter().any(Mailbox::is_full)
}

impl<H: ThreadHandler> Service<H> {
    /// Returns how long the thread can wait.
    fn pause(&mut self) -> Pause {
        self.sleeps_until = self.service.next_timeout();
        match self.sleeps_until {
            _ if !self.service.outgoing(self.index).is_empty() => Pause::None,
            Some(at) => Pause::Until(at),
            None => Pause::Endless,
        }
    }

    /// Processes a batch on the shard's thread, if that is quick. Returns whether the batch was processed.
    fn try_run(&mut self, batch: &mut Batch) -> bool {
        let common = Arc::clone(&self.common);
        let mailbox = &common.mailboxes[self.index];
        // Pending batches may contain more work than the shard should do.
        if !mailbox.is_empty() || is_any_full(&common) || !self.service.is_quick(batch) {
            return false;
        }
        // The batch goes through the mailbox, so that batches that other shards post now are processed in
        // order.
        mailbox.post_without_wake(batch);
        self.process_pending();
        // Wakes the JetStream thread if work remains, or if a timer is due earlier than the thread knows.
        let next = self.service.next_timeout();
        let is_sooner = next.is_some_and(|at| self.sleeps_until.is_none_or(|until| at < until));
        if is_sooner || !self.service.outgoing(self.index).is_empty() {
            self.sleeps_until = next;
            mailbox.wake();
        }
        true
    }

    /// Writes and syncs everything.
    fn close(&mut self) {
        self.take_batches();
        self.send_results();
        let now = self.now();
        self.service
            .with(|handler, ports| handler.close(now, ports));
        self.post();
        self.report();
    }

    fn announce_stop(&mut self, done: oneshot::Sender<()>) {
        let now = self.now();
        self.service
            .with(|handler, ports| handler.notify_shutdown(now, ports));
        self.post();
        // The receiver is gone if the control thread has timed out.
        let _ = done.send(());
    }

    fn send_overview(&mut self, wanted: OverviewWanted, to: oneshot::Sender<Vec<AccountOverview>>) {
        let now = self.now();
        let overview = self
            .service
            .with(|handler, ports| handler.overview(wanted, now, ports));
        // The receiver is gone if the requester has timed out.
        let _ = to.send(overview);
    }

    fn set_accounts(&mut self, access: Arc<Access>) {
        let now = self.now();
        self.service.set_accounts(&access);
        self.service
            .with(|handler, ports| handler.set_accounts(&access, now, ports));
        self.access = access;
    }

    fn now(&self) -> Now {
        now(&self.common)
    }

    /// Applies pending batches and due timers, and sends the results.
    fn process_pending(&mut self) {
        self.take_batches();
        let now = self.now();
        if self
            .service
            .next_timeout()
            .is_some_and(|at| at <= now.since_start)
        {
            self.service.handle_timeout(now);
        }
        self.send_results();
    }

    /// Applies the batches that shards have posted.
    fn take_batches(&mut self) {
        let common = Arc::clone(&self.common);
        common.mailboxes[self.index].take(|batch| self.apply(batch));
    }

    fn apply(&mut self, batch: &Batch) {
        let mut cursor = BatchCursor::default();
        loop {
            let now = self.now();
            let receipt = self.service.apply(batch, &mut cursor, now);
            if !receipt.must_flush {
                return;
            }
            self.service.settle(now);
            self.send_output(now);
        }
    }

    /// Sends the results of applied batches and timers.
    fn send_results(&mut self) {
        let now = self.now();
        self.service.settle(now);
        self.apply_self_messages(now);
        self.send_output(now);
        self.report();
    }

    /// Applies messages that the service has sent to itself, and then the messages that result from them.
    /// Streams that feed each other in a cycle produce messages without end. So after [`SELF_BATCHES_MAX`]
    /// repetitions, the remaining messages wait until other work has run.
    fn apply_self_messages(&mut self, now: Now) {
        for _ in 0..SELF_BATCHES_MAX {
            let outgoing = self.service.outgoing(self.index);
            if outgoing.is_empty() {
                return;
            }
            let mut batch = std::mem::take(&mut self.self_batch);
            batch.append(outgoing);
            self.apply(&batch);
            batch.clear();
            self.self_batch = batch;
            self.service.settle(now);
        }
    }

    /// Sends all output. Starts the next sync before acknowledgements are sent, to keep the disk busy.
    fn send_output(&mut self, now: Now) {
        let access = Arc::clone(&self.access);
        self.service
            .with(|handler, ports| handler.advance(&access, now, ports));
        self.start_syncs(now.since_start);
        self.release_acks(now.since_start);
        self.post();
    }

    /// Passes requested syncs to the sync threads.
    fn start_syncs(&mut self, now: Duration) {
        while let Some(wanted) = self.service.with(|handler, _| handler.poll_sync(now)) {
            let (account, stream) = (wanted.account, wanted.sync.stream);
            let id = wanted.sync.request.id;
            match self.job(&wanted) {
                Ok(job) => self.syncer.submit(job),
                Err(error) => {
                    // Send the error in the same way as the result of a sync. If the handler were called
                    // here, it would request the same sync again, in an endless loop.
                    let of = SyncOf::Stream(account, stream, id);
                    let result = Err(error);
                    let _ = self.done.send(Synced { of, result });
                }
            }
        }
        while let Some(job) = self.service.with(|handler, _| handler.poll_job()) {
            self.syncer.submit(job);
        }
    }

    fn job(&self, wanted: &AccountSync) -> Result<Job, DiskError> {
        let AccountSync {
            account_name, sync, ..
        } = wanted;
        let folders = self.folders.as_ref().filter(|_| sync.request.folder);
        let folder = folders.map(|folders| folders.folder(account_name, &sync.name));
        // A file that was closed after the request needs no sync.
        let files = sync.request.files.iter();
        Ok(Job {
            of: SyncOf::Stream(wanted.account, sync.stream, sync.request.id),
            files: files.filter_map(|id| self.files.get(*id)).collect(),
            folders: folder.transpose()?.into_iter().collect(),
        })
    }

    /// Sends acknowledgements of messages that finished syncs have made durable.
    fn release_acks(&mut self, now: Duration) {
        self.service
            .with(|handler, ports| handler.release_acks(now, ports));
    }

    fn post(&mut self) {
        let mut has_announced = false;
        for (to, mailbox) in self.common.mailboxes.iter().enumerate() {
            let batch = self.service.announcements(to);
            if !batch.is_empty() {
                mailbox.post(batch);
                has_announced = true;
            }
        }
        if has_announced {
            // Release ordering, as for the interest counts of shards.
            self.common.interest.fetch_add(1, Ordering::Release);
        }
        for (to, mailbox) in self.common.mailboxes.iter().enumerate() {
            let batch = self.service.outgoing(to);
            if to != self.index && !batch.is_empty() {
                mailbox.post(batch);
            }
        }
    }

    /// Applies the result of a sync.
    fn handle_synced(&mut self, done: Synced) {
        self.was_synced = true;
        let now = self.now().since_start;
        let result = done.result;
        self.service.with(|handler, _| match done.of {
            SyncOf::Stream(account, stream, id) => {
                handler.handle_synced(account, stream, id, result, now);
            }
            SyncOf::Replicas(of) => handler.handle_replicas_synced(of, result),
        });
    }

    /// After a sync has finished, starts the next sync and sends the acknowledgements of the finished one,
    /// before batches are processed.
    fn continue_after_sync(&mut self) {
        if std::mem::take(&mut self.was_synced) {
            self.send_output(self.now());
        }
    }

    fn report(&mut self) {
        for problem in self.service.with(|handler, _| handler.take_problems()) {
            warn!("JetStream: {problem}");
        }
    }
}
