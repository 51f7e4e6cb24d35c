//! Reply subjects that a client may publish to without further permission (`allow_responses`).

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;

use crate::auth::AllowResponses;

/// Largest number of received requests that a client can still respond to. Beyond that, the oldest request is
/// dropped.
const REPLIES_MAX: usize = 64 * 1024;

/// Reply subjects of received messages.
#[derive(Default)]
pub(crate) struct Replies {
    by_subject: HashMap<Box<[u8]>, Reply>,
    /// Reply subjects in the order of arrival. An entry is outdated if its subject was removed or has arrived
    /// again.
    order: VecDeque<(Duration, Box<[u8]>)>,
}

struct Reply {
    since: Duration,
    answers: u64,
}

impl Replies {
    /// Records the reply subject of a received message.
    pub(crate) fn note(&mut self, subject: &[u8], rule: AllowResponses, now: Duration) {
        self.drop_old(rule, now);
        let reply = Reply {
            since: now,
            answers: 0,
        };
        self.by_subject.insert(subject.into(), reply);
        self.order.push_back((now, subject.into()));
    }

    /// Returns whether a response to a subject is permitted, and counts the response.
    pub(crate) fn use_up(&mut self, subject: &[u8], rule: AllowResponses, now: Duration) -> bool {
        let Some(reply) = self.by_subject.get_mut(subject) else {
            return false;
        };
        reply.answers += 1;
        let is_spent = rule.max.is_some_and(|max| reply.answers > max);
        let is_late = is_late(reply.since, rule, now);
        if is_spent || is_late {
            self.by_subject.remove(subject);
        }
        !is_spent && !is_late
    }

    fn drop_old(&mut self, rule: AllowResponses, now: Duration) {
        while let Some((since, subject)) = self.order.front() {
            let is_full = self.order.len() >= REPLIES_MAX;
            // An entry is outdated if its subject was used up or has arrived again.
            let reply = self.by_subject.get(subject);
            let is_current = reply.is_some_and(|reply| reply.since == *since);
            if is_current && !is_full && !is_late(*since, rule, now) {
                return;
            }
            if is_current {
                self.by_subject.remove(subject);
            }
            self.order.pop_front();
        }
    }
}

fn is_late(since: Duration, rule: AllowResponses, now: Duration) -> bool {
    let age = now.saturating_sub(since);
    rule.expires.is_some_and(|expires| age > expires)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rule(max: Option<u64>, seconds: Option<u32>) -> AllowResponses {
        AllowResponses {
            max,
            expires: seconds.map(|s| SECOND * s),
        }
    }

    #[test]
    fn responses_are_limited_by_number_and_time() {
        let check = |rule, tries: &[(u32, bool)]| {
            let mut replies = Replies::default();
            assert!(!replies.use_up(b"r", rule, Duration::ZERO));
            replies.note(b"r", rule, Duration::ZERO);
            for (second, expected) in tries {
                let now = SECOND * *second;
                assert_eq!(
                    replies.use_up(b"r", rule, now),
                    *expected,
                    "{rule:?} {second}"
                );
            }
            assert!(!replies.use_up(b"other", rule, Duration::ZERO));
        };
        check(rule(Some(1), Some(2)), &[(1, true), (1, false)]);
        check(rule(Some(2), Some(2)), &[(1, true), (2, true), (2, false)]);
        check(rule(Some(2), Some(2)), &[(3, false), (0, false)]);
        check(rule(None, None), &[(1, true), (9999, true)]);
    }

    #[test]
    fn repeated_reply_subject_restarts_its_limits() {
        let rule = rule(Some(1), Some(2));
        let mut replies = Replies::default();
        for second in 0..10 {
            replies.note(b"r", rule, SECOND * second);
            assert!(replies.use_up(b"r", rule, SECOND * second));
        }
        assert!(replies.order.len() <= 2);
    }

    #[test]
    fn oldest_unanswered_requests_are_dropped() {
        let rule = rule(None, None);
        let mut replies = Replies::default();
        for n in 0..REPLIES_MAX + 10 {
            replies.note(n.to_string().as_bytes(), rule, Duration::ZERO);
        }
        assert!(replies.by_subject.len() <= REPLIES_MAX && replies.order.len() <= REPLIES_MAX);
        assert!(!replies.use_up(b"3", rule, Duration::ZERO));
        assert!(replies.use_up(b"70", rule, Duration::ZERO));
    }
}
