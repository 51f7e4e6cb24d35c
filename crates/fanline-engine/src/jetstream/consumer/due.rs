//! Timers of a consumer.

use super::event::ConsumerEvent;
use super::machine::Consumer;
use super::requests::Due;
use super::shared::CallContext;
use super::status::Status;
use crate::jetstream::Timestamp;

impl Consumer {
    /// Runs all due timers, except deliveries.
    pub(super) fn handle_timeout(&mut self, context: &mut CallContext<'_>) {
        self.resume_if_due(context);
        self.expire_pending(context);
        self.expire_requests(context);
        self.heartbeat(context);
        self.expire_pin(context);
        if self.unused_since_too_long(context) {
            context.shared.unused.push(self.id);
        }
    }

    /// Returns the time at which the next timer is due, in nanoseconds since the server's start.
    pub(super) fn next_deadline(&mut self, at: u64, unix_nanos: i64) -> Option<u64> {
        let push = self.push.as_ref();
        // The wall clock may change during a pause, so the end of the pause is checked again when the timer
        // is due.
        let paused_until = self.paused_until.filter(|_| self.resumes);
        let pause = paused_until.map(|until| {
            at.saturating_add(u64::try_from(until.saturating_sub(unix_nanos)).unwrap_or(0))
        });
        let inactive = self
            .is_unused()
            .then_some(self.rules.inactive_nanos)
            .flatten();
        [
            pause,
            self.pending.next_deadline(),
            self.requests.next_deadline(),
            push.and_then(|push| push.next_heartbeat(&self.rules)),
            push.and_then(|push| push.next_allowed(at)),
            self.replay
                .and_then(|replay| replay.due.filter(|due| *due > at)),
            self.pin.next_deadline(),
            inactive.map(|nanos| self.last_used.saturating_add(nanos)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn resume_if_due(&mut self, context: &mut CallContext<'_>) {
        if self.resumes && !self.is_paused(context.now.unix_nanos) {
            self.resumes = false;
            self.last_used = context.at;
            self.report_pause(context);
        }
    }

    /// Pauses the consumer until a time, or resumes it. The configuration shows the requested time even if it
    /// is in the past.
    pub(super) fn set_paused(&mut self, until: Option<i64>, context: &mut CallContext<'_>) {
        let was = std::mem::replace(&mut self.paused_until, until);
        self.resumes = self.is_paused(context.now.unix_nanos);
        self.last_used = context.at;
        if was != until {
            // Clients send the year 1 for "no pause". That time does not fit in nanoseconds, and becomes
            // `None`.
            self.config.pause_until = until.map(Timestamp::from_unix_nanos);
            self.report_pause(context);
        }
    }

    fn report_pause(&self, context: &mut CallContext<'_>) {
        let event = ConsumerEvent::Pause {
            until: self.paused_until,
            is_paused: self.is_paused(context.now.unix_nanos),
        };
        context.publish_event(self.name(), &event);
    }

    fn expire_requests(&mut self, context: &mut CallContext<'_>) {
        let (consumer_sequence, stream_sequence) =
            (self.delivered.consumer_sequence, self.last_examined());
        let last_used = &mut self.last_used;
        self.requests.each_due(context.at, &mut |due, request| {
            *last_used = context.at;
            let status = match due {
                Due::Expired => Status::RequestTimeout(request.remaining()),
                Due::Idle => Status::NoMessages,
                Due::Heartbeat => Status::IdleHeartbeat {
                    consumer_sequence,
                    stream_sequence,
                    stalled: None,
                },
            };
            context.send(&request.reply, b"", status);
        });
    }

    /// Returns whether the consumer may be unused: it is a push consumer without a subscriber, or a pull
    /// consumer.
    fn is_unused(&self) -> bool {
        match &self.push {
            Some(push) => !push.is_active(),
            // Pull requests may be from disconnected clients. The interest in their reply subjects is checked
            // when the inactivity threshold is reached.
            None => true,
        }
    }

    fn unused_since_too_long(&mut self, context: &mut CallContext<'_>) -> bool {
        let Some(nanos) = self.rules.inactive_nanos.filter(|_| self.is_unused()) else {
            return false;
        };
        if self.last_used.saturating_add(nanos) > context.at {
            return false;
        }
        self.drop_disconnected(context);
        // Starts the inactivity period again, in case the consumer has requests or cannot be deleted.
        self.last_used = context.at;
        self.requests.is_empty()
    }
}
