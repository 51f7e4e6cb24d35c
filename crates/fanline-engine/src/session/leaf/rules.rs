//! Rules that decide which messages may cross a leaf connection.

use std::sync::Arc;

use crate::auth::{AccessError, Allowed, Lists, Permissions, Rights, covers, overlap};
use crate::codec::leaf::{LOOPS, Subjects};

/// Subjects of JetStream that do not cross, so that each side uses its own JetStream.
const JETSTREAM: [&str; 3] = ["$JS.API.>", "$KV.>", "$OBJ.>"];

/// Prefixes of responses and loop subjects, which may always cross.
const FREE: [&[u8]; 4] = [b"_R_.", b"$JS.ACK.", b"_GR_.", LOOPS];

/// Rules that decide which messages may cross a leaf connection, in both directions. By default, all may.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Permissions of the other side, all of which must allow a message. The other side publishes the
    /// messages that come in, and subscribes to the messages that go out.
    rights: Vec<Arc<Rights>>,
    /// Filters of messages that may not come in, and of messages that may not go out.
    deny_in: Vec<String>,
    deny_out: Vec<String>,
}

impl Rules {
    /// Adds permissions of the other side.
    pub(crate) fn grant(&mut self, rights: Arc<Rights>) {
        self.rights.push(rights);
    }

    /// Adds the permissions that the other side has announced: subjects that this side may send, and those
    /// that it may receive.
    pub(crate) fn apply_announced(
        &mut self,
        give: Option<&Subjects>,
        have: Option<&Subjects>,
    ) -> Result<(), AccessError> {
        let allowed = |subjects: Option<&Subjects>, is_queue: bool| {
            let Some(subjects) = subjects else {
                return Ok(Allowed::default());
            };
            let texts = |list: &'_ [String]| -> Vec<String> { list.to_vec() };
            let (allow, deny) = (texts(&subjects.allow), texts(&subjects.deny));
            let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
            let deny: Vec<&str> = deny.iter().map(String::as_str).collect();
            let allow = (!allow.is_empty()).then_some(&allow[..]);
            match is_queue {
                true => Allowed::subscribe(allow, &deny),
                false => Allowed::publish(allow, &deny),
            }
        };
        let permissions = Permissions {
            publish: allowed(have, false)?,
            subscribe: allowed(give, true)?,
            responses: None,
        };
        if permissions != Permissions::default() {
            self.rights.push(Arc::new(Rights::new(&permissions)));
        }
        Ok(())
    }

    /// Denies messages that match these filters, inwards and outwards.
    pub(crate) fn deny(&mut self, inwards: &[String], outwards: &[String]) {
        self.deny_in.extend_from_slice(inwards);
        self.deny_out.extend_from_slice(outwards);
    }

    /// Separates the JetStreams of both sides.
    pub(crate) fn separate_jetstream(&mut self) {
        let own = JETSTREAM.map(String::from);
        self.deny(&own, &own);
    }

    /// Returns whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rights.is_empty() && self.deny_in.is_empty() && self.deny_out.is_empty()
    }

    /// Returns whether a message may go out.
    pub(crate) fn may_send(&self, subject: &[u8], queue: &[u8]) -> bool {
        is_free(subject)
            || (!matches_any(&self.deny_out, subject)
                && (self.rights.iter()).all(|rights| rights.may_receive(subject, queue)))
    }

    /// Returns whether a message may come in. Returns `Err` if the permissions of the other side deny the
    /// message.
    pub(crate) fn may_receive(&self, subject: &[u8]) -> Result<bool, ()> {
        if is_free(subject) {
            return Ok(true);
        }
        if !self.rights.iter().all(|rights| rights.may_publish(subject)) {
            return Err(());
        }
        Ok(!matches_any(&self.deny_in, subject))
    }

    /// Returns whether some of the messages that match a filter may go out.
    pub(crate) fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        is_free(filter)
            || (!covered_by_any(&self.deny_out, filter)
                && (self.rights.iter())
                    .all(|rights| is_wide(filter) || rights.may_subscribe(filter, queue)))
    }

    /// Returns whether some of the messages that match a filter may come in, so that interest in them is
    /// announced.
    pub(crate) fn may_announce(&self, filter: &[u8]) -> bool {
        is_free(filter)
            || (!covered_by_any(&self.deny_in, filter)
                && (self.rights.iter()).all(|rights| is_wide(filter) || rights.may_publish(filter)))
    }
}

impl From<Lists> for Subjects {
    fn from(lists: Lists) -> Self {
        Subjects {
            allow: lists.allow,
            deny: lists.deny,
        }
    }
}

fn is_free(subject: &[u8]) -> bool {
    FREE.iter().any(|prefix| subject.starts_with(prefix))
}

/// Returns whether a filter has wildcards. Its messages are checked one by one.
fn is_wide(filter: &[u8]) -> bool {
    filter
        .split(|b| *b == b'.')
        .any(|token| matches!(token, b"*" | b">"))
}

fn matches_any(denied: &[String], subject: &[u8]) -> bool {
    let Ok(subject) = std::str::from_utf8(subject) else {
        return false;
    };
    denied.iter().any(|filter| overlap(filter, subject))
}

fn covered_by_any(denied: &[String], filter: &[u8]) -> bool {
    let Ok(filter) = std::str::from_utf8(filter) else {
        return false;
    };
    denied.iter().any(|wide| covers(wide, filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(allow: &[&str], deny: &[&str]) -> Subjects {
        let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Subjects {
            allow: texts(allow),
            deny: texts(deny),
        }
    }

    #[test]
    fn permissions_of_a_hub_are_applied() {
        let mut rules = Rules::default();
        assert!(rules.is_empty());
        let give = subjects(&["out.>"], &["out.secret"]);
        let have = subjects(&["in.*"], &[]);
        rules.apply_announced(Some(&give), Some(&have)).unwrap();
        for (subject, may_send, may_receive) in [
            ("out.a", true, false),
            ("out.secret", false, false),
            ("in.a", false, true),
            ("other", false, false),
            ("_R_.0.x", true, true),
            ("$JS.ACK.s.c.1", true, true),
        ] {
            let bytes = subject.as_bytes();
            assert_eq!(rules.may_send(bytes, b""), may_send, "{subject}");
            assert_eq!(rules.may_receive(bytes).is_ok(), may_receive, "{subject}");
        }
        assert!(rules.may_announce(b"in.>") && rules.may_announce(b"in.a"));
        assert!(!rules.may_announce(b"other") && !rules.may_subscribe(b"in.a", b""));
        assert!(rules.may_subscribe(b"out.a", b"q") && rules.may_subscribe(b"$LDS.x", b""));
    }

    #[test]
    fn jetstream_does_not_cross() {
        let mut rules = Rules::default();
        rules.separate_jetstream();
        for (subject, expected) in [
            ("$JS.API.INFO", false),
            ("$KV.b.k", false),
            ("$JS.hub.API.INFO", true),
            ("$JS.ACK.s.c.1", true),
            ("a", true),
        ] {
            assert_eq!(
                rules.may_send(subject.as_bytes(), b""),
                expected,
                "{subject}"
            );
            assert_eq!(
                rules.may_receive(subject.as_bytes()),
                Ok(expected),
                "{subject}"
            );
        }
        assert!(!rules.may_announce(b"$JS.API.>") && rules.may_announce(b"$JS.>"));
        assert!(rules.may_announce(b"$JS.leaf.API.>"));
    }
}
