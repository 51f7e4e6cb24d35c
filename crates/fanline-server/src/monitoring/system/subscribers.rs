//! `$SYS.DEBUG.SUBSCRIBERS`: how many subscriptions there are to a subject.

use fanline_engine::{Filter, SubscriptionStatus};

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    subject: &'a str,
    /// Those of one queue group alone.
    queue: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Reads `<subject> [<queue>]`; `None` when there is no subject.
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(body).ok()?.split_whitespace();
        Some(Wanted {
            subject: words.next()?,
            queue: words.next(),
        })
    }

    /// Whether a subscription is one of them: it gets what is published to the subject, or, when that has
    /// wildcards, nothing else.
    pub(super) fn counts(&self, sub: &SubscriptionStatus) -> bool {
        if self.queue.is_some_and(|queue| queue != sub.queue) {
            return false;
        }
        let (asked, subscribed) = (self.subject, sub.subject.as_str());
        let matches = |filter: &str, topic: &str| {
            let filter = Filter::parse(filter.as_bytes());
            filter.is_ok_and(|filter| filter.matches(topic.as_bytes()))
        };
        match asked.split('.').any(|token| matches!(token, "*" | ">")) {
            false => matches(subscribed, asked),
            // `a.*` does not have all of `a.>`.
            true => {
                matches(asked, subscribed) && (asked.ends_with('>') || !subscribed.ends_with('>'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nats-server 2.15 counts of the same subscriptions.
    #[test]
    fn what_counts() {
        let subs = [
            ("foo", ""),
            ("foo", "q"),
            ("foo", "q"),
            ("bar.*", ""),
            ("x.y.z", ""),
        ];
        let subs = subs.map(|(subject, queue)| SubscriptionStatus {
            subject: subject.into(),
            queue: queue.into(),
            ..SubscriptionStatus::default()
        });
        for (body, count) in [
            ("foo", 3),
            ("foo q", 2),
            ("foo r", 0),
            ("bar.x", 1),
            ("bar.*", 1),
            ("bar.>", 1),
            ("x.>", 1),
            ("*", 3),
            (">", 5),
            ("nothing", 0),
            (" foo ", 3),
            ("foo q r", 2),
            ("", 0),
            ("a b c", 0),
            ("foo..x", 0),
            ("*.y.z", 1),
            ("{\"subject\":\"foo\"}", 0),
        ] {
            let wanted = Wanted::parse(body.as_bytes());
            let found = subs
                .iter()
                .filter(|sub| wanted.as_ref().is_some_and(|w| w.counts(sub)));
            assert_eq!(found.count(), count, "{body:?}");
        }
    }
}
