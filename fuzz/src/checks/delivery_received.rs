//! What clients have received since the last burst of `delivery.rs`, by client and subscription.

use std::collections::{HashMap, VecDeque};

/// A message as a client reads it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// Number at the beginning of the payload.
    pub(super) number: u64,
    pub(super) subject: String,
    pub(super) reply: String,
    pub(super) headers: String,
    pub(super) payload: String,
}

/// A report that a request has no responder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoResponders {
    pub(super) sid: String,
    pub(super) reply: String,
    pub(super) headers: String,
}

#[derive(Default)]
pub(super) struct Received {
    /// Messages in the order of their arrival, by client and sid.
    messages: HashMap<(usize, String), VecDeque<Delivery>>,
    /// Reports to the client whose burst it is, in order. Other clients receive none.
    pub(super) reports: VecDeque<NoResponders>,
}

impl Received {
    /// Adds the bytes that a client has read. `is_sender` tells whether the burst was the client's.
    pub(super) fn add(&mut self, client: usize, mut rest: &[u8], is_sender: bool) {
        let mut pongs = 0;
        let reports = self.reports.len();
        while !rest.is_empty() {
            let line = take_line(&mut rest);
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["PONG"] => pongs += 1,
                ["INFO", ..] => {}
                ["MSG", subject, sid, size] => {
                    self.add_message(client, sid, [subject, ""], ["0", size], &mut rest);
                }
                ["MSG", subject, sid, reply, size] => {
                    self.add_message(client, sid, [subject, reply], ["0", size], &mut rest);
                }
                ["HMSG", subject, sid, head, size] => {
                    self.add_with_headers(client, sid, [subject, ""], [head, size], &mut rest);
                }
                ["HMSG", subject, sid, reply, head, size] => {
                    self.add_with_headers(client, sid, [subject, reply], [head, size], &mut rest);
                }
                _ => panic!("client {client} received {line:?}"),
            }
        }
        assert_eq!(pongs, usize::from(is_sender), "PONGs of client {client}");
        assert!(
            is_sender || self.reports.len() == reports,
            "client {client} received a report about a request of another client"
        );
    }

    fn add_with_headers(
        &mut self,
        client: usize,
        sid: &str,
        subjects: [&str; 2],
        sizes: [&str; 2],
        rest: &mut &[u8],
    ) {
        if !rest.starts_with(b"NATS/1.0 503") {
            assert_ne!(sizes[0], "0", "HMSG without headers");
            return self.add_message(client, sid, subjects, sizes, rest);
        }
        assert_eq!(sizes[0], sizes[1], "a report has no payload");
        let [headers, _] = take_body(rest, sizes);
        self.reports.push_back(NoResponders {
            sid: sid.into(),
            reply: subjects[0].into(),
            headers,
        });
    }

    fn add_message(
        &mut self,
        client: usize,
        sid: &str,
        [subject, reply]: [&str; 2],
        sizes: [&str; 2],
        rest: &mut &[u8],
    ) {
        let [headers, payload] = take_body(rest, sizes);
        let number = payload.split('.').next().and_then(|text| text.parse().ok());
        let delivery = Delivery {
            number: number.expect("each message begins with its number"),
            subject: subject.into(),
            reply: reply.into(),
            headers,
            payload,
        };
        let key = (client, sid.to_owned());
        self.messages.entry(key).or_default().push_back(delivery);
    }

    /// Returns whether a subscription has received the message of this number.
    pub(super) fn has(&self, client: usize, sid: &str, number: u64) -> bool {
        let queue = self.messages.get(&(client, sid.to_owned()));
        queue.is_some_and(|queue| queue.iter().any(|message| message.number == number))
    }

    /// Takes the message of this number. With `is_next`, it must be the subscription's first one.
    pub(super) fn take(
        &mut self,
        client: usize,
        sid: &str,
        number: u64,
        is_next: bool,
    ) -> Option<Delivery> {
        let queue = self.messages.get_mut(&(client, sid.to_owned()))?;
        let at = queue.iter().position(|message| message.number == number)?;
        assert!(
            at == 0 || !is_next,
            "client {client}, sid {sid}: message {number} arrived after {}",
            queue[0].number
        );
        queue.remove(at)
    }

    /// Checks that the model has taken everything.
    pub(super) fn check_empty(&self) {
        for ((client, sid), queue) in &self.messages {
            assert!(
                queue.is_empty(),
                "client {client}, sid {sid} received too much: {queue:?}"
            );
        }
        assert!(self.reports.is_empty(), "{:?}", self.reports);
    }
}

fn take_line(rest: &mut &[u8]) -> String {
    let end = rest.windows(2).position(|pair| pair == b"\r\n");
    let end = end.expect("lines are complete");
    let line = String::from_utf8(rest[..end].to_vec()).expect("lines are text");
    *rest = &rest[end + 2..];
    line
}

/// Takes headers and payload, by the size of the headers and that of both.
fn take_body(rest: &mut &[u8], sizes: [&str; 2]) -> [String; 2] {
    let [head, all] = sizes.map(|size| size.parse::<usize>().expect("a size is a number"));
    let body = String::from_utf8(rest[..all].to_vec()).expect("bodies are text");
    assert_eq!(&rest[all..all + 2], b"\r\n");
    *rest = &rest[all + 2..];
    [body[..head].into(), body[head..].into()]
}
