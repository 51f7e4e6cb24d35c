//! The dialing tasks of one server, as a state machine. It follows the rules of `routes.rs` in `fanline-server`: a
//! configured address is dialed forever, one that was learned by gossip until it does not answer any more, and the
//! further routes to a peer with a pool as long as the first one lasts.

use std::collections::BTreeMap;
use std::time::Duration;

use fanline_engine::route::{Carries, GossipMode, RouteDial, RouteEnded, RouteEvent, RouteOutcome};

use crate::server::ConnectionKey;

/// Delay after a failed attempt.
const DELAY: Duration = Duration::from_secs(1);

/// The dialing tasks.
pub(super) struct Dialer {
    tasks: Vec<Task>,
    /// The routes to each peer, by its id.
    peers: BTreeMap<String, Vec<Carries>>,
    configured: Vec<usize>,
    /// The first routes that are dialed, by the number of their task. `true` once the peer has accepted it.
    dialed: BTreeMap<u64, bool>,
    /// Failures after which an address learned by gossip is abandoned.
    retries: u64,
    tasks_started: u64,
}

/// A task that dials one route.
struct Task {
    /// Its number; that of the first route, for a further one.
    number: u64,
    kind: Kind,
    /// The server that is dialed.
    place: usize,
    dial: RouteDial,
    state: State,
    failures: u64,
    /// What gossip has announced at the same address since the task began: the id of the server, and the mode.
    later: Option<(String, GossipMode)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Configured,
    Discovered,
    Further,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    WaitingUntil(Duration),
    Dialing,
    Connected(ConnectionKey),
    /// The peer with this id has the route already.
    Superseded(String),
    /// The last attempt has failed. The task ends after the usual delay.
    EndingAt(Duration),
    Over,
}

/// A connection to open.
pub(super) struct Attempt {
    /// The position of the task, for [`Dialer::connected`].
    task: usize,
    pub(super) place: usize,
    pub(super) dial: RouteDial,
}

impl Dialer {
    /// Creates the tasks of a server whose configuration lists these servers.
    pub(super) fn new(configured: Vec<usize>, retries: u64, now: Duration) -> Self {
        let mut dialer = Dialer {
            tasks: Vec::new(),
            peers: BTreeMap::new(),
            configured: configured.clone(),
            dialed: BTreeMap::new(),
            retries,
            tasks_started: 0,
        };
        for place in configured {
            let dial = RouteDial {
                is_explicit: true,
                ..RouteDial::default()
            };
            dialer.start(Kind::Configured, place, dial, now);
        }
        dialer
    }

    fn start(&mut self, kind: Kind, place: usize, dial: RouteDial, now: Duration) {
        self.tasks_started += 1;
        let number = self.tasks_started;
        self.tasks.push(Task {
            number,
            kind,
            place,
            dial: RouteDial { id: number, ..dial },
            state: State::WaitingUntil(now),
            failures: 0,
            later: None,
        });
    }

    /// Handles an event of the server. `place_of` finds the server at a URL.
    pub(super) fn handle(
        &mut self,
        event: RouteEvent,
        now: Duration,
        jitter: Duration,
        place_of: impl Fn(&str) -> usize,
    ) {
        match event {
            RouteEvent::Joined { id, carries, .. } => {
                self.peers.entry(id).or_default().push(carries);
            }
            RouteEvent::Left { id, carries } => self.leave(&id, &carries, now + DELAY + jitter),
            RouteEvent::Proven {
                dial,
                pool_size,
                accounts,
            } => self.prove(dial, pool_size, accounts, now),
            RouteEvent::Discovered {
                id,
                url,
                gossip_mode,
                carries,
            } => {
                let place = place_of(&url);
                if self.may_dial(&id, place, &carries)
                    && !self.is_dialed(&id, place, gossip_mode, &carries)
                {
                    let dial = RouteDial {
                        gossip_mode,
                        carries,
                        ..RouteDial::default()
                    };
                    self.start(Kind::Discovered, place, dial, now);
                }
            }
            RouteEvent::ClusterNamed { .. } | RouteEvent::LeavesSoon { .. } => {}
        }
    }

    fn leave(&mut self, id: &str, carries: &Carries, next: Duration) {
        if let Some(routes) = self.peers.get_mut(id) {
            if let Some(at) = routes.iter().position(|route| route == carries) {
                routes.swap_remove(at);
            }
            if routes.is_empty() {
                self.peers.remove(id);
            }
        }
        self.wake_superseded(next);
    }

    /// Lets tasks go on whose route has ended that another connection had.
    fn wake_superseded(&mut self, next: Duration) {
        for task in &mut self.tasks {
            if let State::Superseded(id) = &task.state {
                let routes = self.peers.get(id);
                let lasts = routes.is_some_and(|routes| routes.contains(&task.dial.carries));
                if !lasts {
                    task.state = State::WaitingUntil(next);
                }
            }
        }
    }

    /// A peer with a pool has accepted the first route: starts the tasks of the further ones.
    fn prove(&mut self, number: u64, pool_size: u32, accounts: Vec<String>, now: Duration) {
        let Some(is_proven) = self.dialed.get_mut(&number) else {
            return;
        };
        *is_proven = true;
        let is_first = |task: &&Task| task.number == number && task.kind != Kind::Further;
        let Some(first) = self.tasks.iter().find(is_first) else {
            return;
        };
        let (place, dial) = (first.place, first.dial.clone());
        let slots = (1..pool_size).map(Carries::Slot);
        for carries in slots.chain(accounts.into_iter().map(Carries::Account)) {
            let is_known = |task: &Task| {
                (task.number, task.kind) == (number, Kind::Further) && task.dial.carries == carries
            };
            if self.tasks.iter().any(is_known) {
                continue;
            }
            self.tasks.push(Task {
                number,
                kind: Kind::Further,
                place,
                dial: RouteDial {
                    carries,
                    ..dial.clone()
                },
                state: State::WaitingUntil(now),
                failures: 0,
                later: None,
            });
        }
    }

    /// Returns whether a route that gossip has announced is to be dialed.
    fn may_dial(&self, id: &str, place: usize, carries: &Carries) -> bool {
        !has_route(&self.peers, id, carries) && !self.configured.contains(&place)
    }

    /// Returns whether a task dials a route that gossip has announced. A task that has perhaps dialed the server that was
    /// there before takes note of the new one.
    fn is_dialed(&mut self, id: &str, place: usize, mode: GossipMode, carries: &Carries) -> bool {
        let of_place = |task: &&mut Task| task.kind == Kind::Discovered && task.place == place;
        let mut tasks = self.tasks.iter_mut().filter(of_place);
        if let Some(task) = tasks.find(|task| task.dial.carries == *carries) {
            task.later = Some((id.to_owned(), mode));
            return true;
        }
        let mut tasks = self.tasks.iter_mut().filter(of_place);
        tasks.any(|task| task.dial.carries == Carries::default())
    }

    /// Returns the next connection to open.
    pub(super) fn next_attempt(&mut self, now: Duration) -> Option<Attempt> {
        for at in 0..self.tasks.len() {
            if matches!(self.tasks[at].state, State::EndingAt(due) if due <= now) {
                self.end_task(at, now);
            }
        }
        let dialed = &mut self.dialed;
        self.tasks.retain(|task| match task.state {
            State::WaitingUntil(at) if at <= now && task.kind == Kind::Further => {
                // The first route lasts no more.
                dialed.get(&task.number) == Some(&true)
            }
            State::Over => false,
            _ => true,
        });
        let is_due = |task: &Task| matches!(task.state, State::WaitingUntil(at) if at <= now);
        let at = self.tasks.iter().position(is_due)?;
        let task = &mut self.tasks[at];
        task.state = State::Dialing;
        if task.kind != Kind::Further {
            dialed.insert(task.number, false);
        }
        Some(Attempt {
            task: at,
            place: task.place,
            dial: task.dial.clone(),
        })
    }

    /// Notes the connection of an attempt; `None` if the other server does not run.
    pub(super) fn connected(
        &mut self,
        attempt: &Attempt,
        key: Option<ConnectionKey>,
        now: Duration,
        jitter: Duration,
    ) {
        match key {
            Some(key) => self.tasks[attempt.task].state = State::Connected(key),
            None => self.end(attempt.task, &RouteEnded::default(), now, jitter),
        }
    }

    /// Handles the end of a connection. That of an accepted one has no effect.
    pub(super) fn ended(
        &mut self,
        key: ConnectionKey,
        ended: &RouteEnded,
        now: Duration,
        jitter: Duration,
    ) {
        let is_of = |task: &Task| task.state == State::Connected(key);
        if let Some(at) = self.tasks.iter().position(is_of) {
            self.end(at, ended, now, jitter);
        }
    }

    fn end(&mut self, at: usize, ended: &RouteEnded, now: Duration, jitter: Duration) {
        let task = &mut self.tasks[at];
        if task.kind != Kind::Further {
            self.dialed.remove(&task.number);
        }
        task.failures = match ended.was_ready {
            true => 0,
            false => task.failures + 1,
        };
        let has_failed = task.failures > 0 || task.dial.is_explicit;
        let delay = if has_failed { DELAY } else { Duration::ZERO };
        let next = now + delay + jitter;
        task.state = match (task.kind, &ended.outcome) {
            (_, RouteOutcome::OwnServer) | (Kind::Further, RouteOutcome::Superfluous) => {
                State::Over
            }
            (Kind::Discovered, outcome) if *outcome != RouteOutcome::Ended && !ended.was_ready => {
                State::Over
            }
            (Kind::Discovered, _) if task.failures > self.retries => State::EndingAt(next),
            (Kind::Configured | Kind::Further, RouteOutcome::Duplicate(peer)) => {
                State::Superseded(peer.clone())
            }
            _ => State::WaitingUntil(next),
        };
        if task.kind == Kind::Discovered {
            task.dial.gossip_mode = GossipMode::Override;
        }
        if task.state == State::Over {
            self.end_task(at, next);
        }
        self.wake_superseded(next);
    }

    /// Ends a task, unless gossip has announced another server at the same address, which it has to dial then.
    fn end_task(&mut self, at: usize, next: Duration) {
        let task = &mut self.tasks[at];
        task.state = State::Over;
        if let Some((id, gossip_mode)) = task.later.take()
            && !has_route(&self.peers, &id, &task.dial.carries)
        {
            (task.state, task.failures) = (State::WaitingUntil(next), 0);
            task.dial.gossip_mode = gossip_mode;
        }
    }
}

/// Returns whether there is a registered route to a peer that carries this. Of a peer with a dedicated route alone, the
/// pool is missing.
fn has_route(peers: &BTreeMap<String, Vec<Carries>>, id: &str, carries: &Carries) -> bool {
    let is_slot = |carries: &Carries| matches!(carries, Carries::Slot(_));
    peers.get(id).is_some_and(|routes| match is_slot(carries) {
        true => routes.iter().any(is_slot),
        false => routes.contains(carries),
    })
}
