//! Batched delivery of consecutive messages to one subject.
//!
//! Publishers often send many messages to one subject in a row. The exchange collects such a run while input
//! is read, and then appends the whole run to each subscriber's outbox. This costs less than one visit per
//! message, especially if the outboxes do not fit into the processor's cache. Nothing else is decided in
//! between, so clients see no difference.

use super::Exchange;
use super::deliver::{FanOut, Kind, RunMessage};
use super::message::Origin;
use super::outputs::PRODUCED_BYTES_MAX;
use super::remote::Remote;
use super::router::{Reach, RouteMemo};
use super::session::SessionId;
use crate::auth::{AccountId, RightsId};
use crate::codec::nats::parse::{ParseLimits, Publish};
use crate::outbox::{Chunk, SHARED_BYTES_MIN};

/// State that the publishes of one client share until it sends another verb.
pub(crate) struct Intake<'a> {
    pub(crate) id: SessionId,
    pub(crate) account: AccountId,
    pub(crate) chunk: &'a Chunk,
    pub(crate) origin: Origin<'a>,
    pub(crate) limits: ParseLimits,
    pub(crate) memo: RouteMemo,
    pub(crate) is_admitted: bool,
    /// Whether permissions restrict what the client publishes.
    pub(crate) is_restricted: bool,
    /// The client's rights, if no further rights apply. They do not change while input is processed.
    pub(crate) rights: Option<RightsId>,
    /// Whether each publish is answered, because the client is verbose or pedantic.
    pub(crate) is_answered: bool,
    /// Whether messages may be collected. Always false for a client whose publishes need an answer or a
    /// trace.
    pub(crate) may_run: bool,
    /// Whether the account has subject mappings.
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

/// Undelivered messages to the subject of the intake's cached route (`memo`).
#[derive(Default)]
pub(super) struct Run {
    messages: Vec<RunMessage>,
    bytes: usize,
    /// Largest number of deliveries for each message.
    width: usize,
}

impl<K: Kind> Exchange<K> {
    /// Collects a message if its subject is that of the last message and the subject's route is unchanged. A
    /// subject without a subscriber needs no delivery, so nothing is collected for it. Returns false if the
    /// caller must publish the message by itself. In that case, the messages that were collected earlier have
    /// been delivered. The caller must publish by itself a message that needs further checks or has a context
    /// (`is_special`).
    #[inline(always)]
    pub(crate) fn coalesce(
        &mut self,
        intake: &Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        is_special: bool,
    ) -> bool {
        let is_plain = publish.reply.is_empty() && publish.header_bytes == 0;
        let may_run = intake.may_run && !is_special && is_plain;
        let router = &self.routers[intake.account];
        match intake.memo.reach() {
            Reach::Nowhere => return may_run && router.holds(intake.memo, publish.subject),
            Reach::Shard(shard) => {
                return intake.may_run
                    && !is_special
                    && self.post_next(shard, intake, publish, from);
            }
            Reach::WithLinks(set) if !self.targets.serves(set) => return false,
            Reach::Unknown => return false,
            // While a run is collected, the memo refers to its route.
            Reach::Plain | Reach::WithLinks(_) => {}
        }
        let may_run = may_run
            && !publish.args.is_empty()
            && publish.body.len() < SHARED_BYTES_MIN
            && router.holds(intake.memo, publish.subject);
        if !may_run {
            self.end_run(intake);
            return false;
        }
        if self.run.messages.is_empty() {
            self.run.width = self.width_of_run(intake);
        }
        let run = &mut self.run;
        let tail = from + publish.args.start..from + publish.body.end;
        run.bytes += tail.len() + publish.subject.len();
        let payload_bytes = publish.payload_bytes() as u64;
        run.messages.push(RunMessage {
            tail,
            payload_bytes,
        });
        if run.bytes.saturating_mul(run.width) > PRODUCED_BYTES_MAX {
            self.end_run(intake);
        }
        true
    }

    /// Adds a message to the run at the end of another shard's batch, if it has the subject of that run.
    /// Returns false if the caller must publish the message by itself.
    #[inline]
    fn post_next(
        &mut self,
        shard: u16,
        intake: &Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
    ) -> bool {
        let is_posted = !publish.args.is_empty()
            && publish.body.len() < SHARED_BYTES_MIN
            && self.routers[intake.account].holds(intake.memo, publish.subject);
        is_posted
            && self.outgoing[usize::from(shard)].push_next(
                intake.account,
                publish.subject,
                &intake.chunk[from + publish.args.start..from + publish.body.end],
                publish.args.len(),
                (publish.reply.len(), publish.header_bytes),
            )
    }

    /// Returns the largest number of deliveries for each message of a run.
    fn width_of_run(&mut self, intake: &Intake<'_>) -> usize {
        let route = self.routers[intake.account].route_of(intake.memo);
        let links = match intake.memo.reach() {
            Reach::WithLinks(set) => self.links[set].width(intake.account, route.subject()),
            _ => 0,
        };
        route.plain.len() + links
    }

    /// Delivers the collected messages.
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
        let route = routers[intake.account].route_of(intake.memo);
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
        if let Reach::WithLinks(set) = intake.memo.reach()
            && !intake.origin.via.excluded().contains(Remote::Links(set))
        {
            self.deliver_run_to_links(set, intake, &run.messages);
        }
        run.messages.clear();
        run.bytes = 0;
        self.run = run;
        self.settle_if_needed(None);
    }
}
