//! Replicated streams: one JetStream service for each lane that this server leads, besides that of the streams that are
//! not replicated ([decision record 0044](../../../../../docs/decisions/0044-lanes-in-the-server.md)).
//!
//! For each other, the services are servers of one cluster: each has an id, and learns the markers that the others
//! subscribe to.

mod absence;
mod copies;
mod founding;
mod held;
mod led;
mod member;
mod replication;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::time::Duration;

use fanline_engine::auth::{Access, AccountId, SYSTEM_ACCOUNT};
use fanline_engine::jetstream::{
    AccountOverview, AccountSync, ApiError, ClusterSettings, GroupState, Handler, JetStreams,
    Message, Now, OverviewWanted, Ports, Settings, StreamId, is_of_service, requests_of_server,
    service_of,
};
use fanline_engine::store::{DiskError, Record, SyncId};
use tracing::{error, info};

use super::syncer::{Job, SyncOfReplicas};
use super::{Parts, ThreadHandler};
use absence::Absence;
use held::{Change, LanePorts};
use led::Led;
use replication::PREFIX;
pub(super) use replication::Replication;

/// A filter with which a service tells the others of itself or of a stream, and its account.
type Marker = (AccountId, Vec<u8>);

/// Interval at which lanes without a service are looked for.
const ABSENCE_INTERVAL: Duration = Duration::from_millis(50);

/// The JetStream of a server that may lead lanes.
pub(crate) struct Lanes {
    /// The service of the streams that are not replicated, its settings, and its markers.
    own: JetStreams,
    settings: Settings,
    markers: BTreeSet<Marker>,
    led: BTreeMap<u16, Led>,
    replication: Replication,
    /// Markers of other servers.
    elsewhere: BTreeSet<Marker>,
    /// Changes of markers that the other services have not learned.
    changes: Vec<Change>,
    absence: Absence,
    /// When to look for absent lanes next.
    absence_at: Duration,
    is_stopping: bool,
}

/// A service of this server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Own,
    Lane(u16),
}

impl Lanes {
    /// Creates the service, and opens its streams.
    pub(super) fn new(
        settings: Settings,
        replication: Replication,
        own: JetStreams,
        parts: Parts<'_>,
    ) -> Self {
        replication.subscribe(parts.ports.of(AccountId::SYSTEM));
        let mut lanes = Lanes {
            own,
            settings,
            markers: BTreeSet::new(),
            led: BTreeMap::new(),
            replication,
            elsewhere: BTreeSet::new(),
            changes: Vec::new(),
            absence: Absence::default(),
            absence_at: Duration::ZERO,
            is_stopping: false,
        };
        lanes.with_own(parts.ports, |own, ports| {
            own.set_accounts(parts.access, parts.now, ports)
        });
        lanes
    }

    /// Calls the service of the streams that are not replicated.
    fn with_own<R>(
        &mut self,
        ports: &mut dyn Ports,
        act: impl FnOnce(&mut JetStreams, &mut dyn Ports) -> R,
    ) -> R {
        let mut noting = LanePorts {
            ports,
            held: None,
            changes: &mut self.changes,
            is_own: true,
            account: AccountId::SYSTEM,
        };
        let result = act(&mut self.own, &mut noting);
        self.spread_changes(Service::Own);
        result
    }

    /// Calls the service of a lane, if this server leads it.
    fn with_lane<R>(
        &mut self,
        lane: u16,
        ports: &mut dyn Ports,
        act: impl FnOnce(&mut Led, &mut dyn Ports, &mut Vec<Change>) -> R,
    ) -> Option<R> {
        let result = act(self.led.get_mut(&lane)?, ports, &mut self.changes);
        self.spread_changes(Service::Lane(lane));
        Some(result)
    }

    /// Calls the services of all lanes that this server leads.
    fn with_lanes(
        &mut self,
        ports: &mut dyn Ports,
        mut act: impl FnMut(&mut JetStreams, &mut dyn Ports),
    ) {
        let lanes: Vec<u16> = self.led.keys().copied().collect();
        for lane in lanes {
            self.with_lane(lane, ports, |led, ports, changes| {
                led.call(ports, changes, &mut act)
            });
        }
    }

    /// Notes the changes of a service's markers, and tells the other services.
    fn spread_changes(&mut self, of: Service) {
        for (account, filter, present) in std::mem::take(&mut self.changes) {
            let markers = match of {
                Service::Own => Some(&mut self.markers),
                Service::Lane(lane) => self.led.get_mut(&lane).map(|led| &mut led.markers),
            };
            if let Some(markers) = markers {
                note(markers, account, &filter, present);
            }
            self.tell(Some(of), account, &filter, present);
        }
    }

    /// Tells all services but one of a marker.
    fn tell(&mut self, from: Option<Service>, account: AccountId, filter: &[u8], present: bool) {
        let marker = (account, filter.to_vec());
        // A lane has the same markers at its old and its new leader.
        let is_left = self.elsewhere.contains(&marker)
            || self.markers.contains(&marker)
            || self.led.values().any(|led| led.markers.contains(&marker));
        if !present && is_left {
            return;
        }
        if account == AccountId::SYSTEM {
            self.absence_at = Duration::ZERO;
        }
        if from != Some(Service::Own) {
            self.own.handle_peer_interest(account, filter, present);
        }
        for (lane, led) in &mut self.led {
            if from != Some(Service::Lane(*lane)) && service_of(filter) != Some(&*led.id) {
                led.streams.handle_peer_interest(account, filter, present);
            }
        }
    }

    /// Lets the node work, and executes what follows from it. Returns whether anything did.
    fn run_node(&mut self, access: &Access, now: Now, ports: &mut dyn Ports) -> bool {
        let mut has_changed = false;
        while let Some(change) = self.replication.poll(now.since_start, ports) {
            has_changed = true;
            match change {
                replication::Change::Lead(lane) => self.lead(lane, access, now, ports),
                replication::Change::Depose(lane) => self.depose(lane, now, ports),
                replication::Change::Report => self.report_groups(now.since_start),
                replication::Change::Executed(lane) => {
                    self.end_round(lane, Vec::new(), now.since_start, ports);
                }
            }
        }
        has_changed
    }

    /// Tells the own service of the streams that no server leads now.
    fn report_absent(&mut self, now: Duration) {
        if now < self.absence_at {
            return;
        }
        self.absence_at = now + ABSENCE_INTERVAL;
        let lanes = self.replication.lanes();
        let known = lanes.into_iter().map(|lane| {
            let filter = requests_of_server(&self.replication.id_of(lane));
            let marker = (AccountId::SYSTEM, filter.into_bytes());
            (
                lane,
                self.led.contains_key(&lane) || self.elsewhere.contains(&marker),
            )
        });
        let Some(absent) = self.absence.update(known, now) else {
            return;
        };
        let mut streams: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for lane in absent {
            for (account, stream) in self.replication.streams(*lane) {
                streams.entry(account).or_default().insert(stream);
            }
        }
        self.own.set_absent(streams);
    }

    /// Tells the services of lanes about the other members.
    fn report_groups(&mut self, now: Duration) {
        for (lane, led) in &mut self.led {
            led.streams.set_group(GroupState {
                leader: self.settings.server_name.clone(),
                leader_since_unix_nanos: led.since_unix_nanos,
                traffic_account: SYSTEM_ACCOUNT.to_owned(),
                followers: self.replication.followers(*lane, now),
            });
        }
    }

    /// Starts the service of a lane that this server leads now.
    fn lead(&mut self, lane: u16, access: &Access, now: Now, ports: &mut dyn Ports) {
        let Some((member, _)) = self.replication.member(lane).filter(|_| !self.is_stopping) else {
            return;
        };
        let folders = match member.lead() {
            Ok(folders) => folders,
            Err(error) => {
                error!("lane {lane} of replicated streams: cannot open its streams: {error}");
                self.replication.transfer(lane, None);
                return;
            }
        };
        let settings = Settings {
            server_id: self.replication.id_of(lane),
            cluster: self
                .settings
                .cluster
                .clone()
                .map(|cluster| ClusterSettings {
                    replicas: i64::try_from(founding::REPLICAS).unwrap_or(i64::MAX),
                    ..cluster
                }),
            ..self.settings.clone()
        };
        let mut led = Led::new(settings, folders, now);
        let others = self.led.values().flat_map(|other| &other.markers);
        for (account, filter) in self.markers.iter().chain(&self.elsewhere).chain(others) {
            if service_of(filter) != Some(&*led.id) {
                led.streams.handle_peer_interest(*account, filter, true);
            }
        }
        self.led.insert(lane, led);
        self.report_groups(now.since_start);
        self.with_lane(lane, ports, |led, ports, changes| {
            led.call(ports, changes, |streams, ports| {
                streams.set_accounts(access, now, ports);
            });
        });
        info!("This server leads lane {lane} of replicated streams");
    }

    /// Drops the service of a lane that this server does not lead any more.
    fn depose(&mut self, lane: u16, now: Now, ports: &mut dyn Ports) {
        let Some(mut led) = self.led.remove(&lane) else {
            return;
        };
        led.held.fail(ports);
        let mut retiring = LanePorts {
            ports,
            held: None,
            changes: &mut self.changes,
            is_own: false,
            account: AccountId::SYSTEM,
        };
        led.streams.retire(now, &mut retiring);
        for (account, filter, present) in std::mem::take(&mut self.changes) {
            self.tell(None, account, &filter, present);
        }
        info!("This server does not lead lane {lane} of replicated streams any more");
    }

    /// Proposes what the service of a lane has written, and ends what waits for executed entries only.
    fn end_round(
        &mut self,
        lane: u16,
        mut syncs: Vec<AccountSync>,
        now: Duration,
        ports: &mut dyn Ports,
    ) {
        loop {
            let member = self.replication.member(lane);
            let Some((last, executed)) = member.map(|(member, node)| member.propose(node)) else {
                return;
            };
            let next = self.with_lane(lane, ports, |led, ports, changes| {
                led.end_round(syncs, last);
                let next = led.finish(executed, now, ports, changes);
                led.held.release(executed, ports);
                next
            });
            self.step_down(lane, (last, executed), now);
            match next.flatten() {
                Some(next) => syncs = next,
                None => return,
            }
        }
    }

    /// Lets another server lead a lane, if a client has requested this. `last` and `executed` are the last recorded and the
    /// last executed entry.
    fn step_down(&mut self, lane: u16, (last, executed): (u64, u64), now: Duration) {
        let Some(led) = self.led.get_mut(&lane) else {
            return;
        };
        if let Some(preferred) = led.take_step_down(last, executed, now) {
            let is_done = self.replication.transfer(lane, preferred.as_deref());
            led.keep_step_down(is_done, now);
        }
    }

    /// Lets a service handle successive messages with one subject.
    fn handle_run_at(
        &mut self,
        service: Service,
        account: AccountId,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let lane = match service {
            Service::Own => {
                return self.with_own(ports, |own, ports| own.handle_run(account, run, now, ports));
            }
            Service::Lane(lane) => lane,
        };
        let is_full = self.replication.is_full(lane);
        self.with_lane(lane, ports, |led, ports, changes| {
            led.call(ports, changes, |streams, ports| match is_full {
                false => streams.handle_run(account, run, now, ports),
                true => run.for_each(|message| {
                    streams.refuse_publish(
                        account,
                        &message,
                        &ApiError::STREAM_TOO_MANY_REQUESTS,
                        now,
                        ports,
                    );
                }),
            });
        });
    }

    /// Returns the only service that takes messages to a subject. `None` if there are several or none.
    fn only_taker(&self, account: AccountId, subject: &[u8]) -> Option<Service> {
        let own = self.own.takes(account, subject).then_some(Service::Own);
        let mut takers = own.into_iter().chain(
            (self.led.iter())
                .filter(|(_, led)| led.streams.takes(account, subject))
                .map(|(lane, _)| Service::Lane(*lane)),
        );
        let taker = takers.next()?;
        takers.next().is_none().then_some(taker)
    }
}

fn note(markers: &mut BTreeSet<Marker>, account: AccountId, filter: &[u8], present: bool) {
    let marker = (account, filter.to_vec());
    match present {
        true => markers.insert(marker),
        false => markers.remove(&marker),
    };
}

impl Handler for Lanes {
    fn handle(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        if account == AccountId::SYSTEM
            && let Some(path) = message.subject.strip_prefix(PREFIX)
        {
            let now = now.since_start;
            return self.replication.receive(path, message.payload, now, ports);
        }
        if let Some(taker) = self.only_taker(account, message.subject) {
            return self.handle_run_at(taker, account, &mut iter::once(*message), now, ports);
        }
        // It is a request, or no service takes it. The server's own service is that of the client.
        self.with_own(ports, |own, ports| own.handle(account, message, now, ports));
        // Those of lanes answer only for their streams.
        let message = Message {
            is_from_route: true,
            is_delegated: false,
            ..*message
        };
        self.with_lanes(ports, |streams, ports| {
            if streams.takes(account, message.subject) {
                streams.handle(account, &message, now, ports);
            }
        });
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
        let taker = self.only_taker(account, first.subject);
        let mut run = iter::once(first).chain(run);
        match taker {
            Some(taker) => self.handle_run_at(taker, account, &mut run, now, ports),
            None => run.for_each(|message| self.handle(account, &message, now, ports)),
        }
    }

    fn handle_acks(
        &mut self,
        account: AccountId,
        run: &mut dyn Iterator<Item = Message<'_>>,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        match self.led.is_empty() {
            true => self.with_own(ports, |own, ports| {
                own.handle_acks(account, run, now, ports)
            }),
            false => run.for_each(|message| self.handle(account, &message, now, ports)),
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
        let mut is_handled = self.with_own(ports, |own, ports| {
            own.trace(account, message, index, now, ports)
        });
        self.with_lanes(ports, |streams, ports| {
            if streams.takes(account, message.subject) {
                is_handled &= streams.trace(account, message, index, now, ports);
            }
        });
        is_handled
    }

    fn handle_interest(
        &mut self,
        account: AccountId,
        filter: &[u8],
        present: bool,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        self.with_own(ports, |own, ports| {
            own.handle_interest(account, filter, present, now, ports)
        });
        self.with_lanes(ports, |streams, ports| {
            streams.handle_interest(account, filter, present, now, ports)
        });
    }

    fn handle_peer_interest(&mut self, account: AccountId, filter: &[u8], present: bool) {
        if is_of_service(filter) {
            note(&mut self.elsewhere, account, filter, present);
            self.tell(None, account, filter, present);
        }
    }

    fn handle_timeout(&mut self, now: Now, ports: &mut dyn Ports) {
        self.with_own(ports, |own, ports| own.handle_timeout(now, ports));
        self.with_lanes(ports, |streams, ports| streams.handle_timeout(now, ports));
    }

    fn next_timeout(&self) -> Option<Duration> {
        let of_lanes = self
            .led
            .values()
            .filter_map(|led| led.streams.next_timeout());
        let own = self.own.next_timeout().into_iter();
        own.chain(of_lanes)
            .chain([self.replication.next_timeout()])
            .min()
    }

    fn is_quick(&self, account: AccountId, subject: &[u8]) -> bool {
        self.own.is_quick(account, subject)
    }

    fn read(
        &mut self,
        account: AccountId,
        stream: &str,
        filters: &[&[u8]],
        from: u64,
        each: &mut dyn FnMut(&Record<'_>) -> bool,
    ) {
        self.own.read(account, stream, filters, from, each);
    }

    fn has_stream(&self, account: AccountId, stream: &str) -> bool {
        self.own.has_stream(account, stream)
    }

    fn settle(&mut self, now: Now, ports: &mut dyn Ports) {
        self.with_own(ports, |own, ports| own.settle(now, ports));
    }

    fn poll_sync(&mut self, now: Duration) -> Option<AccountSync> {
        self.own.poll_sync(now)
    }

    fn handle_synced(
        &mut self,
        account: AccountId,
        stream: StreamId,
        id: SyncId,
        result: Result<(), DiskError>,
        now: Duration,
    ) {
        self.own.handle_synced(account, stream, id, result, now);
    }

    fn release_acks(&mut self, now: Duration, ports: &mut dyn Ports) {
        self.with_own(ports, |own, ports| own.release_acks(now, ports));
    }

    fn notify_shutdown(&mut self, now: Now, ports: &mut dyn Ports) {
        self.with_own(ports, |own, ports| own.notify_shutdown(now, ports));
        self.is_stopping = true;
        let lanes: Vec<u16> = self.led.keys().copied().collect();
        for lane in lanes {
            self.replication.transfer(lane, None);
            self.depose(lane, now, ports);
        }
        while self.replication.poll(now.since_start, ports).is_some() {}
    }

    fn close(&mut self, now: Now, ports: &mut dyn Ports) {
        self.with_own(ports, |own, ports| own.close(now, ports));
    }

    fn set_accounts(&mut self, access: &Access, now: Now, ports: &mut dyn Ports) {
        self.with_own(ports, |own, ports| own.set_accounts(access, now, ports));
        self.with_lanes(ports, |streams, ports| {
            streams.set_accounts(access, now, ports)
        });
    }

    fn overview(
        &mut self,
        wanted: OverviewWanted,
        now: Now,
        ports: &mut dyn Ports,
    ) -> Vec<AccountOverview> {
        let mut all = self.with_own(ports, |own, ports| own.overview(wanted, now, ports));
        self.with_lanes(ports, |streams, ports| {
            for of_lane in streams.overview(wanted, now, ports) {
                if let Some(own) = all.iter_mut().find(|own| own.name == of_lane.name) {
                    own.overview.join(of_lane.overview);
                }
            }
        });
        all
    }

    fn take_problems(&mut self) -> Vec<String> {
        let mut problems = self.own.take_problems();
        problems.extend(
            self.led
                .values_mut()
                .flat_map(|led| led.streams.take_problems()),
        );
        problems
    }
}

impl ThreadHandler for Lanes {
    fn advance(&mut self, access: &Access, now: Now, ports: &mut dyn Ports) {
        loop {
            let lanes: Vec<u16> = self.led.keys().copied().collect();
            for lane in lanes {
                let syncs = self.with_lane(lane, ports, |led, ports, changes| {
                    led.settle(now, ports, changes)
                });
                self.end_round(lane, syncs.unwrap_or_default(), now.since_start, ports);
            }
            if !self.run_node(access, now, ports) {
                break;
            }
        }
        self.report_absent(now.since_start);
    }

    fn poll_job(&mut self) -> Option<Job> {
        self.replication.poll_job()
    }

    fn handle_replicas_synced(&mut self, of: SyncOfReplicas, result: Result<(), DiskError>) {
        self.replication.handle_synced(of, result);
    }
}
