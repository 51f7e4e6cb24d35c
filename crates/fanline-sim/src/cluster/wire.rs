//! The connection of a route: two directions whose bytes arrive in pieces, until it is cut.

use std::collections::BTreeSet;

use fanline_engine::route::Carries;
use fanline_engine::store::simulated_disk::Dice;

use super::frames::{Frame, FrameReader, Interest, Place, apply_interest};
use crate::server::{ConnectionKey, Sabotage};

/// One in this number of lines is changed by a sabotage.
const SABOTAGED_ONE_IN: usize = 30;

/// One end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The number of the server.
    pub(super) node: usize,
    /// How often that server had been started.
    pub(super) epoch: u64,
    pub(super) key: ConnectionKey,
}

/// The bytes from one end to the other.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// Splits bytes for the sabotage, which changes whole lines.
    whole: FrameReader,
    reader: FrameReader,
    /// The interest in the lines that have arrived.
    pub(super) interest: Interest,
    /// All places of these lines, also of interest that has ended.
    pub(super) ever: BTreeSet<Place>,
}

/// A connection between two servers.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) number: u64,
    /// The dialer, and the acceptor.
    pub(super) ends: [End; 2],
    pub(super) carries: Carries,
    /// The bytes from each end.
    pub(super) directions: [Direction; 2],
    /// Whether the network has cut it.
    pub(super) is_cut: bool,
    /// Whether each end knows that the other one is gone.
    pub(super) is_told: [bool; 2],
    /// Whether each end has closed its connection.
    pub(super) is_closed: [bool; 2],
}

impl Wire {
    pub(super) fn new(number: u64, ends: [End; 2], carries: Carries) -> Self {
        Wire {
            number,
            ends,
            carries,
            directions: Default::default(),
            is_cut: false,
            is_told: [false; 2],
            is_closed: [false; 2],
        }
    }

    /// Returns the servers in ascending order.
    pub(super) fn pair(&self) -> (usize, usize) {
        let [one, other] = self.ends.map(|end| end.node);
        (one.min(other), one.max(other))
    }

    /// Returns the account of a dedicated route.
    fn dedicated_to(&self) -> Option<&str> {
        match &self.carries {
            Carries::Account(name) => Some(name),
            Carries::Slot(_) => None,
        }
    }

    /// Takes bytes from one end. Returns the bytes that arrive at the other one, and the frames that are complete with
    /// them.
    pub(super) fn carry(
        &mut self,
        from: usize,
        bytes: Vec<u8>,
        sabotage: Sabotage,
        dice: &mut Dice,
    ) -> Result<(Vec<u8>, Vec<Frame>), String> {
        let arriving = match sabotage {
            Sabotage::DropAnnouncement
            | Sabotage::DropWithdrawal
            | Sabotage::DropRouted
            | Sabotage::ForwardRouted
            | Sabotage::RepeatRouted => self.directions[from].sabotage(&bytes, sabotage, dice),
            _ => bytes,
        };
        let frames = self.arrive(from, &arriving)?;
        Ok((arriving, frames))
    }

    /// Reads bytes that arrive.
    pub(super) fn arrive(&mut self, from: usize, bytes: &[u8]) -> Result<Vec<Frame>, String> {
        let dedicated_to = self.dedicated_to().map(str::to_owned);
        let direction = &mut self.directions[from];
        direction.reader.push(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = direction.reader.next() {
            apply_interest(
                &mut direction.interest,
                &frame.line,
                dedicated_to.as_deref(),
            )?;
            direction.ever.extend(direction.interest.keys().cloned());
            frames.push(frame);
        }
        Ok(frames)
    }
}

impl Direction {
    /// Returns the bytes of all complete lines, after it has changed some.
    fn sabotage(&mut self, bytes: &[u8], sabotage: Sabotage, dice: &mut Dice) -> Vec<u8> {
        self.whole.push(bytes);
        let mut out = Vec::new();
        while let Some(frame) = self.whole.next() {
            let is_chosen = match sabotage {
                Sabotage::DropAnnouncement => frame.line.starts_with("RS+ "),
                Sabotage::DropWithdrawal => frame.line.starts_with("RS- "),
                Sabotage::ForwardRouted => false,
                _ => frame.is_message(),
            };
            let times = match is_chosen && dice.one_in(SABOTAGED_ONE_IN) {
                false => 1,
                true if sabotage == Sabotage::RepeatRouted => 2,
                true => 0,
            };
            for _ in 0..times {
                out.extend_from_slice(&frame.bytes);
            }
        }
        out
    }
}
