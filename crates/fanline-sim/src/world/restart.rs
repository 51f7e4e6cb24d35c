//! The end of a server by accident, and its next start.

use std::time::Duration;

use super::{Invariant, Outcome, Server, World, violation};

impl World {
    /// Kills the server or cuts the power, and starts it again.
    pub(super) fn restart(&mut self) -> Outcome {
        let is_cut = self.dice.one_in(2);
        self.note(|| format!("the server ends by accident, with the power cut: {is_cut}"));
        match is_cut {
            true => self.disks.cut_power(&mut self.dice),
            false => self.disks.kill(),
        }
        self.clients.clear();
        for at in 0..self.devices.len() {
            self.forget_connection(at);
        }
        self.core.end_server();
        for queue in &mut self.reloads {
            queue.clear();
        }
        self.now.since_start = Duration::ZERO;
        self.settings.seed = self.settings.seed.wrapping_add(1 << 52);
        self.server = Server::start(&self.settings, &self.disks, self.now);
        self.core.end_reloads(self.step);
        self.covered.restarts += 1;
        self.requests.clear();
        for stream in &mut self.streams {
            stream.restart(self.step);
        }
        let problems = self.server.take_problems();
        if !problems.is_empty() {
            return violation(Invariant::Correctness, format!("{problems:?}"));
        }
        self.check_streams()
    }
}
