//! Recently closed connections, for monitoring.

use std::collections::VecDeque;
use std::time::Duration;

use fanline_engine::Ended;

use crate::ipc::ClosedConnection;

/// Largest size in bytes of each text that a closed client has sent about itself. By default, ten thousand
/// closed clients are stored.
const TEXT_BYTES_MAX: usize = 256;

/// The closed connections of one shard, oldest first.
pub(super) struct ClosedRing {
    closed: VecDeque<ClosedConnection>,
    closed_max: usize,
}

impl ClosedRing {
    /// Returns an empty ring. `most` is the limit of all shards together.
    pub(super) fn new(most: usize, shards: usize) -> Self {
        ClosedRing {
            closed: VecDeque::new(),
            closed_max: most.max(1).div_ceil(shards.max(1)),
        }
    }

    pub(super) fn push(&mut self, ended: Ended, now: Duration) {
        let Ended {
            mut status, reason, ..
        } = ended;
        for text in [
            &mut status.name,
            &mut status.lang,
            &mut status.version,
            &mut status.user,
        ] {
            cut(text);
        }
        if let Some(subject) = status.backlog.as_mut().and_then(|b| b.subject.as_mut()) {
            cut(subject);
        }
        if self.closed.len() == self.closed_max {
            self.closed.pop_front();
        }
        self.closed.push_back(ClosedConnection {
            status,
            reason,
            stopped_at: now,
        });
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &ClosedConnection> {
        self.closed.iter()
    }
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text.shrink_to_fit();
}
