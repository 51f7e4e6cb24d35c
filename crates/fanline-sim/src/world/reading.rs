//! What clients read.

use super::{CloseReason, Invariant, Outcome, Role, Violation, World, violation};
use crate::client::{Event, Received};
use crate::model::Delivered;

impl World {
    /// Lets a client read some bytes.
    pub(super) fn read_as_client(&mut self) -> Outcome {
        if self.dice.one_in(4) {
            let at = self.dice.below(self.devices.len());
            let bytes = [1, 30, 100_000][self.dice.below(3)];
            return self.read_device(at, bytes).map(drop);
        }
        let Some(at) = self.some_client() else {
            return Ok(());
        };
        if self.clients[at].is_slow {
            return Ok(());
        }
        let bytes = [5, 200, 100_000][self.dice.below(3)];
        self.read(at, bytes).map(drop)
    }

    /// Lets a client read up to `bytes` bytes. Returns whether there was anything.
    pub(super) fn read(&mut self, at: usize, bytes: usize) -> Result<bool, Violation> {
        let client = &mut self.clients[at];
        let (key, connection) = (client.key, client.connection);
        let Some(socket) = self.server.socket(connection) else {
            return Ok(false);
        };
        let new = socket.read_at_client(bytes);
        if new.is_empty() {
            let is_gone = socket.is_server_gone;
            if is_gone {
                self.lose(at)?;
            }
            return Ok(is_gone);
        }
        client.reader.push(&new);
        self.note(|| format!("{key:?} reads {} bytes", new.len()));
        loop {
            let next = self.clients[at].reader.next();
            let next = next.map_err(|text| Violation {
                invariant: Invariant::Correctness,
                text: format!("{key:?}: {text}"),
            })?;
            let Some(event) = next else {
                return Ok(true);
            };
            self.handle(at, event)?;
        }
    }

    fn handle(&mut self, at: usize, event: Event) -> Outcome {
        let client = &mut self.clients[at];
        let key = client.key;
        match event {
            Event::Info => Ok(()),
            Event::Ping => {
                client.queue_line("PONG");
                Ok(())
            }
            Event::Pong => {
                let Some(claims) = client.pongs.pop_front() else {
                    let text = format!("{key:?} received a PONG without a PING");
                    return violation(Invariant::Correctness, text);
                };
                self.note(|| format!("{key:?} has a PONG, which proves {claims:?}"));
                for claim in claims {
                    self.core.claim(key, &claim, self.step);
                }
                Ok(())
            }
            Event::Error(text) => {
                let text = format!("{key:?} received the error {text}");
                violation(Invariant::Correctness, text)
            }
            Event::Message(message) => self.take(at, &message),
        }
    }

    fn take(&mut self, at: usize, message: &Received) -> Outcome {
        let role = self.clients[at].subscriptions.get(&message.sid);
        if matches!(role, Some(Role::Inbox | Role::Push)) {
            return self.take_answer(at, message);
        }
        let key = self.clients[at].key;
        let text = String::from_utf8_lossy(&message.payload);
        let mut words = text.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (Some(id), Some(account)) = (number(), number()) else {
            let text = format!("{key:?} received the payload {text:?}");
            return violation(Invariant::Correctness, text);
        };
        let sid = message.sid;
        self.note(|| {
            format!(
                "{key:?} receives message {id} to {} for {sid}",
                message.subject
            )
        });
        self.core.deliver(&Delivered {
            key: (key, sid),
            subject: &message.subject,
            message: id,
            account: usize::try_from(account).unwrap_or_default(),
        })
    }

    /// Handles that the server has closed a client's connection.
    fn lose(&mut self, at: usize) -> Outcome {
        let (key, connection) = (self.clients[at].key, self.clients[at].connection);
        let reason = self.server.ended(connection);
        self.note(|| format!("{key:?} was disconnected: {reason:?}"));
        self.hang_up(at, true);
        if reason.is_some_and(CloseReason::is_slow_consumer) {
            return Ok(());
        }
        let text = format!("the server closed the connection of {key:?}: {reason:?}");
        violation(Invariant::Correctness, text)
    }
}
