//! What clients write.

use super::{CLIENTS_MAX, NatsClient, Role, World};
use crate::accounts::EXPORTED;
use crate::client::{push_line, push_publish};
use crate::model::Claim;

/// Number of unwritten bytes above which a client starts no new action.
const OUT_BYTES_MAX: usize = 16 * 1024;

const TOKENS: [&str; 3] = ["a", "b", "c"];
const QUEUES: [&str; 2] = ["q", "r"];
const SUBSCRIPTIONS_MAX: usize = 6;

impl World {
    /// Lets a client queue something to write; without enough clients, connects one.
    pub(super) fn act_as_client(&mut self) {
        if self.dice.one_in(4) {
            return self.act_as_device();
        }
        if self.clients.len() < 2 || self.clients.len() < CLIENTS_MAX && self.dice.one_in(12) {
            return self.connect();
        }
        let Some(at) = self.some_client() else {
            return;
        };
        if self.clients[at].out.len() > OUT_BYTES_MAX {
            return;
        }
        if self.dice.one_in(2) {
            return self.use_stream(at);
        }
        match self.dice.below(20) {
            0..10 => self.publish(at),
            10..14 => self.subscribe(at),
            14 | 15 => self.unsubscribe(at),
            16 => self.limit_subscription(at),
            17 => self.clients[at].is_slow = self.dice.one_in(3),
            _ => self.ping(at),
        }
    }

    pub(super) fn subject(&mut self) -> String {
        let tokens = [0; 2].map(|_| TOKENS[self.dice.below(TOKENS.len())]);
        format!("s.{}.{}", tokens[0], tokens[1])
    }

    fn filter(&mut self) -> String {
        let token = TOKENS[self.dice.below(TOKENS.len())];
        if self.dice.one_in(6) {
            return ["ex.>", "ex.*", "ex.a"][self.dice.below(3)].into();
        }
        match self.dice.below(6) {
            0 => "s.>".into(),
            1 => format!("s.*.{token}"),
            2 => format!("s.{token}.*"),
            3 => format!("s.{token}.>"),
            _ => self.subject(),
        }
    }

    fn publish(&mut self, at: usize) {
        let subject = match self.dice.one_in(6) {
            true => format!("ex.{}", TOKENS[self.dice.below(TOKENS.len())]),
            false => self.subject(),
        };
        self.messages += 1;
        let (id, step) = (self.messages, self.step);
        let filler = match self.dice.below(12) {
            0 => 5000,
            1 => 300,
            _ => self.dice.below(20),
        };
        let has_headers = self.dice.one_in(4);
        let client = &mut self.clients[at];
        let mut payload = format!("{id} {} ", client.account).into_bytes();
        payload.resize(payload.len() + filler, b'x');
        client.queue_publish(
            &subject,
            "",
            if has_headers { "N: 1" } else { "" },
            &payload,
        );
        client.claims.push(Claim::Published(id));
        let (key, account) = (client.key, client.account);
        self.core.publish(key, account, &subject, id, step);
        self.note(|| format!("{key:?} publishes message {id} to {subject}, {filler} bytes more"));
    }

    fn subscribe(&mut self, at: usize) {
        let filter = self.filter();
        // A group across accounts is one group in each.
        let has_queue = self.dice.one_in(3) && !filter.starts_with(EXPORTED);
        let queue = has_queue.then(|| QUEUES[self.dice.below(QUEUES.len())]);
        let client = &mut self.clients[at];
        if client.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return;
        }
        let sid = client.queue_subscribe(&filter, queue, Role::Core);
        let (key, account, echoes) = (client.key, client.account, client.echoes);
        self.core
            .subscribe((key, sid), account, &filter, queue, echoes);
        self.note(|| format!("{key:?} subscribes to {filter} in {queue:?} as {sid}"));
        if self.dice.one_in(2) {
            self.ping(at);
        }
    }

    fn some_subscription(&mut self, at: usize) -> Option<u64> {
        let client = &self.clients[at];
        let mut sids: Vec<u64> = client.subscriptions.keys().copied().collect();
        sids.retain(|sid| client.subscriptions[sid] == Role::Core);
        (!sids.is_empty()).then(|| sids[self.dice.below(sids.len())])
    }

    fn unsubscribe(&mut self, at: usize) {
        let Some(sid) = self.some_subscription(at) else {
            return;
        };
        let client = &mut self.clients[at];
        client.queue_line(&format!("UNSUB {sid}"));
        client.claims.push(Claim::Gone(sid));
        client.subscriptions.remove(&sid);
        let key = client.key;
        self.core.unsubscribe((key, sid));
        self.note(|| format!("{key:?} unsubscribes {sid}"));
    }

    fn limit_subscription(&mut self, at: usize) {
        let Some(sid) = self.some_subscription(at) else {
            return;
        };
        let max = 1 + self.dice.below(8) as u64;
        let client = &mut self.clients[at];
        client.queue_line(&format!("UNSUB {sid} {max}"));
        client.claims.push(Claim::Limited(sid, max));
        // It is not unsubscribed again, so that its maximum holds.
        client.subscriptions.remove(&sid);
        let key = client.key;
        self.core.unsubscribe((key, sid));
        self.note(|| format!("{key:?} unsubscribes {sid} after {max} messages"));
    }

    pub(super) fn ping(&mut self, at: usize) {
        let client = &mut self.clients[at];
        client.queue_line("PING");
        let claims = std::mem::take(&mut client.claims);
        client.pongs.push_back(claims);
        let key = client.key;
        self.note(|| format!("{key:?} pings"));
    }

    /// Lets a client write some of its bytes.
    pub(super) fn write_as_client(&mut self) {
        let bytes = [1, 13, 100, 100_000][self.dice.below(4)];
        if self.dice.one_in(4) {
            let at = self.dice.below(self.devices.len());
            self.write_device(at, bytes);
            return;
        }
        let Some(at) = self.some_client() else {
            return;
        };
        self.write(at, bytes);
    }

    /// Lets a client write up to `bytes` bytes. Returns whether there were any.
    pub(super) fn write(&mut self, at: usize, bytes: usize) -> bool {
        let client = &mut self.clients[at];
        let length = bytes.min(client.out.len());
        let Some(socket) = self.server.socket(client.connection) else {
            return false;
        };
        if length == 0 || socket.is_server_gone {
            return false;
        }
        socket.to_server.extend(client.out.drain(..length));
        let key = client.key;
        self.note(|| format!("{key:?} writes {length} bytes"));
        true
    }

    /// Closes the connection of a client.
    pub(super) fn hang_up_one(&mut self) {
        let Some(at) = self.some_client() else {
            return;
        };
        let abrupt = self.dice.one_in(2);
        self.hang_up(at, abrupt);
    }

    pub(super) fn hang_up(&mut self, at: usize, abrupt: bool) {
        let client = self.clients.remove(at);
        self.server.hang_up(client.connection, abrupt);
        self.core.disconnect(client.key);
        let key = client.key;
        self.note(|| format!("{key:?} disconnects, abruptly: {abrupt}"));
    }
}

impl NatsClient {
    pub(super) fn queue_line(&mut self, line: &str) {
        push_line(&mut self.out, line);
    }

    /// Queues a message. `header` is a line, or empty.
    pub(super) fn queue_publish(
        &mut self,
        subject: &str,
        reply: &str,
        header: &str,
        payload: &[u8],
    ) {
        push_publish(&mut self.out, subject, reply, header, payload);
    }

    /// Queues a subscription, and returns its number.
    pub(super) fn queue_subscribe(&mut self, filter: &str, queue: Option<&str>, role: Role) -> u64 {
        let sid = self.next_sid;
        self.next_sid += 1;
        match queue {
            Some(queue) => self.queue_line(&format!("SUB {filter} {queue} {sid}")),
            None => self.queue_line(&format!("SUB {filter} {sid}")),
        }
        self.subscriptions.insert(sid, role);
        self.claims.push(Claim::Visible(sid));
        sid
    }
}
