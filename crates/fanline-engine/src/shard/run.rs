//! Messages that follow each other to one topic are delivered together.
//!
//! Publishers mostly say one thing many times over. Such messages are collected while the input is
//! read, and then each subscriber's outbox gets all of them at once, which costs less than a visit
//! for each, and far less when there are more outboxes than the processor's cache holds. Nothing
//! else is decided in between, so nobody can tell the difference.

use std::ops::Range;

use super::deliver::FanOut;
use super::verbs::Intake;
use super::{Exchange, PRODUCED_BYTES_MAX, Shard};
use crate::codec::nats::parse::Publish;
use crate::exchange::router::Reach;
use crate::outbox::SHARED_BYTES_MIN;

/// Messages for the topic of the intake's memo that are not delivered yet.
#[derive(Default)]
pub(super) struct Run {
    messages: Vec<Waiting>,
    bytes: usize,
    /// How many get each of them, at most.
    width: usize,
}

/// What follows the sid of a delivery, as a range of the chunk.
pub(super) struct Waiting {
    pub(super) tail: Range<usize>,
    pub(super) payload_bytes: u64,
}

impl Shard {
    /// Whether nothing is left to be done for a message, because it has the topic of the last one.
    #[inline(always)]
    pub(super) fn takes_with_others(
        &mut self,
        intake: &Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        is_reserved: bool,
    ) -> bool {
        let may_run = intake.may_run && !is_reserved;
        match intake.memo.reach() {
            Reach::Nowhere => may_run && self.goes_nowhere(intake, publish),
            Reach::WithLeafs if !self.exchange.crossings.serves_leafs() => false,
            // While a run is collected, the memo is that of its topic.
            Reach::Plain | Reach::WithLeafs => {
                let is_taken = may_run && self.extend_run(intake, publish, from);
                if !is_taken {
                    self.end_run(intake);
                }
                is_taken
            }
            Reach::Unsaid => false,
        }
    }

    /// Puts a message aside when it goes to the same subscribers as the last one. What the engine
    /// would have to look at more closely is left to the usual way.
    #[inline]
    fn extend_run(&mut self, intake: &Intake<'_>, publish: &Publish<'_>, from: usize) -> bool {
        let is_plain = publish.reply.is_empty()
            && publish.header_bytes == 0
            && !publish.args.is_empty()
            && publish.body.len() < SHARED_BYTES_MIN;
        if !is_plain || !self.exchange.routers[intake.account].holds(intake.memo, publish.topic) {
            return false;
        }
        if self.exchange.run.messages.is_empty() {
            self.exchange.run.width = self.width_of_run(intake);
        }
        let tail = from + publish.args.start..from + publish.body.end;
        self.exchange.run.bytes += tail.len() + publish.topic.len();
        let payload_bytes = publish.payload_bytes() as u64;
        self.exchange.run.messages.push(Waiting {
            tail,
            payload_bytes,
        });
        if self
            .exchange
            .run
            .bytes
            .saturating_mul(self.exchange.run.width)
            > PRODUCED_BYTES_MAX
        {
            self.end_run(intake);
        }
        true
    }

    fn width_of_run(&self, intake: &Intake<'_>) -> usize {
        let leafs = match intake.memo.reach() {
            Reach::WithLeafs => self.leafs_in(intake.account),
            _ => 0,
        };
        self.exchange.routers[intake.account].width(intake.memo) + leafs
    }

    /// Whether a message has the topic of the last one, which nobody wants, and there is nobody to be
    /// told of that either.
    #[inline]
    fn goes_nowhere(&self, intake: &Intake<'_>, publish: &Publish<'_>) -> bool {
        publish.reply.is_empty()
            && publish.header_bytes == 0
            && self.exchange.routers[intake.account].holds(intake.memo, publish.topic)
    }

    /// Delivers what was put aside.
    #[inline]
    pub(super) fn end_run(&mut self, intake: &Intake<'_>) {
        if !self.exchange.run.messages.is_empty() {
            self.deliver_run(intake);
        }
    }

    #[inline(never)]
    fn deliver_run(&mut self, intake: &Intake<'_>) {
        let mut run = std::mem::take(&mut self.exchange.run);
        let Shard {
            exchange:
                Exchange {
                    routers,
                    subs,
                    sessions,
                    pending,
                    ..
                },
            ..
        } = self;
        let route = routers[intake.account].held_route(intake.memo);
        let mut fan_out = FanOut {
            sessions,
            subs,
            pending,
            origin: intake.origin,
        };
        for id in &route.plain {
            fan_out.deliver_run(*id, route, intake.chunk, &run.messages);
        }
        if intake.memo.reach() == Reach::WithLeafs {
            self.give_run_to_leafs(intake, &run.messages);
        }
        run.messages.clear();
        run.bytes = 0;
        self.exchange.run = run;
        self.settle_if_needed();
    }
}
