//! `$SYS.DEBUG.SUBSCRIBERS`: the number of subscriptions to a subject.

use fanline_engine::{Filter, SubscriptionStatus};

/// The request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Count<'a> {
    subject: &'a str,
    /// If set, counts only members of this queue group.
    queue: Option<&'a str>,
}

impl<'a> Count<'a> {
    /// Parses `<subject> [<queue>]`. Returns `None` without a subject.
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(body).ok()?.split_whitespace();
        Some(Count {
            subject: words.next()?,
            queue: words.next(),
        })
    }

    /// Returns whether a subscription counts. If the request contains a literal subject, the subscription
    /// must match that subject. If it contains a filter, the filter must match every subject of the
    /// subscription.
    pub(super) fn counts(&self, sub: &SubscriptionStatus) -> bool {
        if self.queue.is_some_and(|queue| queue != sub.queue) {
            return false;
        }
        let (requested, subscribed) = (self.subject, sub.subject.as_str());
        let matches = |filter: &str, subject: &str| {
            let filter = Filter::parse(filter.as_bytes());
            filter.is_ok_and(|filter| filter.matches(subject.as_bytes()))
        };
        match requested.split('.').any(|token| matches!(token, "*" | ">")) {
            false => matches(subscribed, requested),
            // `a.*` does not cover `a.>`.
            true => {
                matches(requested, subscribed)
                    && (requested.ends_with('>') || !subscribed.ends_with('>'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected counts are those of nats-server 2.15 for the same subscriptions.
    #[test]
    fn subscriptions_that_count_equal_those_of_nats_server() {
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
            let wanted = Count::parse(body.as_bytes());
            let found = subs
                .iter()
                .filter(|sub| wanted.as_ref().is_some_and(|w| w.counts(sub)));
            assert_eq!(found.count(), count, "{body:?}");
        }
    }
}
