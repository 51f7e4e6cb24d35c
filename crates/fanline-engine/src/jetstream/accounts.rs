//! The JetStream instances of a server, one for each account. They share only the server's limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::account::{JetStream, Settings};
use super::commit::StreamSync;
use super::folders::Folders;
use super::limits::{Reserved, Used};
use super::overview::{Overview, OverviewWanted};
use super::peers::Peers;
use super::streams::{OWN_PREFIX, StreamId};
use super::{ApiError, GroupState, Handler, Message, Now, Ports, StreamConfig, api};
use crate::auth::{Access, Account, AccountId, ImportKind, TraceTo, covers};
use crate::limits::AccountLimits;
use crate::random::{Purpose, Random, Seed};
use crate::store::{DiskError, Record, SyncId};
use crate::timers::Timers;
use crate::trace::TraceRequest;

/// Subject of JetStream requests, in every account.
const API: &str = "$JS.API.>";
const API_PREFIX: &[u8] = b"$JS.API.";

/// Subject of the account information request. An account that imports it uses another account's API.
const ACCOUNT_INFO: &str = "$JS.API.INFO";

/// Folders with the streams of each account.
pub trait AccountFolders: Send {
    /// Returns whether this account has stored streams.
    fn has(&self, account: &str) -> bool;

    /// Returns the folders of this account's streams, creating a parent folder if necessary.
    ///
    /// # Errors
    /// The operating system's error.
    fn of(&mut self, account: &str) -> Result<Box<dyn Folders>, DiskError>;
}

/// A sync request for a stream of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSync {
    /// Id to pass to [`Handler::handle_synced`].
    pub account: AccountId,
    /// Name of the account and of its folder.
    pub account_name: String,
    /// Sync request of the stream.
    pub sync: StreamSync,
}

/// Totals of an account's JetStream.
#[derive(Clone, Debug)]
pub struct AccountOverview {
    /// Name of the account.
    pub name: String,
    /// Limits of the account.
    pub limits: AccountLimits,
    /// Totals, and streams if requested.
    pub overview: Overview,
}

/// The JetStream instances of all accounts that may use JetStream. An instance is created on first use, or at
/// the start of the server if the account has stored streams.
///
/// The methods of this type are called in the same order as those of [`JetStream`].
pub struct JetStreams {
    /// Settings for all accounts, except the account name and the limits, which each account has for itself.
    settings: Settings,
    folders: Option<Box<dyn AccountFolders>>,
    /// Generates a seed for each [`JetStream`] that is created.
    random: Random,
    entries: Vec<AccountEntry>,
    used: Used,
    /// Accounts with events since the last call of `settle`.
    touched: BTreeSet<AccountId>,
    /// Accounts that may have something to sync.
    unsynced: BTreeSet<AccountId>,
    /// Accounts that have nothing left to sync, and may have acknowledgements to release.
    unreleased: Vec<AccountId>,
    timers: Timers<AccountId>,
    problems: Vec<String>,
    /// The other servers, in a cluster.
    pub(super) peers: Option<Box<Peers>>,
    /// The servers that replicate the streams.
    pub(super) group: Arc<GroupState>,
    /// Whether another server must lead, and the name of the preferred one.
    pub(super) step_down: Option<Option<String>>,
}

/// State of one account.
struct AccountEntry {
    name: String,
    state: State,
    used: Used,
    /// Where to send traces of messages that belong to a trace begun by another system.
    trace: Option<TraceTo>,
    /// Whether another server may answer the account's API requests over a leaf connection. If so, and
    /// JetStream is disabled here, this server ignores these requests instead of refusing them.
    may_be_served_remotely: bool,
    /// Whether the account is subscribed to API requests, in order to answer or refuse them.
    has_api: bool,
}

#[derive(Default)]
enum State {
    /// JetStream is disabled for the account, and requests are refused.
    #[default]
    Refused,
    /// JetStream is enabled but not created yet.
    Granted(AccountLimits),
    Running(Box<JetStream>),
}

impl JetStreams {
    /// Creates the registry without accounts. If `folders` is `None`, requests to create streams on disk are
    /// refused. `seed` makes generated names differ from those of other runs.
    pub fn new(
        settings: Settings,
        folders: Option<Box<dyn AccountFolders>>,
        seed: impl Into<Seed>,
    ) -> Self {
        let cluster = settings.cluster.clone();
        let peers = cluster.map(|cluster| Box::new(Peers::new(&settings.server_id, cluster)));
        JetStreams {
            peers,
            settings,
            folders,
            random: Random::new(seed.into(), Purpose::Accounts),
            entries: Vec::new(),
            used: Used::default(),
            touched: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            unreleased: Vec::new(),
            timers: Timers::default(),
            problems: Vec::new(),
            group: Arc::default(),
            step_down: None,
        }
    }

    /// Subscribes to the API's requests in an account, or unsubscribes from them.
    fn set_api(&mut self, account: AccountId, has_api: bool, ports: &mut dyn Ports) {
        while self.entries.len() <= account.index() {
            self.entries.push(AccountEntry::default());
        }
        let entry = &mut self.entries[account.index()];
        if std::mem::replace(&mut entry.has_api, has_api) == has_api {
            return;
        }
        let port = ports.of(account);
        let domain = self.settings.domain.as_ref();
        let of_domain = domain.map(|domain| format!("$JS.{domain}.API.>"));
        for filter in [API].into_iter().chain(of_domain.as_deref()) {
            match has_api {
                true => port.subscribe(filter.as_bytes()),
                false => port.unsubscribe(filter.as_bytes()),
            }
        }
    }

    /// Sets the limits of an account; `None` disables JetStream and closes the account's streams, without
    /// deleting them. When JetStream is enabled, stored streams are recovered.
    fn grant(
        &mut self,
        account: AccountId,
        name: &str,
        limits: Option<AccountLimits>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let entry = &mut self.entries[account.index()];
        entry.name = name.into();
        match (&mut entry.state, limits) {
            (State::Running(jetstream), Some(limits)) => jetstream.set_limits(limits),
            (State::Running(_), None) => self.close_account(account, now, ports),
            (state, Some(limits)) => {
                *state = State::Granted(limits);
                let folders = self.folders.as_ref();
                if folders.is_some_and(|folders| folders.has(name)) {
                    self.start(account, now, ports);
                }
            }
            (state, None) => *state = State::Refused,
        }
    }

    /// Creates the JetStream of an account for which it is enabled.
    pub(super) fn start(&mut self, account: AccountId, now: Now, ports: &mut dyn Ports) {
        let entry = &mut self.entries[account.index()];
        let State::Granted(limits) = &entry.state else {
            return;
        };
        let mut settings = self.settings.clone();
        settings.account.clone_from(&entry.name);
        settings.limits = limits.clone();
        let folders = self
            .folders
            .as_mut()
            .map(|folders| folders.of(&entry.name))
            .transpose();
        let folders = folders.unwrap_or_else(|error| {
            let name = &entry.name;
            let problem = format!("account {name}: cannot open the folder of its streams: {error}");
            self.problems.push(problem);
            None
        });
        let seed = self.random.seed();
        let mut jetstream = JetStream::new(settings, folders, seed, now, ports.of(account));
        jetstream.group = Arc::clone(&self.group);
        entry.state = State::Running(Box::new(jetstream));
        self.touched.insert(account);
    }

    /// Syncs and drops the account's JetStream. It answers no more requests.
    fn close_account(&mut self, account: AccountId, now: Now, ports: &mut dyn Ports) {
        let entry = &mut self.entries[account.index()];
        if let State::Running(mut jetstream) = std::mem::take(&mut entry.state) {
            jetstream.unsubscribe_all(ports.of(account));
            jetstream.close(now, ports.of(account));
            self.problems.extend(jetstream.take_problems());
            self.timers.set(account, None);
            self.used = self.used.without(std::mem::take(&mut entry.used));
        }
    }

    /// Ends all subscriptions, and waiting pull requests with `409 Leadership Change`, because another server leads the
    /// streams now. Writes nothing, and sends no other message. Drop the object afterward: the changes that it has not
    /// confirmed may or may not take effect.
    pub fn retire(&mut self, now: Now, ports: &mut dyn Ports) {
        for account in self.account_ids() {
            self.set_api(account, false, ports);
            self.set_delegate(account, false, ports);
            let entry = &mut self.entries[account.index()];
            if let State::Running(mut jetstream) = std::mem::take(&mut entry.state) {
                jetstream.retire(now, ports.of(account));
            }
        }
        self.retract_from_peers(ports);
    }

    /// Returns the ids of all accounts.
    fn account_ids(&self) -> impl Iterator<Item = AccountId> + use<> {
        (0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).map(AccountId)
    }

    pub(super) fn running(&self, account: AccountId) -> Option<&JetStream> {
        match &self.entries.get(account.index())?.state {
            State::Running(jetstream) => Some(jetstream),
            _ => None,
        }
    }

    /// Returns the JetStream of an account, and marks the account for the next call of `settle`.
    pub(super) fn touch(&mut self, account: AccountId) -> Option<&mut JetStream> {
        let entry = self.entries.get_mut(account.index())?;
        let State::Running(jetstream) = &mut entry.state else {
            return None;
        };
        self.touched.insert(account);
        jetstream.set_elsewhere(self.used.without(entry.used));
        Some(jetstream)
    }

    /// Refuses a message that a stream would store. Handles other messages.
    pub fn refuse_publish(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        error: &ApiError,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let refusing = self
            .touch(account)
            .filter(|_| !message.subject.starts_with(OWN_PREFIX));
        match refusing.and_then(|jetstream| jetstream.stream_of(message.subject)) {
            Some(stream) => stream.refuse(message, error, ports.of(account)),
            None => self.handle(account, message, now, ports),
        }
    }

    /// Returns whether a message to a subject may concern a stream here. A message that may not can be omitted.
    pub fn takes(&self, account: AccountId, subject: &[u8]) -> bool {
        let is_request = self.request_path(subject).is_some();
        let is_transfer = subject.starts_with(b"$JS.SNAPSHOT.");
        is_request
            || is_transfer
            || subject.starts_with(b"$SYS.")
            || self
                .running(account)
                .is_some_and(|jetstream| jetstream.takes(subject))
    }

    /// Returns the JetStream of an account, for a change that needs no `settle`.
    pub(super) fn running_mut(&mut self, account: AccountId) -> Option<&mut JetStream> {
        match &mut self.entries.get_mut(account.index())?.state {
            State::Running(jetstream) => Some(jetstream),
            _ => None,
        }
    }

    /// Calls `act` for the JetStream of each account.
    pub(super) fn each_running(&mut self, mut act: impl FnMut(&mut JetStream)) {
        for entry in &mut self.entries {
            if let State::Running(jetstream) = &mut entry.state {
                act(jetstream);
            }
        }
    }

    /// Returns the name of an account.
    pub(super) fn name_of(&self, account: AccountId) -> &str {
        let entry = self.entries.get(account.index());
        entry.map_or("", |entry| &entry.name)
    }

    /// Returns the account of this name.
    pub(super) fn account_named(&self, name: &str) -> Option<AccountId> {
        let at = self.entries.iter().position(|entry| entry.name == name)?;
        Some(AccountId(u32::try_from(at).ok()?))
    }

    /// Returns whether an account may use JetStream.
    pub(super) fn is_enabled(&self, account: AccountId) -> bool {
        let entry = self.entries.get(account.index());
        entry.is_some_and(|entry| !matches!(entry.state, State::Refused))
    }

    /// Returns the domain of this server.
    pub(super) fn domain(&self) -> Option<&str> {
        self.settings.domain.as_deref()
    }

    /// Returns the part of a request's subject after the prefix of the API.
    pub(super) fn request_path<'a>(&self, subject: &'a [u8]) -> Option<&'a str> {
        let path = subject.strip_prefix(API_PREFIX).or_else(|| {
            let domain = self.settings.domain.as_deref()?;
            let rest = subject.strip_prefix(OWN_PREFIX)?;
            rest.strip_prefix(domain.as_bytes())?.strip_prefix(b".API.")
        });
        std::str::from_utf8(path?).ok()
    }

    /// Reports a problem that is not reported to any client.
    pub(super) fn report(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Returns whether an account has a stream of this name, even an unreadable one.
    pub(super) fn has_stream_in(&self, account: AccountId, name: &str) -> bool {
        let jetstream = self.running(account);
        jetstream.is_some_and(|own| own.has_stream(name) || own.unrecovered.contains_key(name))
    }

    /// Returns the configuration of a stream.
    pub(super) fn config_of(&self, account: AccountId, name: &str) -> Option<&StreamConfig> {
        let streams = &self.running(account)?.streams;
        Some(streams.get(streams.find(name)?)?.config())
    }

    /// Returns whether a stream with another name stores a subject that one of the filters matches.
    pub(super) fn stores_any(&self, account: AccountId, filters: &[String], name: &str) -> bool {
        let Some(jetstream) = self.running(account) else {
            return false;
        };
        let streams = &jetstream.streams;
        // Filters that take too long to compare count as an overlap.
        (streams.is_any_stored(filters, streams.find(name))).unwrap_or(true)
    }

    /// Handles a message without other servers.
    pub(super) fn handle_here(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let Some(entry) = self.entries.get(account.index()) else {
            return;
        };
        match entry.state {
            // Another server or account answers the request.
            State::Refused if entry.may_be_served_remotely || !entry.has_api => return,
            State::Refused => {
                if let Some(path) = message.subject.strip_prefix(API_PREFIX) {
                    let error = ApiError::NOT_ENABLED_FOR_ACCOUNT;
                    api::refuse(path, message, &error, ports.of(account));
                }
                return;
            }
            State::Granted(_) => self.start(account, now, ports),
            State::Running(_) => {}
        }
        // Only requests that create or change a stream need the reservations of other accounts.
        if message.subject.starts_with(b"$JS.API.STREAM.") {
            let reserved = self.reserved_elsewhere(account);
            if let Some(jetstream) = self.touch(account) {
                jetstream.set_reserved_elsewhere(reserved);
            }
        }
        if let Some(jetstream) = self.touch(account) {
            jetstream.handle(message, now, ports.of(account));
        }
    }

    /// Returns the bytes that other accounts have reserved.
    fn reserved_elsewhere(&self, account: AccountId) -> Reserved {
        let mut reserved = Reserved::default();
        for (at, entry) in self.entries.iter().enumerate() {
            if let State::Running(jetstream) = &entry.state
                && at != account.index()
            {
                reserved.join(jetstream.reserved(None));
            }
        }
        reserved
    }
}

impl Default for AccountEntry {
    fn default() -> Self {
        AccountEntry {
            name: String::new(),
            state: State::Refused,
            used: Used::default(),
            trace: None,
            may_be_served_remotely: false,
            has_api: false,
        }
    }
}

/// Returns whether an account imports the API of another account.
fn imports_api(account: &Account) -> bool {
    let mut imports = account.imports.iter();
    imports.any(|import| {
        matches!(import.kind, ImportKind::Service { .. }) && covers(import.local(), ACCOUNT_INFO)
    })
}

impl Handler for JetStreams {
    fn handle(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        if self.peers.is_none() || !self.handle_for_peers(account, message, now, ports) {
            self.handle_here(account, message, now, ports);
        }
    }

    fn handle_run(
        &mut self,
        account: AccountId,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let Some(first) = run.next() else {
            return;
        };
        self.handle(account, &first, now, ports);
        let is_request = account == AccountId::SYSTEM && self.peers.is_some();
        if is_request || first.subject.starts_with(OWN_PREFIX) {
            run.for_each(|message| self.handle(account, &message, now, ports));
        } else if let Some(jetstream) = self.touch(account) {
            jetstream.handle_run(run, now, ports.of(account));
        }
    }

    fn handle_acks(
        &mut self,
        account: AccountId,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        match self.touch(account) {
            Some(jetstream) => jetstream.handle_acks(run, now, ports.of(account)),
            None => run.for_each(|message| self.handle(account, &message, now, ports)),
        }
    }

    fn trace(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        index: u16,
        now: Now,
        ports: &mut dyn Ports,
    ) -> bool {
        let entry = self.entries.get(account.index());
        let by_parent = entry.and_then(|entry| entry.trace.clone());
        // The shard that received the message has already applied the sampling percentage. The random number
        // 0 passes every percentage, so it is not applied again.
        let Some(request) = TraceRequest::read(message.headers, by_parent.as_ref(), 0) else {
            return true;
        };
        let is_only = request.is_only;
        if let Some(jetstream) = self.touch(account) {
            jetstream.trace(request, message, index, now, ports.of(account));
        }
        !is_only
    }

    fn handle_interest(
        &mut self,
        account: AccountId,
        filter: &[u8],
        _: bool,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        if let Some(jetstream) = self.touch(account) {
            jetstream.handle_interest(filter, now, ports.of(account));
        }
    }

    fn handle_peer_interest(&mut self, account: AccountId, filter: &[u8], present: bool) {
        if self.peers.is_some() {
            self.note_peer_interest(account, filter, present);
        }
    }

    fn handle_timeout(&mut self, now: Now, ports: &mut dyn Ports) {
        self.handle_due_peers(now, ports);
        while let Some(account) = self.timers.pop(now.since_start) {
            if let Some(jetstream) = self.touch(account) {
                jetstream.handle_timeout(now, ports.of(account));
            }
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let of_peers = self.peers.as_ref().and_then(|peers| peers.next_timeout());
        self.timers.next().into_iter().chain(of_peers).min()
    }

    fn is_quick(&self, account: AccountId, subject: &[u8]) -> bool {
        self.running(account)
            .is_some_and(|jetstream| jetstream.is_quick(subject))
    }

    fn read(
        &mut self,
        account: AccountId,
        stream: &str,
        filters: &[&[u8]],
        from: u64,
        each: &mut dyn FnMut(&Record<'_>) -> bool,
    ) {
        let entry = self.entries.get_mut(account.index());
        if let Some(AccountEntry {
            state: State::Running(jetstream),
            ..
        }) = entry
        {
            jetstream.read(stream, filters, from, each);
        }
    }

    fn has_stream(&self, account: AccountId, stream: &str) -> bool {
        let jetstream = self.running(account);
        jetstream.is_some_and(|jetstream| jetstream.has_stream(stream))
    }

    fn settle(&mut self, now: Now, ports: &mut dyn Ports) {
        while let Some(account) = self.touched.pop_first() {
            let entry = &mut self.entries[account.index()];
            let State::Running(jetstream) = &mut entry.state else {
                continue;
            };
            jetstream.settle(now, ports.of(account));
            let has_elected = !jetstream.elected.is_empty();
            if let Some(preferred) = jetstream.step_down.take() {
                self.step_down = Some(preferred);
            }
            let used = jetstream.used();
            self.used = self.used.without(entry.used);
            self.used.add(used);
            entry.used = used;
            self.timers.set(account, jetstream.next_timeout());
            self.unsynced.insert(account);
            if has_elected {
                self.announce_leaders(account, now, ports);
            }
        }
    }

    fn poll_sync(&mut self, now: Duration) -> Option<AccountSync> {
        while let Some(account) = self.unsynced.last().copied() {
            let entry = &mut self.entries[account.index()];
            if let State::Running(jetstream) = &mut entry.state
                && let Some(sync) = jetstream.poll_sync(now)
            {
                return Some(AccountSync {
                    account,
                    account_name: entry.name.clone(),
                    sync,
                });
            }
            self.unsynced.pop_last();
            self.unreleased.push(account);
        }
        None
    }

    fn handle_synced(
        &mut self,
        account: AccountId,
        stream: StreamId,
        id: SyncId,
        result: Result<(), DiskError>,
        now: Duration,
    ) {
        if let Some(jetstream) = self.touch(account) {
            jetstream.handle_synced(stream, id, result, now);
            self.unsynced.insert(account);
        }
    }

    fn release_acks(&mut self, now: Duration, ports: &mut dyn Ports) {
        let mut unreleased = std::mem::take(&mut self.unreleased);
        for account in unreleased.drain(..) {
            let entry = &mut self.entries[account.index()];
            if let State::Running(jetstream) = &mut entry.state {
                jetstream.release_acks(now, ports.of(account));
                self.timers.set(account, jetstream.next_timeout());
            }
        }
        self.unreleased = unreleased;
    }

    fn notify_shutdown(&mut self, now: Now, ports: &mut dyn Ports) {
        for account in self.account_ids() {
            if let Some(jetstream) = self.touch(account) {
                jetstream.notify_shutdown(now, ports.of(account));
            }
        }
    }

    fn close(&mut self, now: Now, ports: &mut dyn Ports) {
        for account in self.account_ids() {
            if let Some(jetstream) = self.touch(account) {
                jetstream.close(now, ports.of(account));
            }
        }
    }

    fn set_accounts(&mut self, access: &Access, now: Now, ports: &mut dyn Ports) {
        self.announce_to_peers(ports);
        for (id, account) in (0..).map(AccountId).zip(access.accounts()) {
            let limits = access.jetstream_limits(id);
            let has_api = limits.is_some() || !imports_api(account);
            self.set_api(id, has_api, ports);
            self.set_delegate(id, limits.is_some(), ports);
            self.grant(id, &account.name, limits, now, ports);
            let entry = &mut self.entries[id.index()];
            entry.trace.clone_from(&account.trace);
            entry.may_be_served_remotely = !access.separates_jetstream(id);
        }
    }

    fn overview(
        &mut self,
        wanted: OverviewWanted,
        now: Now,
        ports: &mut dyn Ports,
    ) -> Vec<AccountOverview> {
        let mut all = Vec::new();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let account = AccountId(u32::try_from(at).unwrap_or(u32::MAX));
            let (limits, overview) = match &mut entry.state {
                State::Refused => continue,
                State::Granted(limits) => {
                    let overview = Overview {
                        limits: self.settings.server_limits,
                        ..Overview::default()
                    };
                    (limits.clone(), overview)
                }
                State::Running(jetstream) => (
                    jetstream.settings.limits.clone(),
                    jetstream.overview(wanted, now, ports.of(account)),
                ),
            };
            all.push(AccountOverview {
                name: entry.name.clone(),
                limits,
                overview,
            });
        }
        all
    }

    fn take_problems(&mut self) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.problems);
        for entry in &mut self.entries {
            if let State::Running(jetstream) = &mut entry.state {
                problems.extend(jetstream.take_problems());
            }
        }
        problems
    }
}
