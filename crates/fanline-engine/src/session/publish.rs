//! The path of a published message: PUB, HPUB, and messages of MQTT clients.

use super::AnySession;
use super::permit::Permit;
use crate::accounts::Mapped;
use crate::codec::nats::args;
use crate::codec::nats::error::ClientError;
use crate::codec::nats::parse::Publish;
use crate::exchange::message::{Context, Dispatch, Message};
use crate::exchange::router::{RouteMemo, is_measured};
use crate::exchange::run::Intake;
use crate::exchange::text::{first_line, text};
use crate::exchange::tracing::Traced;
use crate::headers::no_responders_status;
use crate::outbox::Chunk;
use crate::subject::is_literal_subject;
use crate::trace::may_request_trace;

impl AnySession<'_> {
    /// Publishes a message. `from` is the offset of its verb in the chunk.
    #[inline(always)]
    pub(crate) fn publish(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        context: Context<'_>,
    ) {
        if publish.header_bytes > 0 && asks_for_trace(intake.chunk, publish, from) {
            return self.publish_traced(intake, publish, from, context);
        }
        match intake.is_mapped {
            false => self.publish_as(intake, publish, from, context),
            true => self.publish_mapped(intake, publish, from, context),
        }
    }

    /// Publishes a message whose subject may be mapped to another one.
    #[cold]
    pub(super) fn publish_mapped(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        mut context: Context<'_>,
    ) {
        let mut renamed = std::mem::take(&mut self.broker.accounts.renamed);
        let mapped = match intake.is_mapped {
            true => (self.broker).rename(intake.account, publish.subject, &mut renamed),
            false => Mapped::Unchanged,
        };
        match mapped {
            Mapped::Unchanged => self.publish_as(intake, publish, from, context),
            Mapped::Renamed => {
                if let Some(trace) = context.trace.as_deref_mut() {
                    trace.record_mapping(&renamed);
                }
                let publish = Publish {
                    subject: &renamed,
                    ..publish.clone()
                };
                self.publish_as(intake, &publish, from, context);
            }
            Mapped::Lost => intake.count(publish),
        }
        self.broker.accounts.renamed = renamed;
    }

    /// Publishes a message under its mapped subject. If the message is traced, its trace has already begun.
    #[inline(always)]
    fn publish_as(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
        mut context: Context<'_>,
    ) {
        let chunk = intake.chunk;
        intake.count(publish);
        if self.broker.exchange.outputs.traces {
            self.trace_publish(publish, &chunk[from..]);
        }
        let is_reserved = is_reserved(publish);
        let has_context = context.is_from_device || context.trace.is_some();
        let is_special = is_reserved || publish.header_bytes > 0 && has_context;
        if (self.broker.exchange).coalesce(intake, publish, from, is_special) {
            return;
        }
        let mut permit = Permit::Known;
        if intake.is_restricted && !self.knows_permitted(intake, publish.subject) {
            permit = self.permit_publish(publish.subject);
        }
        if permit == Permit::Denied {
            record_refusal(context.trace, publish);
            return;
        }
        if is_reserved && !self.may_publish(publish, context.trace.as_deref_mut()) {
            return;
        }
        if intake.is_answered {
            self.answer_publish(publish);
        }
        let mut for_once = RouteMemo::default();
        let memo = match permit {
            Permit::AsReply => &mut for_once,
            _ => &mut intake.memo,
        };
        let message = Message::published(chunk, publish, from);
        let mut dispatch = Dispatch {
            account: intake.account,
            subject: publish.subject,
            message: &message,
            origin: intake.origin,
            context,
        };
        let delivered = match message.args.is_empty() {
            false => self.broker.dispatch(&mut dispatch, memo),
            true => self.dispatch_rewritten(dispatch, publish, memo),
        };
        if permit == Permit::Granted {
            self.record_permitted(intake, publish.subject);
        }
        if !delivered && !publish.reply.is_empty() {
            self.send_no_responders(publish);
        }
    }

    /// Rewrites the arguments of a message to the form that subscribers receive, and delivers the message.
    #[cold]
    pub(super) fn dispatch_rewritten(
        &mut self,
        dispatch: Dispatch<'_>,
        publish: &Publish<'_>,
        memo: &mut RouteMemo,
    ) -> bool {
        let before = dispatch.message;
        let mut scratch = std::mem::take(&mut self.broker.exchange.scratch);
        scratch.clear();
        write_args(&mut scratch, publish);
        let args_bytes = scratch.len();
        if before.shared.is_none() {
            scratch.extend_from_slice(before.body);
        }
        let message = Message {
            reply_bytes: publish.reply.len(),
            args: &scratch[..args_bytes],
            tail: &scratch,
            shared: (before.shared.as_ref()).map(|(chunk, range)| (*chunk, range.clone())),
            ..*before
        };
        let mut dispatch = Dispatch {
            message: &message,
            ..dispatch
        };
        let delivered = match dispatch.context.is_passed_on {
            true => self.broker.exchange.deliver_passed_on(&mut dispatch),
            false => self.broker.dispatch(&mut dispatch, memo),
        };
        self.broker.exchange.scratch = scratch;
        delivered
    }

    /// Returns whether a client may publish to a reserved subject; sends it an error if not.
    #[cold]
    fn may_publish(&mut self, publish: &Publish<'_>, trace: Option<&mut Traced>) -> bool {
        const SUBJECTS: [&[u8]; 3] = [b"_GR_.", b"$GR.", b"$NRG."];
        const REPLIES: [&[u8]; 4] = [b"_R_.", b"$JS.ACK.", b"_GR_.", b"$GR."];
        if REPLIES
            .iter()
            .any(|prefix| publish.reply.starts_with(prefix))
        {
            self.broker
                .send_error(self.id, &ClientError::ReplyDenied(text(publish.reply)));
            return false;
        }
        if SUBJECTS
            .iter()
            .any(|prefix| publish.subject.starts_with(prefix))
        {
            self.deny_publish(publish.subject);
            record_refusal(trace, publish);
            return false;
        }
        if is_measured(publish.subject) {
            self.broker.send_half(self.id, publish.subject);
        }
        true
    }

    /// Sends verbose and pedantic clients the answer to a publish.
    #[cold]
    fn answer_publish(&mut self, publish: &Publish<'_>) {
        let options = &self.broker.exchange.sessions[self.id.index()].options;
        let (verbose, pedantic) = (options.verbose, options.pedantic);
        if pedantic && !is_literal_subject(publish.subject) {
            self.broker
                .send_error(self.id, &ClientError::InvalidPublishSubject);
        }
        if verbose {
            self.broker.exchange.send(self.id, b"+OK\r\n");
        }
    }

    /// Answers a request that has no responder, at the requester's own subscription to the reply subject.
    #[cold]
    fn send_no_responders(&mut self, publish: &Publish<'_>) {
        if !self.session().options.no_responders {
            return;
        }
        let account = self.session().account;
        let route =
            self.broker.exchange.routers[account].route(publish.reply, &mut RouteMemo::default());
        let candidates = route.plain.clone();
        let is_own = |sub: &&_| self.broker.exchange.subs.get(**sub).session() == self.id.0;
        let Some(own) = candidates.iter().find(is_own) else {
            return;
        };
        let mut status = Vec::new();
        let status = no_responders_status(&mut status, publish.subject);
        let mut line = b"HMSG ".to_vec();
        line.extend_from_slice(publish.reply);
        line.push(b' ');
        line.extend_from_slice(self.broker.exchange.subs.get(*own).sid_and_space());
        line.extend_from_slice(format!("{0} {0}\r\n", status.len()).as_bytes());
        line.extend_from_slice(status);
        line.extend_from_slice(b"\r\n");
        self.broker.exchange.send(self.id, &line);
    }

    pub(crate) fn acknowledge(&mut self) {
        if self.session().options.verbose {
            self.broker.exchange.send(self.id, b"+OK\r\n");
        }
    }

    #[cold]
    fn trace_publish(&mut self, publish: &Publish<'_>, input: &[u8]) {
        let body = &input[publish.body.start..publish.body.end - 2];
        self.broker
            .exchange
            .outputs
            .trace_lines
            .push((self.id, format!("<<- [{}]", first_line(input))));
        self.broker
            .exchange
            .outputs
            .trace_message(self.id, "<<-", body, publish.header_bytes);
    }
}

/// Notes in the trace of a message that it was not permitted.
fn record_refusal(trace: Option<&mut Traced>, publish: &Publish<'_>) {
    if let Some(trace) = trace {
        trace.record_refusal(&ClientError::PublishDenied(text(publish.subject)));
    }
}

/// Returns whether the subject or the reply may be reserved. Few other subjects have these first characters.
#[inline]
fn is_reserved(publish: &Publish<'_>) -> bool {
    let may_be = |name: &[u8]| match name {
        [b'$', ..] => true,
        [b'_', second, ..] => matches!(second, b'R' | b'G'),
        _ => false,
    };
    may_be(publish.subject) || may_be(publish.reply)
}

/// Returns whether a message may request a trace. Not inlined, so that the path of messages without headers
/// stays short.
#[inline(never)]
pub(crate) fn asks_for_trace(chunk: &Chunk, publish: &Publish<'_>, from: usize) -> bool {
    let start = from + publish.body.start;
    may_request_trace(&chunk[start..start + publish.header_bytes])
}

/// Writes the arguments after the subject in the form that all subscribers understand.
fn write_args(out: &mut Vec<u8>, publish: &Publish<'_>) {
    args::write_args(
        out,
        publish.reply,
        publish.header_bytes,
        publish.payload_bytes(),
    );
}
