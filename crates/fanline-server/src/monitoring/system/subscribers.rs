//! `$SYS.DEBUG.SUBSCRIBERS`: the number of subscriptions to a subject. In a cluster the server requests it from the
//! other servers by `$SYS.REQ.ACCOUNT.NSUBS`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fanline_engine::auth::AccountId;
use fanline_engine::{Filter, SubscriptionStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::subsz::all_subscriptions;
use super::endpoints::OWN_SUBSCRIBERS;
use super::{System, user};
use crate::client::{ClientError, Message, OutgoingMessage};

/// Time limit for the other servers.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// A request of another server.
#[derive(Deserialize)]
struct PeerRequest {
    acc: String,
    subject: String,
    /// Name of the queue group in Base64.
    #[serde(default)]
    queue: Option<String>,
    /// Id of the other server; nats-server does not send it.
    #[serde(default)]
    server: String,
}

impl System {
    /// Counts the subscriptions to the body's subject in the requester's account.
    pub(super) async fn count_subscribers(&self, request: &Message) -> usize {
        let access = self.monitor.shared.access();
        let account = match user::account_of_asker(request.headers()) {
            Some(name) => access.account_id(&name),
            None => Some(AccountId::SYSTEM),
        };
        let (Some(wanted), Some(account)) = (Count::parse(request.payload()), account) else {
            return 0;
        };
        let name = self.monitor.account_name(account);
        let elsewhere = self.count_at_peers(&name, &wanted).await.unwrap_or(0);
        self.count(account, &wanted).await + elsewhere
    }

    /// Returns the count for another server; `None` if the account has no connections here.
    pub(super) async fn count_for_peer(&self, request: &Message) -> Option<Value> {
        let asked: PeerRequest = serde_json::from_slice(request.payload()).ok()?;
        if asked.server == self.monitor.server_id() {
            return None;
        }
        let account = self.monitor.shared.access().account_id(&asked.acc)?;
        let queue = asked
            .queue
            .as_deref()
            .map(|queue| BASE64.decode(queue).ok());
        let queue = queue.map(|queue| String::from_utf8(queue?).ok());
        let wanted = Count {
            subject: &asked.subject,
            queue: match &queue {
                Some(queue) => Some(queue.as_ref()?),
                None => None,
            },
        };
        let has_connections = !self.connections_in(account).await.ok()?.is_empty();
        match has_connections {
            true => Some(self.count(account, &wanted).await.into()),
            false => None,
        }
    }

    async fn count(&self, account: AccountId, wanted: &Count<'_>) -> usize {
        let all = all_subscriptions(&self.monitor).await.unwrap_or_default();
        let counted = |sub: &&SubscriptionStatus| sub.account == account && wanted.counts(sub);
        all.iter().filter(counted).count()
    }

    /// Returns the sum of the counts of the other servers, as far as they respond in time.
    async fn count_at_peers(
        &self,
        account: &str,
        wanted: &Count<'_>,
    ) -> Result<usize, ClientError> {
        let expected = self.peers.with_connections(account);
        if expected == 0 {
            return Ok(0);
        }
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(&inbox).await?;
        let mut body = json!({
            "acc": account,
            "subject": wanted.subject,
            "server": self.monitor.server_id(),
        });
        if let Some(queue) = wanted.queue {
            body["queue"] = BASE64.encode(queue).into();
        }
        let request = OutgoingMessage {
            subject: OWN_SUBSCRIBERS.into(),
            reply: Some(inbox),
            payload: body.to_string().into(),
            ..OutgoingMessage::default()
        };
        self.client.publish_message(&request).await?;
        let mut sum = 0;
        let collect = async {
            for _ in 0..expected {
                let Some(answer) = answers.next().await else {
                    break;
                };
                let text = std::str::from_utf8(answer.payload()).ok();
                sum += text
                    .and_then(|text| text.parse::<usize>().ok())
                    .unwrap_or(0);
            }
        };
        // A server that does not respond in time is left out.
        let _ = tokio::time::timeout(TIME_LIMIT, collect).await;
        Ok(sum)
    }
}

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
