//! Publishes the messages of due schedules, and recovers schedules after a restart.

use super::Pattern;
use crate::headers::{Block, find};
use crate::jetstream::stream::Stream;
use crate::jetstream::stream::append::{Admitted, Rollup, is_marker};
use crate::jetstream::stream::headers::PublishHeaders;
use crate::jetstream::stream::ttl::{Ttl, parse_ttl};
use crate::jetstream::{Port, Timestamp};
use crate::store::{NEVER, NewRecord, StoreError};

/// Delay before a retry, if the log has refused the message of a schedule.
const RETRY_NANOS: i64 = 1_000_000_000;

/// A copy of a due schedule's record, because the log changes while its message is published.
struct DueSchedule {
    sequence: u64,
    subject: Vec<u8>,
    target: Vec<u8>,
    source: Option<Vec<u8>>,
    headers: Vec<u8>,
    payload: Vec<u8>,
    ttl: Option<Vec<u8>>,
    replaces: bool,
    pattern: Pattern,
}

impl Stream {
    /// Publishes the messages of due schedules.
    pub(in crate::jetstream::stream) fn fire_schedules(&mut self, port: &mut dyn Port) {
        let now = self.clock.unix_nanos;
        while let Some((due, sequence)) = self.schedules.take_due(now) {
            // A removed or unreadable schedule is dropped.
            if let Some(plan) = self.plan(sequence) {
                self.fire(&plan, due, port);
            }
        }
    }

    fn plan(&mut self, sequence: u64) -> Option<DueSchedule> {
        let now = self.clock.unix_nanos;
        let record = self.store.read(sequence).ok()??;
        let asked = PublishHeaders::parse(record.headers);
        Some(DueSchedule {
            sequence,
            subject: record.subject.to_vec(),
            target: asked.schedule_target?.to_vec(),
            source: asked.schedule_source.map(<[u8]>::to_vec),
            headers: record.headers.to_vec(),
            payload: record.payload.to_vec(),
            ttl: asked.schedule_ttl.map(<[u8]>::to_vec),
            replaces: asked.schedule_rollup.is_some(),
            pattern: Pattern::parse(asked.schedule?, asked.schedule_time_zone, now).ok()?,
        })
    }

    fn fire(&mut self, plan: &DueSchedule, due: i64, port: &mut dyn Port) {
        let now = self.clock.unix_nanos;
        let next = match plan.pattern.is_once() {
            true => None,
            // If messages were missed while the server was down, one message is published for all of them.
            false => plan
                .pattern
                .next(due)
                .filter(|next| *next > now)
                .or_else(|| plan.pattern.next(now)),
        };
        let is_stored = self.publish_scheduled(plan, next, port);
        match next {
            Some(next) => self.schedules.set(&plan.subject, plan.sequence, next),
            None if is_stored => {
                self.schedules.remove(&plan.subject);
                // If the disk cannot remove the schedule now, its message is published again after a restart.
                let _ = self.remove_record(plan.sequence, false);
            }
            None => self
                .schedules
                .set(&plan.subject, plan.sequence, now + RETRY_NANOS),
        }
    }

    /// Stores the message of a schedule. Returns `true` if no retry is needed.
    fn publish_scheduled(
        &mut self,
        plan: &DueSchedule,
        next: Option<i64>,
        port: &mut dyn Port,
    ) -> bool {
        // If there is no record to copy, the schedule's own content is published.
        let source = plan.source.as_deref();
        let last = source.and_then(|source| self.store.subject(source));
        let (headers, payload) = match last.map(|known| self.store.read(known.last)) {
            Some(Ok(Some(record))) => (record.headers.to_vec(), record.payload.to_vec()),
            _ => (plan.headers.clone(), plan.payload.clone()),
        };
        let next = next.map(|next| Timestamp::from_unix_nanos(next).to_string());
        let mut made = Vec::new();
        let mut block = Block::filtered(&mut made, &headers, is_inherited)
            .add("Nats-Scheduler", &plan.subject)
            .add(
                "Nats-Schedule-Next",
                next.as_deref().unwrap_or("purge").as_bytes(),
            );
        if let Some(ttl) = &plan.ttl {
            block = block.add("Nats-TTL", ttl);
        }
        if plan.replaces {
            block = block.add("Nats-Rollup", b"sub");
        }
        block.end();
        let now = self.clock.unix_nanos;
        let ttl = plan.ttl.as_deref().and_then(parse_ttl);
        let admitted = Admitted {
            record: NewRecord {
                subject: &plan.target,
                headers: &made,
                payload: &payload,
                expires_at: ttl.map(|ttl| match ttl {
                    Ttl::Never => NEVER,
                    Ttl::After(nanos) => now.saturating_add(nanos),
                }),
                ..NewRecord::default()
            },
            rollup: plan.replaces.then_some(Rollup::Subject),
            ..Admitted::default()
        };
        self.append(&admitted, port).is_ok()
    }

    /// Reads schedules and markers from the log.
    pub(in crate::jetstream::stream) fn recover_subjects(&mut self) -> Result<(), StoreError> {
        let leaves_markers = self.leaves_markers();
        if !self.config.allow_msg_schedules && !leaves_markers {
            return Ok(());
        }
        for sequence in self.last_of_subjects() {
            let Some(record) = self.store.read(sequence)? else {
                continue;
            };
            if leaves_markers && is_marker(record.headers) {
                self.markers.insert(sequence);
            }
            if self.config.allow_msg_schedules
                && find(record.headers, b"Nats-Schedule").is_some_and(|text| !text.is_empty())
            {
                let stored_at = record.unix_nanos;
                self.recover_schedule(sequence, stored_at);
            }
        }
        Ok(())
    }

    /// Reads markers from the log. An unreadable record does not count as a marker.
    pub(in crate::jetstream::stream) fn recover_markers(&mut self) {
        for sequence in self.last_of_subjects() {
            if let Ok(Some(record)) = self.store.read(sequence)
                && is_marker(record.headers)
            {
                self.markers.insert(sequence);
            }
        }
    }

    /// Returns the sequence of the last record of each subject.
    fn last_of_subjects(&self) -> Vec<u64> {
        let mut last = Vec::new();
        self.store
            .subjects(b"", &mut |_, known| last.push(known.last));
        last
    }

    fn recover_schedule(&mut self, sequence: u64, stored_at: i64) {
        let Some(plan) = self.plan(sequence) else {
            return;
        };
        // The last message that the schedule published contains its next due time.
        let made = self.store.subject(&plan.target).map(|known| known.last);
        let made = made.and_then(|made| self.store.read(made).ok().flatten());
        let next_in_message = made.and_then(|made| {
            let is_its = find(made.headers, b"Nats-Scheduler") == Some(&plan.subject);
            let next = find(made.headers, b"Nats-Schedule-Next").filter(|_| is_its)?;
            Timestamp::parse(std::str::from_utf8(next).ok()?)
        });
        let due = match next_in_message {
            Some(time) => Some(time.unix_nanos()),
            None => plan.pattern.next(stored_at),
        };
        if let Some(due) = due {
            self.schedules.set(&plan.subject, sequence, due);
        }
    }
}

/// Returns whether a header of the schedule or of the copied record is also set in the scheduled message.
fn is_inherited(name: &[u8]) -> bool {
    let Some(name) = name.strip_prefix(b"Nats-") else {
        return true;
    };
    let own = [&b"Schedule"[..], b"Scheduler", b"Expected-", b"Batch-"];
    let single = [&b"TTL"[..], b"Rollup", b"Msg-Id", b"Incr", b"Stream-Source"];
    !own.iter().any(|prefix| name.starts_with(prefix)) && !single.contains(&name)
}
