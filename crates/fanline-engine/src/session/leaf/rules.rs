//! What may cross a link.

use std::sync::Arc;

use crate::auth::{AccessError, Allowed, Lists, Permissions, Rights, covers, overlap};
use crate::codec::leaf::{LOOPS, Subjects};

/// What JetStream keeps to itself, so that each side has its own.
const JETSTREAM: [&str; 3] = ["$JS.API.>", "$KV.>", "$OBJ.>"];

/// What answers are sent to, and how loops are found: nobody's permission is needed.
const FREE: [&[u8]; 4] = [b"_R_.", b"$JS.ACK.", b"_GR_.", LOOPS];

/// What may cross a link, in both directions. The default is everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// All of them have to allow it. To publish is to give to this side, to subscribe to have from it.
    rights: Vec<Arc<Rights>>,
    /// Filters that do not cross towards this side, and those that do not leave it.
    deny_in: Vec<String>,
    deny_out: Vec<String>,
}

impl Rules {
    /// The other side may do this.
    pub(crate) fn grant(&mut self, rights: Arc<Rights>) {
        self.rights.push(rights);
    }

    /// The other side has said what this one may give to it and have from it.
    pub(crate) fn obey(
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

    /// Messages that match these do not come in, or do not go out.
    pub(crate) fn deny(&mut self, inwards: &[String], outwards: &[String]) {
        self.deny_in.extend_from_slice(inwards);
        self.deny_out.extend_from_slice(outwards);
    }

    /// Each side keeps its own JetStream.
    pub(crate) fn part_jetstream(&mut self) {
        let own = JETSTREAM.map(String::from);
        self.deny(&own, &own);
    }

    /// Whether there is anything to ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.rights.is_empty() && self.deny_in.is_empty() && self.deny_out.is_empty()
    }

    /// Whether a message may go out.
    pub(crate) fn may_give(&self, topic: &[u8], queue: &[u8]) -> bool {
        is_free(topic)
            || (!matches_any(&self.deny_out, topic)
                && (self.rights.iter()).all(|rights| rights.may_receive(topic, queue)))
    }

    /// Whether a message may come in. `Err` when the other side was told that it may not.
    pub(crate) fn may_take(&self, topic: &[u8]) -> Result<bool, ()> {
        if is_free(topic) {
            return Ok(true);
        }
        if !self.rights.iter().all(|rights| rights.may_publish(topic)) {
            return Err(());
        }
        Ok(!matches_any(&self.deny_in, topic))
    }

    /// Whether interest of the other side makes sense: it may have some of it.
    pub(crate) fn may_be_wanted(&self, filter: &[u8], queue: &[u8]) -> bool {
        is_free(filter)
            || (!covered_by_any(&self.deny_out, filter)
                && (self.rights.iter())
                    .all(|rights| is_wide(filter) || rights.may_subscribe(filter, queue)))
    }

    /// Whether the other side is told that this is wanted: it may give some of it.
    pub(crate) fn may_be_told(&self, filter: &[u8]) -> bool {
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

fn is_free(topic: &[u8]) -> bool {
    FREE.iter().any(|prefix| topic.starts_with(prefix))
}

/// Whether there are wildcards in it: what is not allowed is then kept back message by message.
fn is_wide(filter: &[u8]) -> bool {
    filter
        .split(|b| *b == b'.')
        .any(|token| matches!(token, b"*" | b">"))
}

fn matches_any(denied: &[String], topic: &[u8]) -> bool {
    let Ok(topic) = std::str::from_utf8(topic) else {
        return false;
    };
    denied.iter().any(|filter| overlap(filter, topic))
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
    fn what_a_hub_says_is_kept() {
        let mut rules = Rules::default();
        assert!(rules.is_empty());
        let give = subjects(&["out.>"], &["out.secret"]);
        let have = subjects(&["in.*"], &[]);
        rules.obey(Some(&give), Some(&have)).unwrap();
        for (topic, may_give, may_take) in [
            ("out.a", true, false),
            ("out.secret", false, false),
            ("in.a", false, true),
            ("other", false, false),
            ("_R_.0.x", true, true),
            ("$JS.ACK.s.c.1", true, true),
        ] {
            let bytes = topic.as_bytes();
            assert_eq!(rules.may_give(bytes, b""), may_give, "{topic}");
            assert_eq!(rules.may_take(bytes).is_ok(), may_take, "{topic}");
        }
        assert!(rules.may_be_told(b"in.>") && rules.may_be_told(b"in.a"));
        assert!(!rules.may_be_told(b"other") && !rules.may_be_wanted(b"in.a", b""));
        assert!(rules.may_be_wanted(b"out.a", b"q") && rules.may_be_wanted(b"$LDS.x", b""));
    }

    #[test]
    fn each_side_keeps_its_own_streams() {
        let mut rules = Rules::default();
        rules.part_jetstream();
        for (topic, expected) in [
            ("$JS.API.INFO", false),
            ("$KV.b.k", false),
            ("$JS.hub.API.INFO", true),
            ("$JS.ACK.s.c.1", true),
            ("a", true),
        ] {
            assert_eq!(rules.may_give(topic.as_bytes(), b""), expected, "{topic}");
            assert_eq!(rules.may_take(topic.as_bytes()), Ok(expected), "{topic}");
        }
        assert!(!rules.may_be_told(b"$JS.API.>") && rules.may_be_told(b"$JS.>"));
        assert!(rules.may_be_told(b"$JS.leaf.API.>"));
    }
}
