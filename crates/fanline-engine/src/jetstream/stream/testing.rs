//! A port that records messages, for tests.

use std::collections::BTreeSet;

use crate::jetstream::{Message, Port};
use crate::subject::Filter;

/// Records published messages as `subject headers payload`, and delivered ones as `to > subject reply headers
/// payload`.
#[derive(Default)]
pub(crate) struct Recorder {
    published: Vec<String>,
    /// Filters with a subscriber.
    pub(crate) interest: BTreeSet<Vec<u8>>,
}

impl Recorder {
    /// Returns the messages since the last call. Line ends in headers appear as `|`.
    pub(crate) fn take_published(&mut self) -> Vec<String> {
        std::mem::take(&mut self.published)
    }
}

impl Port for Recorder {
    fn publish(&mut self, message: &Message<'_>) {
        let line = [message.subject, message.headers, message.payload];
        self.published.push(joined(&line));
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        let line = [
            to,
            b">",
            message.subject,
            message.reply,
            message.headers,
            message.payload,
        ];
        self.published.push(joined(&line));
    }

    fn has_interest(&mut self, subject: &[u8]) -> bool {
        let mut filters = self.interest.iter();
        filters.any(|filter| Filter::parse(filter).is_ok_and(|filter| filter.matches(subject)))
    }

    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        group.is_empty() && self.has_interest(subject)
    }

    fn subscribe(&mut self, filter: &[u8]) {
        self.interest.insert(filter.to_vec());
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        self.interest.remove(filter);
    }
}

fn joined(parts: &[&[u8]]) -> String {
    let shown = parts.iter().filter(|part| !part.is_empty());
    let shown: Vec<_> = shown
        .map(|part| String::from_utf8_lossy(part).replace("\r\n", "|"))
        .collect();
    shown.join(" ")
}
