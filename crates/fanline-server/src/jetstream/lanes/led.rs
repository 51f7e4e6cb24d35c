//! The JetStream service of a lane that this server leads.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use fanline_engine::auth::AccountId;
use fanline_engine::jetstream::{AccountSync, Handler, JetStreams, Now, Ports, Settings};

use super::Marker;
use super::held::{Change, Held, LanePorts};
use super::store::JournaledFolders;
use crate::identity;

pub(super) struct Led {
    pub(super) streams: JetStreams,
    /// Id of the service.
    pub(super) id: String,
    pub(super) held: Held,
    /// When this server became the leader, in nanoseconds since 1970 UTC.
    pub(super) since_unix_nanos: i64,
    /// The markers that it subscribes to.
    pub(super) markers: BTreeSet<Marker>,
    step_down: Option<StepDown>,
    /// Syncs, and the entries that they wait for.
    syncs: VecDeque<(u64, AccountSync)>,
}

/// A client's request that another server leads.
struct StepDown {
    preferred: Option<String>,
    /// The entry after which it may.
    after: u64,
    /// Until when it is tried.
    until: Duration,
}

/// Time for which a leader tries to step down, while no other member has all entries.
const STEP_DOWN_WAIT: Duration = Duration::from_secs(5);

impl Led {
    /// Creates the service of a lane without accounts.
    pub(super) fn new(settings: Settings, folders: JournaledFolders, now: Now) -> Self {
        let id = settings.server_id.clone();
        let streams = JetStreams::new(settings, Some(Box::new(folders)), identity::new_seed());
        Led {
            streams,
            id,
            held: Held::default(),
            since_unix_nanos: now.unix_nanos,
            markers: BTreeSet::new(),
            step_down: None,
            syncs: VecDeque::new(),
        }
    }

    /// Calls the service. Returns the changes of its markers.
    pub(super) fn call<R>(
        &mut self,
        ports: &mut dyn Ports,
        changes: &mut Vec<Change>,
        act: impl FnOnce(&mut JetStreams, &mut dyn Ports) -> R,
    ) -> R {
        let mut of_lane = LanePorts {
            ports,
            held: Some(&mut self.held),
            changes,
            is_own: false,
            account: AccountId::SYSTEM,
        };
        act(&mut self.streams, &mut of_lane)
    }

    /// Ends a round: lets the service write what it has to write.
    pub(super) fn settle(
        &mut self,
        now: Now,
        ports: &mut dyn Ports,
        changes: &mut Vec<Change>,
    ) -> Vec<AccountSync> {
        self.call(ports, changes, |streams, ports| streams.settle(now, ports));
        self.write(now.since_start, ports, changes)
    }

    fn write(
        &mut self,
        now: Duration,
        ports: &mut dyn Ports,
        changes: &mut Vec<Change>,
    ) -> Vec<AccountSync> {
        let syncs = std::iter::from_fn(|| self.streams.poll_sync(now)).collect();
        self.call(ports, changes, |streams, ports| {
            streams.release_acks(now, ports)
        });
        syncs
    }

    /// Notes the last recorded entry after a round, and the last executed one.
    pub(super) fn end_round(&mut self, syncs: Vec<AccountSync>, last: u64) {
        self.syncs
            .extend(syncs.into_iter().map(|sync| (last, sync)));
        self.held.end_round(last);
    }

    /// Returns whether another server should lead now, and which one is preferred. `last` and `executed` are the numbers
    /// of the last recorded and the last executed entry.
    pub(super) fn take_step_down(
        &mut self,
        last: u64,
        executed: u64,
        now: Duration,
    ) -> Option<Option<String>> {
        if let Some(preferred) = self.streams.take_step_down() {
            let until = now + STEP_DOWN_WAIT;
            self.step_down = Some(StepDown {
                preferred,
                after: last,
                until,
            });
        }
        let due = self
            .step_down
            .as_ref()
            .filter(|wanted| wanted.after <= executed)?;
        Some(due.preferred.clone())
    }

    /// Notes that no other server could take over. It is tried again for a while.
    pub(super) fn keep_step_down(&mut self, is_done: bool, now: Duration) {
        if is_done
            || self
                .step_down
                .as_ref()
                .is_some_and(|wanted| wanted.until <= now)
        {
            self.step_down = None;
        }
    }

    /// Ends the syncs that waited for an entry. Returns the service's next syncs; `None` if none has ended.
    pub(super) fn finish(
        &mut self,
        entry: u64,
        now: Duration,
        ports: &mut dyn Ports,
        changes: &mut Vec<Change>,
    ) -> Option<Vec<AccountSync>> {
        let mut has_any = false;
        while let Some((_, done)) = self.syncs.pop_front_if(|(after, _)| *after <= entry) {
            has_any = true;
            let (account, stream, id) = (done.account, done.sync.stream, done.sync.request.id);
            self.streams.handle_synced(account, stream, id, Ok(()), now);
        }
        if !has_any {
            return None;
        }
        // The answers that these syncs release show nothing later.
        self.held.set_after(Some(entry));
        let syncs = self.write(now, ports, changes);
        self.held.set_after(None);
        Some(syncs)
    }
}
