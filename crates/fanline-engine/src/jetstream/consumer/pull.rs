//! Handling of pull requests.

use super::machine::Consumer;
use super::request::PullRequest;
use super::requests::Request;
use super::shared::CallContext;
use super::status::{Remaining, Status};
use crate::jetstream::PriorityPolicy;
use crate::time::Nanos;

impl Consumer {
    /// Handles a pull request. `reply` is the subject to which the records are sent. A request without a
    /// reply subject is ignored.
    ///
    /// Records are delivered when the consumer is served next.
    pub(super) fn handle_pull(&mut self, body: &[u8], reply: &[u8], context: &mut CallContext<'_>) {
        if reply.is_empty() {
            return;
        }
        if self.push.is_some() {
            context.send(reply, b"", Status::ConsumerIsPushBased);
            return;
        }
        let mut request = match PullRequest::parse(body) {
            Ok(request) => request,
            Err(why) => {
                context.send(reply, b"", Status::BadRequest(&why));
                return;
            }
        };
        let expires_max = match self.rules.expires_max {
            Nanos::ZERO => String::new(),
            max => max.to_string(),
        };
        let refused = request.refused(&self.rules, &self.config.priority_groups, &expires_max);
        if let Some(status) = refused.or_else(|| self.refused_now(&request, context)) {
            context.send(reply, b"", status);
            return;
        }
        self.last_used = context.at;
        if self.rules.priority == PriorityPolicy::PinnedClient && !request.id.is_empty() {
            self.pin.used(context.at, &self.rules);
        }
        if self.rules.priority != PriorityPolicy::Prioritized {
            request.priority = 0;
        }
        self.requests.push(Request::new(request, reply, context.at));
    }

    /// Returns the status with which a request is refused in the current state, if any.
    fn refused_now(
        &mut self,
        request: &PullRequest,
        context: &mut CallContext<'_>,
    ) -> Option<Status<'static>> {
        match self.pin.id() {
            _ if request.id.is_empty() => {}
            None => return Some(Status::WrongPinId(Remaining::default())),
            Some(pinned) if pinned != request.id => return Some(Status::PinIdMismatch),
            Some(_) => {}
        }
        // While the consumer is paused, a request that does not wait gets no records, even if there are some.
        let is_paused = self.is_paused(context.now.unix_nanos);
        if request.no_wait && request.expires == 0 && is_paused {
            return Some(Status::NoMessages);
        }
        if request.no_wait {
            let available = self.backlog.count() + self.pending.queued() as u64;
            if available == 0 && request.expires == 0 {
                return Some(Status::NoMessages);
            }
            if available > 0 && available < self.requests.records_requested() {
                self.drop_disconnected(context);
                if available < self.requests.records_requested() {
                    return Some(Status::RequestsPending);
                }
            }
        }
        if self.requests.len() >= self.rules.waiting_max {
            self.drop_disconnected(context);
        }
        (self.requests.len() >= self.rules.waiting_max).then_some(Status::ExceededMaxWaiting)
    }

    /// Removes requests whose reply subject no longer has a subscriber.
    pub(super) fn drop_disconnected(&mut self, context: &mut CallContext<'_>) {
        self.requests
            .remove_where(|request| !context.port.has_interest(&request.reply));
    }

    /// Ends all requests with a status. `last` returns the status for the numbers of records and bytes that a
    /// request has not received.
    pub(super) fn end_requests(
        &mut self,
        last: fn(Remaining) -> Status<'static>,
        context: &mut CallContext<'_>,
    ) {
        while let Some(request) = self.requests.remove(0) {
            context.send(&request.reply, b"", last(request.remaining()));
        }
    }
}
