//! Quiet moments: all actions that were begun end, and then the state of the server must be as the models
//! predict.

use std::time::Duration;

use super::{ClientKey, Invariant, Outcome, SyncState, Violation, World, violation};

/// Rounds after which everything must be quiet.
const ROUNDS_MAX: usize = 2000;

/// Longer than the store waits with a sync.
const SYNC_WAIT: Duration = Duration::from_millis(300);

/// Bytes that a client reads or writes at once.
const ALL: usize = usize::MAX;

impl World {
    /// Lets everything end, and checks the models.
    pub(super) fn settle(&mut self) -> Outcome {
        self.note(|| "everything ends".into());
        for at in 0..self.clients.len() {
            self.clients[at].is_slow = false;
            self.ping(at);
        }
        for at in 0..self.devices.len() {
            self.ping_device(at);
        }
        self.quiesce()?;
        // If no client waits for a change, a timer syncs the change later. A request that repeats such a
        // change waits for that timer.
        self.wait(SYNC_WAIT);
        self.quiesce()?;
        self.check_quiet()?;
        for at in 0..self.devices.len() {
            self.register_will(at);
        }
        Ok(())
    }

    /// Performs everything that can be performed at this time.
    pub(super) fn quiesce(&mut self) -> Outcome {
        for _ in 0..ROUNDS_MAX {
            if !self.turn()? {
                return Ok(());
            }
        }
        let text = "the server and its clients do not become quiet";
        violation(Invariant::Liveness, text)
    }

    /// Performs everything once. Returns whether there was anything.
    fn turn(&mut self) -> Result<bool, Violation> {
        let mut is_busy = false;
        for at in 0..self.reloads.len() {
            while self.reload_at(at) {
                is_busy = true;
            }
        }
        for at in 0..self.clients.len() {
            is_busy |= self.write(at, ALL);
        }
        for at in 0..self.devices.len() {
            is_busy |= self.write_device(at, ALL);
        }
        for key in self.server.connection_keys() {
            is_busy |= self.server.receive(key, ALL);
        }
        for shard in 0..self.server.shards() {
            is_busy |= self.server.take_mailbox(shard);
            is_busy |= self.server.handle_shard_timeout(shard);
        }
        is_busy |= self.server.round();
        is_busy |= self.finish_syncs();
        for shard in 0..self.server.shards() {
            self.server.flush(shard);
        }
        for key in self.server.connection_keys() {
            is_busy |= self.server.wake(key);
        }
        // A client that the server has disconnected is removed.
        for at in (0..self.clients.len()).rev() {
            is_busy |= self.read(at, ALL)?;
        }
        for at in 0..self.devices.len() {
            is_busy |= self.read_device(at, ALL)?;
        }
        Ok(is_busy)
    }

    fn finish_syncs(&mut self) -> bool {
        let mut is_busy = false;
        while let Some(state) = self.server.syncs().first() {
            is_busy = true;
            if *state == SyncState::Requested {
                self.server.perform_sync(0, &mut self.dice);
            }
            self.server.finish_sync(0);
        }
        is_busy
    }

    fn check_quiet(&mut self) -> Outcome {
        if !self.server.is_idle() {
            let text = "a batch or an output is pending although all is quiet";
            return violation(Invariant::Memory, text);
        }
        let pending = self.server.pending_bytes_most();
        if pending > 0 {
            let text = format!("{pending} bytes are pending although all is quiet");
            return violation(Invariant::Memory, text);
        }
        for client in &self.clients {
            if !client.pongs.is_empty() || client.reader.is_within_event() {
                let text = format!("{:?} waits for {} PONGs", client.key, client.pongs.len());
                return violation(Invariant::Liveness, text);
            }
        }
        let (sessions, _) = self.server.sessions_and_subscriptions();
        let devices = self
            .devices
            .iter()
            .filter_map(|device| device.link.as_ref());
        let keys: Vec<ClientKey> = devices
            .map(|link| link.key)
            .chain(self.clients.iter().map(|client| client.key))
            .collect();
        if sessions != keys.len() {
            let text = format!("{sessions} sessions of {} clients", keys.len());
            return violation(Invariant::Memory, text);
        }
        let problems = self.server.take_problems();
        if !problems.is_empty() {
            return violation(Invariant::Correctness, format!("{problems:?}"));
        }
        self.check_requests()?;
        self.check_streams()?;
        self.check_devices()?;
        self.core.check_quiet(|key| keys.contains(&key))
    }
}
