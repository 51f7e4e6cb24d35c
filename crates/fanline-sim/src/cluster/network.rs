//! The network between servers: it opens the connections that dialers ask for, and moves their bytes.

use std::time::Duration;

use fanline_engine::route::Carries;

use super::clients::numbers_of;
use super::frames::Frame;
use super::setup::{ip_of, node_of};
use super::wire::{End, Wire};
use super::{Cluster, Invariant, Outcome, Violation, violation, wrong_line};
use crate::server::Sabotage;

impl Cluster {
    /// Lets the dialer of one server act.
    pub(super) fn dial_some(&mut self) {
        if let Some(node) = self.some_node() {
            self.dial(node);
        }
    }

    /// A random addition to a delay.
    fn jitter(&mut self) -> Duration {
        Duration::from_millis(self.dice.below(100) as u64)
    }

    /// Lets a dialer take all events of its server, and open due connections. Returns whether there was anything.
    pub(super) fn dial(&mut self, node: usize) -> bool {
        let now = self.now.since_start;
        let Some(server) = self.server(node) else {
            return false;
        };
        let events = server.take_route_events();
        let ended = server.take_ended_routes();
        let mut is_busy = !events.is_empty() || !ended.is_empty();
        for event in events {
            self.note(|| format!("the dialer of server {node} handles {event:?}"));
            let jitter = self.jitter();
            if let Some(running) = &mut self.nodes[node].running {
                running.dialer.handle(event, now, jitter, node_of);
            }
        }
        for (key, ended) in ended {
            self.note(|| {
                format!("the dialer of server {node} handles the end of {key:?}: {ended:?}")
            });
            let jitter = self.jitter();
            if let Some(running) = &mut self.nodes[node].running {
                running.dialer.ended(key, &ended, now, jitter);
            }
        }
        while self.open_next(node) {
            is_busy = true;
        }
        is_busy
    }

    /// Opens the next connection that a dialer asks for. Returns whether there was one.
    fn open_next(&mut self, node: usize) -> bool {
        let now = self.now.since_start;
        let running = self.nodes[node].running.as_mut();
        let Some(attempt) = running.and_then(|running| running.dialer.next_attempt(now)) else {
            return false;
        };
        let (place, carries) = (attempt.place, attempt.dial.carries.clone());
        let jitter = self.jitter();
        let shard = self.dice.below(self.setup.nodes[place].shards);
        let room = [600, 64 * 1024, 1 << 20][self.dice.below(3)];
        let accepted = self
            .server(place)
            .map(|server| server.open_route(None, shard, &ip_of(node), room));
        self.note(|| {
            format!("server {node} dials {place} for {carries:?}, which answers: {accepted:?}")
        });
        let dialed = accepted.and_then(|_| {
            let server = self.server(node)?;
            Some(server.open_route(Some(attempt.dial.clone()), 0, &ip_of(place), room))
        });
        if let (Some(dialed), Some(accepted)) = (dialed, accepted) {
            let end = |node: usize, key| End {
                node,
                epoch: self.nodes[node].epoch,
                key,
            };
            let ends = [end(node, dialed), end(place, accepted)];
            self.wires_opened += 1;
            self.wires.push(Wire::new(self.wires_opened, ends, carries));
        }
        if let Some(running) = &mut self.nodes[node].running {
            running.dialer.connected(&attempt, dialed, now, jitter);
        }
        true
    }

    /// Moves some bytes of one direction of one connection.
    pub(super) fn carry_some(&mut self) -> Outcome {
        if self.wires.is_empty() {
            return Ok(());
        }
        let at = self.dice.below(self.wires.len());
        let from = self.dice.below(2);
        let bytes = [1, 30, 500, 100_000][self.dice.below(4)];
        self.carry(at, from, bytes)?;
        self.notice_closed()
    }

    /// Moves up to `bytes` bytes from one end of a wire to the other. Returns whether there was anything.
    pub(super) fn carry(
        &mut self,
        at: usize,
        from: usize,
        bytes: usize,
    ) -> Result<bool, Violation> {
        let wire = &self.wires[at];
        let [source, target] = [wire.ends[from], wire.ends[1 - from]];
        let (number, is_cut) = (wire.number, wire.is_cut);
        let is_closed = wire.is_closed[from];
        let mut new = Vec::new();
        let mut is_gone = true;
        if let Some(socket) = self.socket(source) {
            new = socket.read_at_client(bytes);
            is_gone = socket.is_server_gone && socket.to_client.is_empty();
        }
        if is_cut {
            return Ok(!new.is_empty());
        }
        let mut is_busy = !new.is_empty();
        if is_busy {
            self.note(|| {
                format!(
                    "{} bytes of wire {number} arrive at server {}",
                    new.len(),
                    target.node
                )
            });
            let sabotage = self.sabotage;
            let wire = &mut self.wires[at];
            let carried = wire.carry(from, new, sabotage, &mut self.dice);
            let (arriving, frames) = carried.map_err(wrong_line)?;
            if let Some(socket) = self.socket(target) {
                socket.to_server.extend(arriving);
            }
            self.check_frames(at, from, &frames)?;
            self.forward_some(target, &frames)?;
        }
        let wire = &mut self.wires[at];
        if is_gone && is_closed && !wire.is_told[1 - from] {
            // The end of the stream arrives behind all bytes.
            wire.is_told[1 - from] = true;
            is_busy = true;
            self.note(|| format!("the end of wire {number} arrives at server {}", target.node));
            self.hang_up_end(target, false);
        }
        Ok(is_busy)
    }

    /// Checks the messages among frames, and shows all lines in the trace.
    fn check_frames(&mut self, at: usize, from: usize, frames: &[Frame]) -> Outcome {
        let wire = &self.wires[at];
        let number = wire.number;
        let nodes = [wire.ends[from].node, wire.ends[1 - from].node];
        let account = match &wire.carries {
            Carries::Account(name) => Some(name.clone()),
            Carries::Slot(_) => None,
        };
        for frame in frames {
            self.note(|| format!("wire {number} carries {}", frame.line));
            if !frame.is_message() {
                continue;
            }
            let Some((id, _)) = numbers_of(frame.payload()) else {
                let text = format!("wire {number} carried the message {:?}", frame.line);
                return violation(Invariant::Correctness, text);
            };
            let named = account.as_deref().or_else(|| frame.line.split(' ').nth(1));
            self.model.cross(id, nodes, named, frame.is_passed_on())?;
        }
        Ok(())
    }

    /// The sabotage that lets messages take a second hop.
    fn forward_some(&mut self, at: End, frames: &[Frame]) -> Outcome {
        if self.sabotage != Sabotage::ForwardRouted {
            return Ok(());
        }
        for frame in frames.iter().filter(|frame| frame.is_message()) {
            if !self.dice.one_in(30) {
                continue;
            }
            let is_other =
                |end: &End| (end.node, end.epoch) == (at.node, at.epoch) && end.key != at.key;
            let leaving = self.wires.iter().enumerate().find_map(|(wire, it)| {
                let from = it.ends.iter().position(is_other)?;
                (!it.is_cut).then_some((wire, from))
            });
            let Some((wire, from)) = leaving else {
                continue;
            };
            let target = self.wires[wire].ends[1 - from];
            let arrived = self.wires[wire].arrive(from, &frame.bytes);
            let frames = arrived.map_err(wrong_line)?;
            if let Some(socket) = self.socket(target) {
                socket.to_server.extend(&frame.bytes);
            }
            self.check_frames(wire, from, &frames)?;
        }
        Ok(())
    }
}
