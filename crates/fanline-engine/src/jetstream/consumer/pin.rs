//! Pinning: in a priority group with the policy `pinned_client`, only one client receives records.

use super::event::ConsumerEvent;
use super::machine::Consumer;
use super::rules::Rules;
use super::shared::CallContext;
use super::status::Status;
use crate::jetstream::PriorityPolicy;

/// The client to which a consumer is pinned, if any.
#[derive(Debug, Default)]
pub(super) struct Pin {
    pinned: Option<Pinned>,
}

#[derive(Debug)]
struct Pinned {
    id: String,
    /// Time at which the client was pinned, in nanoseconds since 1970 UTC.
    since_unix_nanos: i64,
    /// Time at which the client is unpinned, in nanoseconds since the server's start.
    deadline: u64,
}

impl Pin {
    /// Returns the id of the pinned client.
    pub(super) fn id(&self) -> Option<&str> {
        self.pinned.as_ref().map(|pinned| pinned.id.as_str())
    }

    /// Returns the time at which the client was pinned, in nanoseconds since 1970 UTC.
    pub(super) fn since_unix_nanos(&self) -> Option<i64> {
        self.pinned.as_ref().map(|pinned| pinned.since_unix_nanos)
    }

    /// Returns whether a request with this pin id may receive records.
    pub(super) fn admits(&self, id: &str, policy: PriorityPolicy) -> bool {
        policy != PriorityPolicy::PinnedClient || self.id().unwrap_or("") == id
    }

    /// Postpones the deadline of the pinned client, after it has sent a request.
    pub(super) fn used(&mut self, at: u64, rules: &Rules) {
        if let Some(pinned) = &mut self.pinned {
            pinned.deadline = at.saturating_add(rules.priority_timeout_nanos);
        }
    }

    /// Returns the time at which the pinned client is unpinned if no request arrives.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.pinned.as_ref().map(|pinned| pinned.deadline)
    }
}

impl Consumer {
    /// Pins the client of a request, unless another client is pinned.
    pub(super) fn pin_request(&mut self, at: usize, context: &mut CallContext<'_>) {
        if self.pin.pinned.is_some() {
            return;
        }
        let Some(request) = self.requests.get_mut(at) else {
            return;
        };
        let id = context.shared.random.id();
        request.id.clone_from(&id);
        self.pin.pinned = Some(Pinned {
            id: id.clone(),
            since_unix_nanos: context.now.unix_nanos,
            deadline: context.at.saturating_add(self.rules.priority_timeout_nanos),
        });
        let group = self.priority_group();
        context.publish_event(
            self.name(),
            &ConsumerEvent::Pinned {
                group,
                pinned_id: &id,
            },
        );
    }

    /// Unpins the pinned client.
    pub(super) fn unpin(&mut self, reason: &str, context: &mut CallContext<'_>) {
        let Some(pinned) = self.pin.pinned.take() else {
            return;
        };
        // Requests with the old id would never receive records. The status makes the client send new ones.
        self.requests.remove_where(|request| {
            let is_its = request.id == pinned.id;
            if is_its {
                context.send(&request.reply, b"", Status::WrongPinId(request.remaining()));
            }
            is_its
        });
        let group = self.priority_group();
        context.publish_event(self.name(), &ConsumerEvent::Unpinned { group, reason });
    }

    /// Unpins the client if it has sent no request for too long, and none of its requests waits for records.
    pub(super) fn expire_pin(&mut self, context: &mut CallContext<'_>) {
        if self
            .pin
            .next_deadline()
            .is_none_or(|deadline| deadline > context.at)
        {
            return;
        }
        let id = self.pin.id().unwrap_or_default().to_owned();
        let mut is_waiting = false;
        self.requests.remove_where(|request| {
            let is_pinned = request.id == id;
            let is_there = !is_pinned || context.port.has_interest(&request.reply);
            is_waiting |= is_pinned && is_there;
            !is_there
        });
        if is_waiting {
            self.pin.used(context.at, &self.rules);
        } else {
            self.unpin("timeout", context);
        }
    }

    /// Returns the name of the priority group; there is at most one.
    pub(super) fn priority_group(&self) -> &str {
        self.config
            .priority_groups
            .first()
            .map_or("", String::as_str)
    }
}
