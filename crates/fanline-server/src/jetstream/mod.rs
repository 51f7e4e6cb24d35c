//! The JetStream thread: it waits for mail, time, the disk and commands, and lets the engine decide.

mod disk;
#[cfg(test)]
mod failing_disk_tests;
mod help;
mod machine;
mod setup;
pub(crate) mod store_folder;
mod store_key;
mod sync_times;
mod syncer;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanline_engine::auth::Access;
use fanline_engine::jetstream::{
    AccountOverview, AccountSync, Handler, Now, OverviewWanted, Ports,
};
use fanline_engine::store::DiskError;
use fanline_engine::{Batch, JetStreamService, Place};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tracing::warn;

use crate::panic_guard::JetStreamAtWork;
use crate::shell::{self, Common, Mailbox};
use crate::sync::Ordering;
use disk::OpenFiles;
pub(crate) use help::Helped;
use help::Shared;
pub(crate) use setup::starter;
use store_folder::AccountsFolder;
use store_folder::StoreFolder;
pub use store_key::StoreKeyError;
pub(crate) use sync_times::{SyncCounts, SyncTimes, bound as sync_bound};
use syncer::{Job, Synced, Syncer};

/// How often what the JetStream service says to itself is heard before it looks at anything else.
const OWN_ROUNDS_MAX: usize = 16;
/// How often it is looked whether a shard that is behind has caught up.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What the control thread asks of the JetStream service.
pub(crate) enum Command {
    /// Tell clients that the server stops, while they can be told; answered when it is on its way.
    SayGoodbye(oneshot::Sender<()>),
    /// Take what has come so far, bring everything to the disk, and end.
    Stop,
    /// There are other accounts from now on.
    SetAccounts(Arc<Access>),
    /// Tell what there is.
    Tell(OverviewWanted, oneshot::Sender<Vec<AccountOverview>>),
}

/// The JetStream thread, as the control thread has it.
pub(crate) struct Running {
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) thread: JoinHandle<io::Result<()>>,
}

/// What the work is made of.
pub(crate) struct Parts<'a> {
    /// Where streams are kept; without it, only in memory.
    pub(crate) folders: Option<AccountsFolder>,
    /// Differs from run to run.
    pub(crate) seed: [u8; 32],
    pub(crate) now: Now,
    pub(crate) access: &'a Access,
    pub(crate) ports: &'a mut dyn Ports,
}

/// Starts the thread; returns when all that was kept is there, and every shard will have heard what
/// is wanted before it hears from a connection.
pub(crate) fn start<H: Handler + Send + 'static>(
    common: &Arc<Common>,
    store: Option<StoreFolder>,
    make: impl FnOnce(Parts<'_>) -> H + Send + 'static,
) -> io::Result<Running> {
    let (commands, inbox) = unbounded_channel();
    let (ready, is_ready) = channel();
    let common = Arc::clone(common);
    let run = move || {
        let _at_work = JetStreamAtWork::begin();
        shell::block_on(run(common, store, make, inbox, ready))?
    };
    let thread = std::thread::Builder::new()
        .name("jetstream".into())
        .spawn(run)?;
    match is_ready.recv() {
        Ok(()) => Ok(Running { commands, thread }),
        // It has ended instead.
        Err(_) => Err(match thread.join() {
            Ok(Err(error)) => error,
            _ => io::Error::other("the JetStream service has panicked"),
        }),
    }
}

async fn run<H: Handler + Send + 'static>(
    common: Arc<Common>,
    store: Option<StoreFolder>,
    make: impl FnOnce(Parts<'_>) -> H,
    commands: UnboundedReceiver<Command>,
    ready: Sender<()>,
) -> io::Result<()> {
    let (done, synced) = unbounded_channel();
    let syncer = Syncer::start(&done, &common)?;
    let files = OpenFiles::default();
    let folders = store.as_ref().map(|store| store.accounts(&files));
    let folders = folders.transpose()?;
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
        own: Batch::default(),
        folders,
        files,
        syncer,
        done,
        was_synced: false,
        sleeps_until: None,
        common: Arc::clone(&common),
    };
    thread.end_round();
    let shared = Arc::new(Shared::new(thread));
    let helped: Weak<Shared<H>> = Arc::downgrade(&shared);
    // There is one JetStream service.
    let _ = common.jetstream.set(helped);
    // Whoever started it may have lost patience.
    let _ = ready.send(());
    // A task of its own, for the reason that a shard's have.
    let task = tokio::task::spawn_local(async move { work(&shared, commands, synced).await });
    let ended = task.await;
    // Only now may another server have it.
    drop(store);
    ended?.ok_or_else(|| io::Error::other("it has panicked in the middle of its work"))
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

/// The JetStream service with all that its thread has.
struct Service<H> {
    index: usize,
    common: Arc<Common>,
    service: JetStreamService<H>,
    /// What it has said to itself, while that is heard.
    own: Batch,
    folders: Option<AccountsFolder>,
    files: OpenFiles,
    syncer: Syncer,
    /// Where syncs are reported.
    done: UnboundedSender<Synced>,
    /// Whether one was, and what follows has not been done.
    was_synced: bool,
    /// When its thread will look at it again by itself.
    sleeps_until: Option<Duration>,
}

/// Works until it receives the command to stop. The lock is free whenever there is something to wait for. Returns
/// `None` after a panic.
async fn work<H: Handler + Send>(
    shared: &Shared<H>,
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
                Some(Command::Tell(wanted, to)) => shared.lock()?.tell(wanted, to),
                Some(Command::SetAccounts(access)) => shared.lock()?.set_accounts(&access),
                Some(Command::SayGoodbye(done)) => shared.lock()?.say_goodbye(done),
                // Without a control thread there is nobody to work for.
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
            thread.go_on();
            thread.round();
        }
        wait_for_room(common, &commands).await;
    }
    shared.lock()?.close();
    Some(())
}

/// How long there is nothing to do.
#[derive(Clone, Copy)]
enum Pause {
    /// Only until others have had their turn.
    None,
    /// Until there is mail, or this time has come.
    Until(Duration),
    /// Until there is mail.
    Endless,
}

/// Waits for mail and time.
async fn wait(common: &Common, pause: Pause) {
    let mail = common.mailboxes[common.mailboxes.len() - 1].wait();
    match pause {
        Pause::None => tokio::task::yield_now().await,
        Pause::Until(at) => {
            // It makes no difference which of them it was.
            let _ = tokio::time::timeout_at(common.instant(at), mail).await;
        }
        Pause::Endless => mail.await,
    }
}

/// Waits while a shard has not got round to what it was sent. Shards never wait for the JetStream service; when it
/// is told to stop they have ended, and never will.
async fn wait_for_room(common: &Common, commands: &UnboundedReceiver<Command>) {
    while commands.is_empty() && !commands.is_closed() && is_any_full(common) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn is_any_full(common: &Common) -> bool {
    let (_, shards) = common
        .mailboxes
        .split_last()
        .expect("the JetStream service has one");
    shards.iter().any(Mailbox::is_full)
}

impl<H: Handler + Send> Service<H> {
    /// How long its thread has nothing to do from now on.
    fn pause(&mut self) -> Pause {
        self.sleeps_until = self.service.next_timeout();
        match self.sleeps_until {
            _ if !self.service.outgoing(self.index).is_empty() => Pause::None,
            Some(at) => Pause::Until(at),
            None => Pause::Endless,
        }
    }

    /// Does a shard's work on the shard's own thread, if it is quick.
    fn help(&mut self, batch: &mut Batch) -> bool {
        let common = Arc::clone(&self.common);
        let mailbox = &common.mailboxes[self.index];
        // What waits may be more than a shard has time for.
        if !mailbox.is_empty() || is_any_full(&common) || !self.service.is_quick(batch) {
            return false;
        }
        // Through the mailbox for the sake of what others may post meanwhile.
        mailbox.post_unheard(batch);
        self.round();
        // What is left, and what is due before it is looked for, is for the JetStream thread.
        let next = self.service.next_timeout();
        let is_sooner = next.is_some_and(|at| self.sleeps_until.is_none_or(|until| at < until));
        if is_sooner || !self.service.outgoing(self.index).is_empty() {
            self.sleeps_until = next;
            mailbox.ring();
        }
        true
    }

    /// Brings everything to the disk.
    fn close(&mut self) {
        self.take_mail();
        self.end_round();
        let now = self.now();
        self.service
            .with(|handler, ports| handler.close(now, ports));
        self.post();
        self.report();
    }

    fn say_goodbye(&mut self, done: oneshot::Sender<()>) {
        let now = self.now();
        self.service
            .with(|handler, ports| handler.notify_shutdown(now, ports));
        self.post();
        // Whoever stops the server may have lost patience.
        let _ = done.send(());
    }

    fn tell(&mut self, wanted: OverviewWanted, to: oneshot::Sender<Vec<AccountOverview>>) {
        let now = self.now();
        let told = self
            .service
            .with(|handler, ports| handler.overview(wanted, now, ports));
        // Whoever asked may have lost patience.
        let _ = to.send(told);
    }

    fn set_accounts(&mut self, access: &Access) {
        let now = self.now();
        self.service.set_accounts(access);
        self.service
            .with(|handler, ports| handler.set_accounts(access, now, ports));
    }

    fn now(&self) -> Now {
        now(&self.common)
    }

    /// Does all that there is to do.
    fn round(&mut self) {
        self.take_mail();
        let now = self.now();
        if self
            .service
            .next_timeout()
            .is_some_and(|at| at <= now.since_start)
        {
            self.service.handle_timeout(now);
        }
        self.end_round();
    }

    /// Lets the engine know what the shards have said so far.
    fn take_mail(&mut self) {
        let common = Arc::clone(&self.common);
        common.mailboxes[self.index].take(|batch| self.apply(batch));
    }

    fn apply(&mut self, batch: &Batch) {
        let mut place = Place::default();
        loop {
            let now = self.now();
            let receipt = self.service.apply(batch, &mut place, now);
            if !receipt.must_flush {
                return;
            }
            self.service.settle(now);
            self.hand_out(now);
        }
    }

    /// Lets go out what a round has gathered.
    fn end_round(&mut self) {
        let now = self.now();
        self.service.settle(now);
        self.hear_itself(now);
        self.hand_out(now);
        self.report();
    }

    /// Applies what it has published to itself, and what follows from that. Streams that feed each
    /// other in a circle have no end of it: they go on in the next round.
    fn hear_itself(&mut self, now: Now) {
        for _ in 0..OWN_ROUNDS_MAX {
            let said = self.service.outgoing(self.index);
            if said.is_empty() {
                return;
            }
            let mut own = std::mem::take(&mut self.own);
            own.append(said);
            self.apply(&own);
            own.clear();
            self.own = own;
            self.service.settle(now);
        }
    }

    /// Hands out what a round has brought about. The disk is busy with the next sync before acknowledgements go out.
    fn hand_out(&mut self, now: Now) {
        self.start_syncs(now.since_start);
        self.release_acks(now.since_start);
        self.post();
    }

    /// Hands what is to be synced to the threads that wait for the disk.
    fn start_syncs(&mut self, now: Duration) {
        while let Some(wanted) = self.service.with(|handler, _| handler.poll_sync(now)) {
            let (account, stream) = (wanted.account, wanted.sync.stream);
            let id = wanted.sync.request.id;
            match self.job(&wanted) {
                Ok(job) => self.syncer.give(job),
                Err(error) => {
                    // Not at once: the handler may request it again for as long as it fails.
                    let _ = self.done.send(Synced {
                        account,
                        stream,
                        id,
                        result: Err(error),
                    });
                }
            }
        }
    }

    fn job(&self, wanted: &AccountSync) -> Result<Job, DiskError> {
        let AccountSync {
            account_name, sync, ..
        } = wanted;
        let folders = self.folders.as_ref().filter(|_| sync.request.folder);
        let folder = folders.map(|folders| folders.folder(account_name, &sync.name));
        // A file that was closed since is no longer needed.
        let files = sync.request.files.iter();
        Ok(Job {
            account: wanted.account,
            stream: sync.stream,
            id: sync.request.id,
            files: files.filter_map(|id| self.files.get(*id)).collect(),
            folder: folder.transpose()?,
        })
    }

    /// Sends the acknowledgements of what finished syncs have made durable.
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
            // Release, as where shards count theirs.
            self.common.interest.fetch_add(1, Ordering::Release);
        }
        for (to, mailbox) in self.common.mailboxes.iter().enumerate() {
            let batch = self.service.outgoing(to);
            if to != self.index && !batch.is_empty() {
                mailbox.post(batch);
            }
        }
    }

    /// Takes the result of a sync.
    fn handle_synced(&mut self, done: Synced) {
        self.was_synced = true;
        let now = self.now().since_start;
        let Synced {
            account,
            stream,
            id,
            result,
        } = done;
        self.service
            .with(|handler, _| handler.handle_synced(account, stream, id, result, now));
    }

    /// After a sync, the disk that has become free gets what has waited for it, and what is durable now is acknowledged,
    /// before more mail is taken.
    fn go_on(&mut self) {
        if std::mem::take(&mut self.was_synced) {
            self.hand_out(self.now());
        }
    }

    fn report(&mut self) {
        for problem in self.service.with(|handler, _| handler.take_problems()) {
            warn!("JetStream: {problem}");
        }
    }
}
