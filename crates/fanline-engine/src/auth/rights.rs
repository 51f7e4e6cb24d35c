//! Compiled permissions.

use std::fmt;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::imports::{covers, overlap};
use super::permissions::{AllowResponses, Allowed, Pattern, Permissions};
use crate::subject::Filter;
use crate::subject::trie::{Trie, Vacant};

/// Compiled permissions, shared by all sessions of a user.
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

impl PartialEq for Rights {
    fn eq(&self, other: &Self) -> bool {
        (self.lists(), self.responses) == (other.lists(), other.responses)
    }
}

impl Eq for Rights {}

impl Rights {
    /// Compiles permissions.
    pub fn new(permissions: &Permissions) -> Self {
        let mut publish = Rules::new(&permissions.publish);
        if permissions.responses.is_some() && publish.allow.is_none() {
            // If only responses are configured, the user may publish nothing else.
            publish.allow = Some(Patterns::default());
        }
        Rights {
            publish,
            subscribe: Rules::new(&permissions.subscribe),
            responses: permissions.responses,
        }
    }

    /// Returns the configured lists for publishing and for subscribing.
    pub(crate) fn lists(&self) -> [Lists; 2] {
        [&self.publish, &self.subscribe].map(|rules| Lists {
            allow: rules.allow.as_ref().map_or_else(Vec::new, Patterns::texts),
            deny: rules.deny.texts(),
        })
    }

    /// Returns the permissions in nats-server's JSON form. Unlimited is -1, and durations are in nanoseconds.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({});
        for (name, lists) in ["publish", "subscribe"].into_iter().zip(self.lists()) {
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

    /// Returns the rule for responses, if they are allowed.
    pub(crate) fn responses(&self) -> Option<AllowResponses> {
        self.responses
    }

    /// Returns whether the user may publish to a subject. The permission for responses is not considered.
    pub(crate) fn may_publish(&self, subject: &[u8]) -> bool {
        let allow = self.publish.allow.as_ref();
        allow.is_none_or(|allow| allow.matching(subject, b"").plain)
            && !self.publish.deny.matching(subject, b"").plain
    }

    /// Returns whether the user may subscribe. A wildcard filter may be permitted although it also matches
    /// denied subjects. In that case, [`filters`](Rights::filters) returns true.
    pub(crate) fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        self.subscribe.allow_queue(filter, queue) && !self.subscribe.deny_queue(filter, queue)
    }

    /// Returns whether permissions may deny single messages of a permitted subscription.
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

    /// Returns whether a subscription may receive a message. Only subscriptions for which
    /// [`filters`](Rights::filters) returns true need this check.
    pub(crate) fn may_receive(&self, subject: &[u8], queue: &[u8]) -> bool {
        self.may_subscribe(subject, queue)
    }
}

/// Identity of a session's rights, for comparison only. Valid while the session uses the rights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RightsId(*const Rights);

impl RightsId {
    pub(crate) fn of(rights: &Arc<Rights>) -> Self {
        RightsId(Arc::as_ptr(rights))
    }
}

/// The rights that permitted an operation. Rights are immutable, so the permission applies to all sessions
/// that share them. After a reload, new rights do not match.
#[derive(Clone, Debug)]
pub(crate) struct Permitted(Weak<Rights>);

impl Permitted {
    pub(crate) fn under(rights: &Arc<Rights>) -> Self {
        Permitted(Arc::downgrade(rights))
    }

    /// Returns whether the operation was permitted by these rights. The weak reference keeps the allocation
    /// alive after the rights are dropped, so no other rights can have their address.
    #[inline]
    pub(crate) fn is_under(&self, rights: RightsId) -> bool {
        std::ptr::eq(self.0.as_ptr(), rights.0)
    }
}

/// Configured subjects, each followed by its queue group if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// Rules of one direction.
struct Rules {
    allow: Option<Patterns>,
    deny: Patterns,
}

impl Rules {
    fn new(allowed: &Allowed) -> Self {
        // An empty list allows everything, like no list.
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
            // If a matching pattern names queue groups, only members of those groups may subscribe.
            true => found.queue,
            false => found.plain,
        }
    }

    fn deny_queue(&self, filter: &[u8], queue: &[u8]) -> bool {
        let found = self.deny.matching(filter, queue);
        found.plain || found.queue
    }
}

/// A list of patterns that is matched in one step.
#[derive(Default)]
struct Patterns {
    trie: Trie<Entry>,
    list: Vec<Pattern>,
}

/// The patterns of one subject filter.
#[derive(Default)]
struct Entry {
    plain: bool,
    queues: Vec<String>,
}

impl Vacant for Entry {
    fn is_vacant(&self) -> bool {
        !self.plain && self.queues.is_empty()
    }
}

/// Which kinds of patterns match a subject and a queue group.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Whether a pattern without a queue group matches.
    plain: bool,
    /// Whether a pattern with any queue group matches the subject.
    names_queues: bool,
    /// Whether a pattern with a queue group matches the subject and this queue group.
    queue: bool,
}

impl Patterns {
    fn new(list: &[Pattern]) -> Self {
        let mut trie: Trie<Entry> = Trie::default();
        for pattern in list {
            let node = trie.insert(pattern.subject().as_bytes());
            let entry = trie.value_mut(node);
            match pattern.queue() {
                None => entry.plain = true,
                Some(queue) => entry.queues.push(queue.into()),
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

    /// Returns whether a single pattern allows every subject of a filter for this queue group. A pattern with
    /// a queue group applies to members of that group only. A pattern without a queue group applies to all
    /// subscriptions, unless any pattern with a queue group overlaps the filter. In that case, a pattern
    /// without a queue group applies only to plain subscriptions.
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

    fn matching(&self, subject: &[u8], queue: &[u8]) -> Found {
        let mut found = Found::default();
        if self.list.is_empty() {
            // The common case for deny lists.
            return found;
        }
        self.trie.filters_matching(subject, &mut |entry| {
            found.plain |= entry.plain;
            found.names_queues |= !entry.queues.is_empty();
            let is_it = |name: &String| Filter::parsed(name.as_bytes()).matches(queue);
            found.queue |= !queue.is_empty() && entry.queues.iter().any(is_it);
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

    /// Results of nats-server 2.15 with the same permissions.
    #[test]
    fn subscriptions_as_nats_server_decides() {
        let allow = ["foo.*", "bar", "bar v1", "baz.>"];
        let allowing = Allowed::subscribe(Some(&allow), &[]).unwrap();
        let deny = ["d.x", "q", "q v1", "m.*", "> *.prod"];
        let denying = Allowed::subscribe(None, &deny).unwrap();
        let allowing = rights(Allowed::default(), allowing);
        let denying = rights(Allowed::default(), denying);
        // Columns: filter, queue group, whether the subscription is allowed, and whether permissions may deny
        // single messages of it.
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
        // If a single pattern for the queue group covers the whole filter, nats-server delivers all messages,
        // even if another pattern allowed the subscription.
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
        let check = |allow: Option<&[&str]>, deny: &[&str], subject: &str, expected: bool| {
            let publish = Allowed::publish(allow, deny).unwrap();
            let rights = rights(publish, Allowed::default());
            assert_eq!(
                rights.may_publish(subject.as_bytes()),
                expected,
                "{subject}"
            );
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
    fn permission_to_respond_allows_nothing_else() {
        let mut permissions = Permissions {
            responses: Some(AllowResponses::default()),
            ..Permissions::default()
        };
        assert!(!Rights::new(&permissions).may_publish(b"a"));
        permissions.publish = Allowed::publish(Some(&["a"]), &[]).unwrap();
        assert!(Rights::new(&permissions).may_publish(b"a"));
    }
}
