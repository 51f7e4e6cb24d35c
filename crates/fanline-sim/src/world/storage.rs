//! Comparison of streams with their models.

use super::requests::Request;
use super::{Invariant, Outcome, World, violation};
use crate::accounts::account_id;
use crate::model::{ConsumerKind, Stored};

/// Rounds in which the consumers must deliver everything in the end.
const ROUNDS: usize = 4;

/// Longer than a consumer waits for an acknowledgement.
const ACK_WAIT: std::time::Duration = std::time::Duration::from_millis(2500);

impl World {
    /// Reads a stream.
    fn stored(&mut self, stream: usize) -> Option<Stored> {
        let of = &self.streams[stream];
        let account = account_id(&self.settings.access, of.account);
        let records = self.server.read_stream(account, of.name)?;
        let parsed = records.into_iter().map(|record| {
            let id = record.payload.split(' ').next();
            let id = id.and_then(|word| word.parse().ok());
            (record.sequence, (record.subject, id.unwrap_or_default()))
        });
        Some(parsed.collect())
    }

    /// Checks all streams.
    pub(super) fn check_streams(&mut self) -> Outcome {
        for stream in 0..self.streams.len() {
            let stored = self.stored(stream);
            self.streams[stream].check(stored.as_ref())?;
        }
        Ok(())
    }

    /// Checks that each request has its answer, while its client is connected.
    pub(super) fn check_requests(&mut self) -> Outcome {
        let clients = &self.clients;
        let is_connected = |key| clients.iter().any(|client| client.key == key);
        self.requests
            .retain(|_, pending| is_connected(pending.client));
        let mut unanswered = self.requests.iter();
        if let Some((reply, pending)) = unanswered.find(|(_, it)| it.request != Request::Pull) {
            let text = format!("there is no answer to {reply}: {pending:?}");
            return violation(Invariant::Liveness, text);
        }
        for stream in &mut self.streams {
            stream.end_requests(self.step);
        }
        Ok(())
    }

    /// Lets consumers deliver everything, and checks that they have.
    pub(super) fn drain_consumers(&mut self) -> Outcome {
        for account in 0..crate::accounts::ACCOUNTS.len() {
            self.connect_to(account);
        }
        for _ in 0..ROUNDS {
            self.settle()?;
            self.wait(ACK_WAIT);
            for at in 0..self.clients.len() {
                for delivery in self.clients[at].acknowledge_all() {
                    self.streams[delivery.stream].begin_ack(delivery.consumer, delivery.sequence);
                }
                self.pull_everything(at);
            }
        }
        self.settle()?;
        for stream in 0..self.streams.len() {
            if let Some(stored) = self.stored(stream) {
                self.streams[stream].check_delivered(&stored)?;
            }
        }
        Ok(())
    }

    fn pull_everything(&mut self, at: usize) {
        if self.clients[at].inbox.is_none() {
            self.open_inbox(at);
        }
        let account = self.clients[at].account;
        for stream in 0..self.streams.len() {
            let of = &self.streams[stream];
            if of.account != account {
                continue;
            }
            let has_push = of.has_consumer(ConsumerKind::Push);
            if of.has_consumer(ConsumerKind::Pull) {
                self.pull_all(at, stream);
            }
            if has_push {
                self.listen_to_all(at, stream);
            }
        }
    }
}
