//! An outside world that writes down what it is told.

use std::collections::BTreeSet;

use crate::jetstream::{Message, Port};

/// Remembers what was published, as `topic headers payload`.
#[derive(Default)]
pub(crate) struct Recorder {
    published: Vec<String>,
    /// Topics in which somebody is interested.
    pub(crate) interest: BTreeSet<Vec<u8>>,
}

impl Recorder {
    /// What was published since last asked. Line ends in headers are shown as `|`.
    pub(crate) fn taken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.published)
    }
}

impl Port for Recorder {
    fn publish(&mut self, message: &Message<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "|");
        let mut line = text(message.topic);
        for part in [message.headers, message.payload] {
            if !part.is_empty() {
                line.push(' ');
                line.push_str(&text(part));
            }
        }
        self.published.push(line);
    }

    fn has_interest(&mut self, topic: &[u8]) -> bool {
        self.interest.contains(topic)
    }

    fn subscribe(&mut self, filter: &[u8]) {
        self.interest.insert(filter.to_vec());
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        self.interest.remove(filter);
    }
}
