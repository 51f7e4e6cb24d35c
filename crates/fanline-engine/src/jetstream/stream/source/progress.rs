//! Progress of sources, saved next to the log. The log alone does not suffice, because copied records may
//! have been acknowledged, purged, or expired.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::Stream;
use super::Source;
use crate::jetstream::SAVE_DELAY_MAX;

/// Saved progress of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Progress {
    origin: String,
    filters: String,
    destinations: String,
    /// Last copied sequence of the origin.
    #[serde(rename = "taken")]
    last_copied: u64,
}

/// State of saving the progress.
#[derive(Default)]
pub(in crate::jetstream::stream) struct SavedProgress {
    /// Sequence up to which the log must be durable before the next progress is saved, and that progress.
    next: Option<(u64, Vec<Progress>)>,
    due: Option<Duration>,
    /// Sum of the last copied sequences of all sources. It changes with every copied record.
    mark: u64,
}

impl Stream {
    /// Returns the progress of all sources, if it must be saved now. It never includes copies that the log
    /// may lose.
    pub(in crate::jetstream) fn progress_to_save(
        &mut self,
        now: Duration,
        is_last: bool,
    ) -> Option<Vec<u8>> {
        if self.config.sources.is_empty() {
            return None;
        }
        let saved = &mut self.saved_progress;
        let all_copied = self.sources.iter().map(|source| source.last_copied);
        let mark = all_copied.fold(0, u64::wrapping_add);
        if saved.next.is_none() && mark != saved.mark {
            let progress = self.sources.iter().map(Progress::of).collect();
            saved.next = Some((self.store.last_sequence(), progress));
            saved.due = Some(now.saturating_add(SAVE_DELAY_MAX));
            saved.mark = mark;
        }
        let is_due = is_last || saved.due.is_some_and(|due| due <= now);
        let durable = self.store.durable();
        let (_, progress) = saved
            .next
            .take_if(|(until, _)| is_due && *until <= durable)?;
        saved.due = None;
        // Serializing only strings and numbers does not fail.
        serde_json::to_vec(&progress).ok()
    }

    /// Returns the time at which to call [`progress_to_save`](Self::progress_to_save).
    pub(in crate::jetstream::stream) fn next_progress_save(&self) -> Option<Duration> {
        let saved = &self.saved_progress;
        // While the log is not durable, nothing is due, because the end of a sync causes another call.
        let is_durable = |until: &u64| *until <= self.store.durable();
        let is_waiting = saved
            .next
            .as_ref()
            .is_some_and(|(until, _)| is_durable(until));
        saved.due.filter(|_| is_waiting)
    }

    /// Restores the saved progress. An unreadable document counts as an empty one.
    pub(in crate::jetstream) fn restore_sources(&mut self, json: &[u8]) {
        let all: Vec<Progress> = serde_json::from_slice(json).unwrap_or_default();
        for source in &mut self.sources {
            let known = Progress::of(source);
            let is_it = |saved: &&Progress| {
                let names = (&saved.origin, &saved.filters, &saved.destinations);
                names == (&known.origin, &known.filters, &known.destinations)
            };
            let last_copied = all.iter().find(is_it).map_or(0, |saved| saved.last_copied);
            if last_copied > source.last_copied {
                source.last_copied = last_copied;
                source.next = Some(last_copied.saturating_add(1));
            }
        }
    }
}

impl Progress {
    fn of(source: &Source) -> Self {
        let (filters, destinations) = source.named();
        Progress {
            origin: source.label.clone(),
            filters,
            destinations,
            last_copied: source.last_copied,
        }
    }
}
