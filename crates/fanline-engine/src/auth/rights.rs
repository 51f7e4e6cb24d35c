//! Permissions, compiled for lookups.

use std::fmt;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::imports::{covers, overlap};
use super::permissions::{AllowResponses, Allowed, Pattern, Permissions};
use crate::subject::Filter;
use crate::subject::trie::{Trie, Vacant};

/// The compiled permissions of a user. All sessions of the user share them.
pub struct Rights {
    publish: Rules,
    subscribe: Rules,
    responses: Option<AllowResponses>,
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rights").finish_non_exhaustive()
    }
}

impl Rights {
    /// Compiles permissions.
    pub fn new(permissions: &Permissions) -> Self {
        let mut publish = Rules::new(&permissions.publish);
        if permissions.responses.is_some() && publish.allow.is_none() {
            // A user with `allow_responses` and no other permission to publish may only reply.
            publish.allow = Some(Patterns::default());
        }
        Rights {
            publish,
            subscribe: Rules::new(&permissions.subscribe),
            responses: permissions.responses,
        }
    }

    /// Returns the subjects for publishing and for subscribing, as configured.
    pub(crate) fn told(&self) -> [Lists; 2] {
        [&self.publish, &self.subscribe].map(|rules| Lists {
            allow: rules.allow.as_ref().map_or_else(Vec::new, Patterns::texts),
            deny: rules.deny.texts(),
        })
    }

    /// Returns nats-server's JSON form: -1 is no limit, and times are in nanoseconds.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({});
        for (name, lists) in ["publish", "subscribe"].into_iter().zip(self.told()) {
            for (kind, list) in [("allow", lists.allow), ("deny", lists.deny)] {
                if !list.is_empty() {
                    shown[name][kind] = list.into();
                }
            }
        }
        if let Some(responses) = self.responses {
            let number = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
            let max = responses.max.map_or(-1, |max| number(max.into()));
            let ttl = responses.expires.map_or(-1, |ttl| number(ttl.as_nanos()));
            shown["responses"] = json!({ "max": max, "ttl": ttl });
        }
        shown
    }

    /// Returns the permission to publish to the replies of received messages.
    pub(crate) fn responses(&self) -> Option<AllowResponses> {
        self.responses
    }

    /// Returns whether the user may publish to a subject, replies aside.
    pub(crate) fn may_publish(&self, topic: &[u8]) -> bool {
        let allow = self.publish.allow.as_ref();
        allow.is_none_or(|allow| allow.matching(topic, b"").plain)
            && !self.publish.deny.matching(topic, b"").plain
    }

    /// Returns whether the user may subscribe. A filter with wildcards that also matches denied subjects may
    /// pass; [`filters`](Rights::filters) then returns true.
    pub(crate) fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.subscribe.allow_queue(filter, queue) && !self.subscribe.deny_queue(filter, queue)
    }

    /// Returns whether some messages for an allowed subscription must not be delivered.
    pub(crate) fn filters(&self, filter: &[u8], queue: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(filter) else {
            return true;
        };
        let is_denied = |pattern: &Pattern| overlap(pattern.subject(), text);
        let rules = &self.subscribe;
        !Filter::parsed(filter).is_literal()
            && (rules.deny.list.iter().any(is_denied)
                || (rules.allow.as_ref()).is_some_and(|allow| !allow.cover(text, queue)))
    }

    /// Returns whether a message may be delivered to a subscription with such a filter.
    pub(crate) fn may_receive(&self, topic: &[u8], queue: &[u8]) -> bool {
        self.may_subscribe(topic, queue)
    }
}

/// The identity of a user's rights, for comparison only. Valid as long as the rights are in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RightsId(*const Rights);

impl RightsId {
    pub(crate) fn of(rights: &Arc<Rights>) -> Self {
        RightsId(Arc::as_ptr(rights))
    }
}

/// The rights under which an operation was permitted. Rights are immutable, so every holder of the same
/// rights has the permission; it ends when other rights replace them.
#[derive(Clone, Debug)]
pub(crate) struct Permitted(Weak<Rights>);

impl Permitted {
    pub(crate) fn under(rights: &Arc<Rights>) -> Self {
        Permitted(Arc::downgrade(rights))
    }

    /// A weak reference keeps the allocation, though not its content, so no other rights have this address.
    #[inline]
    pub(crate) fn is_under(&self, rights: RightsId) -> bool {
        std::ptr::eq(self.0.as_ptr(), rights.0)
    }
}

/// Subjects, each followed by a queue if it applies to that queue only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// One direction.
struct Rules {
    allow: Option<Patterns>,
    deny: Patterns,
}

impl Rules {
    fn new(allowed: &Allowed) -> Self {
        // An empty list allows everything, like a missing one.
        let allow = allowed.allow.as_deref().filter(|list| !list.is_empty());
        Rules {
            allow: allow.map(Patterns::new),
            deny: Patterns::new(&allowed.deny),
        }
    }

    fn allow_queue(&self, filter: &[u8], queue: &[u8]) -> bool {
        let Some(allow) = &self.allow else {
            return true;
        };
        let found = allow.matching(filter, queue);
        match !queue.is_empty() && found.names_queues {
            // Once queues are named, other queues are denied.
            true => found.queue,
            false => found.plain,
        }
    }

    fn deny_queue(&self, filter: &[u8], queue: &[u8]) -> bool {
        let found = self.deny.matching(filter, queue);
        found.plain || found.queue
    }
}

/// A list of patterns that are matched together.
#[derive(Default)]
struct Patterns {
    trie: Trie<Held>,
    list: Vec<Pattern>,
}

/// The entries at one subject filter.
#[derive(Default)]
struct Held {
    plain: bool,
    queues: Vec<String>,
}

impl Vacant for Held {
    fn is_vacant(&self) -> bool {
        !self.plain && self.queues.is_empty()
    }
}

/// The match of a subject and a queue.
#[derive(Clone, Copy, Default)]
struct Found {
    /// A pattern without a queue matches.
    plain: bool,
    /// Patterns with queues match the subject.
    names_queues: bool,
    /// One of them matches the queue.
    queue: bool,
}

impl Patterns {
    fn new(list: &[Pattern]) -> Self {
        let mut trie: Trie<Held> = Trie::default();
        for pattern in list {
            let node = trie.insert(pattern.subject().as_bytes());
            let held = trie.value_mut(node);
            match pattern.queue() {
                None => held.plain = true,
                Some(queue) => held.queues.push(queue.into()),
            }
        }
        Patterns {
            trie,
            list: list.to_vec(),
        }
    }

    fn texts(&self) -> Vec<String> {
        let text = |pattern: &Pattern| match pattern.queue() {
            None => pattern.subject().to_owned(),
            Some(queue) => format!("{} {queue}", pattern.subject()),
        };
        self.list.iter().map(text).collect()
    }

    /// Returns whether one pattern allows every subject of a filter for this queue. A pattern with a queue
    /// allows nothing to subscriptions without one; where it matches too, a pattern without a queue allows
    /// nothing to queue subscriptions.
    fn cover(&self, filter: &str, queue: &[u8]) -> bool {
        let names_queues =
            (self.list.iter()).any(|p| p.queue().is_some() && overlap(p.subject(), filter));
        self.list.iter().any(|pattern| {
            let is_for_queue = match pattern.queue() {
                None => queue.is_empty() || !names_queues,
                Some(name) => !queue.is_empty() && Filter::parsed(name.as_bytes()).matches(queue),
            };
            is_for_queue && covers(pattern.subject(), filter)
        })
    }

    fn matching(&self, topic: &[u8], queue: &[u8]) -> Found {
        let mut found = Found::default();
        if self.list.is_empty() {
            // The common case for `deny`.
            return found;
        }
        self.trie.filters_matching(topic, &mut |held| {
            found.plain |= held.plain;
            found.names_queues |= !held.queues.is_empty();
            let is_it = |name: &String| Filter::parsed(name.as_bytes()).matches(queue);
            found.queue |= !queue.is_empty() && held.queues.iter().any(is_it);
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(publish: Allowed, subscribe: Allowed) -> Rights {
        Rights::new(&Permissions {
            publish,
            subscribe,
            responses: None,
        })
    }

    /// The decisions of nats-server 2.15 for the same permissions.
    #[test]
    fn subscriptions_as_nats_server_decides() {
        let allow = ["foo.*", "bar", "bar v1", "baz.>"];
        let allowing = Allowed::subscribe(Some(&allow), &[]).unwrap();
        let deny = ["d.x", "q", "q v1", "m.*", "> *.prod"];
        let denying = Allowed::subscribe(None, &deny).unwrap();
        let allowing = rights(Allowed::default(), allowing);
        let denying = rights(Allowed::default(), denying);
        // Filter, queue, allowed, filtered by message.
        for (filter, queue, expected, filtered) in [
            ("foo.>", "", true, true),
            ("foo.*", "", true, false),
            ("bar", "", true, false),
            ("bar", "v2", false, false),
            ("bar", "v1", true, false),
            ("baz.>", "q", true, false),
            (">", "", false, true),
            ("baz.*.>", "", true, false),
            ("*", "", false, true),
        ] {
            let (f, q) = (filter.as_bytes(), queue.as_bytes());
            assert_eq!(allowing.may_subscribe(f, q), expected, "{filter} {queue}");
            assert_eq!(allowing.filters(f, q), filtered, "{filter} {queue}");
        }
        for (filter, queue, expected, filtered) in [
            ("d.x", "", false, false),
            ("d.*", "", true, true),
            ("d.>", "v", true, true),
            ("q", "", false, false),
            ("q", "v2", false, false),
            ("q", "v1", false, false),
            ("m.>", "", false, true),
            ("m.*", "", false, true),
            ("zz", "x.prod", false, false),
            ("zz", "x.test", true, false),
            ("*.x", "", true, true),
        ] {
            let (f, q) = (filter.as_bytes(), queue.as_bytes());
            assert_eq!(denying.may_subscribe(f, q), expected, "{filter} {queue}");
            assert_eq!(denying.filters(f, q), filtered, "{filter} {queue}");
        }
        // A queue's pattern covers a filter that another pattern allowed; nats-server delivers everything
        // here.
        let mixed = ["foo.*", "foo.> q1", "bar.* q1", "bar.> q2", "baz.> q*"];
        let mixed = rights(
            Allowed::default(),
            Allowed::subscribe(Some(&mixed), &[]).unwrap(),
        );
        for (filter, queue, expected) in [
            ("foo.>", "", true),
            ("foo.>", "q1", false),
            ("foo.*", "", false),
            ("bar.>", "q1", true),
            ("bar.*", "q2", false),
        ] {
            let (f, q) = (filter.as_bytes(), queue.as_bytes());
            assert!(mixed.may_subscribe(f, q), "{filter} {queue}");
            assert_eq!(mixed.filters(f, q), expected, "{filter} {queue}");
        }
        assert!(denying.may_receive(b"d.y", b"") && !denying.may_receive(b"d.x", b""));
        assert!(allowing.may_receive(b"foo.a", b"") && !allowing.may_receive(b"foo.a.b", b""));
    }

    #[test]
    fn publishes() {
        let check = |allow: Option<&[&str]>, deny: &[&str], topic: &str, expected: bool| {
            let publish = Allowed::publish(allow, deny).unwrap();
            let rights = rights(publish, Allowed::default());
            assert_eq!(rights.may_publish(topic.as_bytes()), expected, "{topic}");
        };
        check(None, &["p.>"], "p.1", false);
        check(None, &["p.>"], "p.*", false);
        check(None, &["p.>"], "p", true);
        check(None, &["p.>"], "p..x", true);
        check(Some(&["a.*", "b.>"]), &["a.x"], "a.y", true);
        check(Some(&["a.*", "b.>"]), &["a.x"], "a.x", false);
        check(Some(&["a.*", "b.>"]), &["a.x"], "a.y.z", false);
        check(Some(&["a.*", "b.>"]), &["a.x"], "c", false);
        check(Some(&[]), &[], "anything", true);
    }

    #[test]
    fn allow_responses_alone_permits_only_replies() {
        let mut permissions = Permissions {
            responses: Some(AllowResponses::default()),
            ..Permissions::default()
        };
        assert!(!Rights::new(&permissions).may_publish(b"a"));
        permissions.publish = Allowed::publish(Some(&["a"]), &[]).unwrap();
        assert!(Rights::new(&permissions).may_publish(b"a"));
    }
}
