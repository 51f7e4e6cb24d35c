//! Messages that follow each other to one subject are delivered together.
//!
//! Publishers mostly send to one subject many times over. Such messages are collected while the input is
//! read, and then each subscriber's outbox gets all of them at once, which costs less than a visit
//! for each, and far less when there are more outboxes than the processor's cache holds. Nothing
//! else is decided in between, so clients see no difference.

use super::Exchange;
use super::deliver::{FanOut, Kind, Waiting};
use super::message::Origin;
use super::outputs::PRODUCED_BYTES_MAX;
use super::router::{Reach, RouteMemo};
use super::session::SessionId;
use crate::auth::{AccountId, RightsId};
use crate::codec::nats::parse::{ParseLimits, Publish};
use crate::outbox::{Chunk, SHARED_BYTES_MIN};

/// What the publishes of one client have in common until it sends another verb.
pub(crate) struct Intake<'a> {
    pub(crate) id: SessionId,
    pub(crate) account: AccountId,
    pub(crate) chunk: &'a Chunk,
    pub(crate) origin: Origin<'a>,
    pub(crate) limits: ParseLimits,
    pub(crate) memo: RouteMemo,
    pub(crate) is_admitted: bool,
    /// Not everything may be published.
    pub(crate) is_restricted: bool,
    /// The rights that say so, if it is these alone. A session gets no others while its input is decided.
    pub(crate) rights: Option<RightsId>,
    /// Verbose and pedantic clients get an answer to each publish.
    pub(crate) is_answered: bool,
    /// Nothing has to be sent or traced for each single publish.
    pub(crate) may_run: bool,
    /// Subjects of this account may be mapped.
    pub(crate) is_mapped: bool,
    pub(crate) msgs: u64,
    pub(crate) bytes: u64,
}

impl Intake<'_> {
    #[inline]
    pub(crate) fn count(&mut self, publish: &Publish<'_>) {
        self.msgs += 1;
        self.bytes += publish.payload_bytes() as u64;
    }
}

/// Messages for the subject of the intake's memo that are not delivered yet.
#[derive(Default)]
pub(super) struct Run {
    messages: Vec<Waiting>,
    bytes: usize,
    /// How many get each of them, at most.
    width: usize,
}

impl<K: Kind> Exchange<K> {
    /// Puts a message aside when it goes to the same subscribers as the last one, or to none like the last one. False
    /// when it has to be looked at more closely; then nothing is left aside.
    #[inline(always)]
    pub(crate) fn coalesce(
        &mut self,
        intake: &Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        is_reserved: bool,
    ) -> bool {
        let is_plain = publish.reply.is_empty() && publish.header_bytes == 0;
        let may_run = intake.may_run && !is_reserved && is_plain;
        let router = &self.routers[intake.account];
        match intake.memo.reach() {
            Reach::Nowhere => return may_run && router.holds(intake.memo, publish.topic),
            Reach::WithLinks(set) if !self.targets.serves(set) => return false,
            Reach::Unsaid => return false,
            // While a run is collected, the memo is that of its subject.
            Reach::Plain | Reach::WithLinks(_) => {}
        }
        let may_run = may_run
            && !publish.args.is_empty()
            && publish.body.len() < SHARED_BYTES_MIN
            && router.holds(intake.memo, publish.topic);
        if !may_run {
            self.end_run(intake);
            return false;
        }
        if self.run.messages.is_empty() {
            self.run.width = self.width_of_run(intake);
        }
        let run = &mut self.run;
        let tail = from + publish.args.start..from + publish.body.end;
        run.bytes += tail.len() + publish.topic.len();
        let payload_bytes = publish.payload_bytes() as u64;
        run.messages.push(Waiting {
            tail,
            payload_bytes,
        });
        if run.bytes.saturating_mul(run.width) > PRODUCED_BYTES_MAX {
            self.end_run(intake);
        }
        true
    }

    /// How many get each message of a run, at most.
    fn width_of_run(&mut self, intake: &Intake<'_>) -> usize {
        let route = self.routers[intake.account].held_route(intake.memo);
        let links = match intake.memo.reach() {
            Reach::WithLinks(set) => self.links[set].width(intake.account, route.subject()),
            _ => 0,
        };
        route.plain.len() + links
    }

    /// Delivers what was put aside.
    #[inline]
    pub(crate) fn end_run(&mut self, intake: &Intake<'_>) {
        if !self.run.messages.is_empty() {
            self.deliver_run(intake);
        }
    }

    #[inline(never)]
    fn deliver_run(&mut self, intake: &Intake<'_>) {
        let mut run = std::mem::take(&mut self.run);
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            ..
        } = self;
        let route = routers[intake.account].held_route(intake.memo);
        let mut fan_out = FanOut::<K> {
            sessions,
            subs,
            outputs,
            shared,
            account: intake.account,
            subject: route.subject(),
            origin: intake.origin,
            is_from_device: false,
            served: None,
            trace: None,
            watches: false,
        };
        for id in &route.plain {
            fan_out.deliver_run(*id, route, intake.chunk, &run.messages);
        }
        if let Reach::WithLinks(set) = intake.memo.reach() {
            self.deliver_run_to_links(set, intake, &run.messages);
        }
        run.messages.clear();
        run.bytes = 0;
        self.run = run;
        self.settle_if_needed(None);
    }
}
