//! The body of a pull request.

use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::rules::Rules;
use super::status::Status;
use super::write;
use crate::jetstream::PriorityPolicy;

/// Maximum priority, because priorities have one digit.
const PRIORITY_MAX: i64 = 9;

/// The body of `CONSUMER.MSG.NEXT`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct PullRequest {
    #[serde(deserialize_with = "or_default")]
    pub(super) batch: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) expires: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) max_bytes: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) no_wait: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) idle_heartbeat: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) group: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) min_pending: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) min_ack_pending: i64,
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) priority: i64,
    /// Whether the body was JSON without a number of records. It requests one record, and its final status
    /// does not report the record as missing.
    #[serde(skip)]
    pub(super) is_unnumbered: bool,
}

/// Parses a `null` field as the default, because some clients write all fields.
fn or_default<'de, D, T>(field: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(field)?.unwrap_or_default())
}

impl PullRequest {
    /// Parses the body: empty for one record, a number of records, or JSON. Other texts mean one record, as
    /// in nats-server.
    ///
    /// # Errors
    /// Description of the error in the JSON. Simple descriptions have the words of nats-server.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let body = body.trim_ascii();
        let is_json = body.first() == Some(&b'{');
        let mut request = if is_json {
            serde_json::from_slice(body).map_err(|error| match error.classify() {
                Category::Eof => "unexpected end of JSON input".to_owned(),
                _ => format!("json: {error}"),
            })?
        } else {
            let batch = write::parse_number(body).and_then(|batch| i64::try_from(batch).ok());
            PullRequest {
                batch: batch.unwrap_or(1),
                ..PullRequest::default()
            }
        };
        request.is_unnumbered = is_json && request.batch <= 0;
        request.batch = request.batch.max(1);
        Ok(request)
    }

    /// Returns the reason for which the rules of a consumer refuse the request, if any.
    pub(super) fn refused<'a>(
        &self,
        rules: &Rules,
        groups: &[String],
        expires_max: &'a str,
    ) -> Option<Status<'a>> {
        if self.idle_heartbeat > 0 && self.idle_heartbeat > self.expires / 2 {
            return Some(Status::BadRequest("heartbeat value too large"));
        }
        if let Some(why) = self.refused_priority(rules, groups) {
            return Some(Status::BadRequest(why));
        }
        if rules.batch_max > 0 && self.batch > rules.batch_max {
            Some(Status::ExceededMaxRequestBatch(rules.batch_max))
        } else if rules.expires_max.0 > 0 && self.expires > rules.expires_max.0 {
            Some(Status::ExceededMaxRequestExpires(expires_max))
        } else if rules.bytes_max > 0 && self.max_bytes > rules.bytes_max {
            Some(Status::ExceededMaxRequestMaxBytes(rules.bytes_max))
        } else {
            None
        }
    }

    fn refused_priority(&self, rules: &Rules, groups: &[String]) -> Option<&'static str> {
        if !(0..=PRIORITY_MAX).contains(&self.priority) {
            return Some("Priority must be between 0 and 9");
        }
        if rules.priority != PriorityPolicy::Overflow
            && (self.min_pending > 0 || self.min_ack_pending > 0)
        {
            return Some("Not a Overflow Priority consumer");
        }
        if rules.priority != PriorityPolicy::PinnedClient && !self.id.is_empty() {
            return Some("Not a Pinned Client Priority consumer");
        }
        if rules.priority == PriorityPolicy::None {
            return None;
        }
        if self.group.is_empty() {
            return Some("Priority Group missing");
        }
        (!groups.contains(&self.group)).then_some("Invalid Priority Group")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::{ConsumerConfig, Nanos};

    #[test]
    fn request_bodies_are_parsed() {
        for (body, batch) in [
            ("", 1),
            ("7", 7),
            ("0", 1),
            ("-3", 1),
            ("abc", 1),
            ("12x", 1),
            ("{}", 1),
            (r#"{"batch":0}"#, 1),
            (r#"{"batch":-1}"#, 1),
            (r#"{"batch":12,"foo":2}"#, 12),
            // The Rust client, async-nats, writes all fields.
            (r#"{"batch":null,"min_pending":null,"group":null}"#, 1),
        ] {
            assert_eq!(
                PullRequest::parse(body.as_bytes()).unwrap().batch,
                batch,
                "{body}"
            );
        }
        let error = PullRequest::parse(br#"{"batch":"#).unwrap_err();
        assert_eq!(error, "unexpected end of JSON input");
        assert!(
            PullRequest::parse(br#"{"batch":"a"}"#)
                .unwrap_err()
                .starts_with("json: ")
        );
    }

    fn check(config: &ConsumerConfig, body: &str, expected: &str) {
        let rules = Rules::new(config);
        let request = PullRequest::parse(body.as_bytes()).unwrap();
        let mut out = Vec::new();
        let expires_max = rules.expires_max.to_string();
        if let Some(status) = request.refused(&rules, &config.priority_groups, &expires_max) {
            status.write(&mut out);
        }
        let found = String::from_utf8(out).unwrap();
        let found = found
            .trim_end()
            .strip_prefix("NATS/1.0 ")
            .unwrap_or_default();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn requests_beyond_the_rules_are_refused() {
        let capped = ConsumerConfig {
            max_batch: 5,
            max_expires: Nanos::from_secs(5),
            max_bytes: 1000,
            ..ConsumerConfig::default()
        };
        check(&capped, "5", "");
        check(&capped, "10", "409 Exceeded MaxRequestBatch of 5");
        check(
            &capped,
            r#"{"expires":6500000000}"#,
            "409 Exceeded MaxRequestExpires of 5s",
        );
        check(
            &capped,
            r#"{"max_bytes":2000}"#,
            "409 Exceeded MaxRequestMaxBytes of 1000",
        );
        let too_large = "400 Bad Request - heartbeat value too large";
        check(
            &capped,
            r#"{"expires":1000,"idle_heartbeat":501}"#,
            too_large,
        );
        check(&capped, r#"{"idle_heartbeat":501}"#, too_large);
        check(&capped, r#"{"expires":1000,"idle_heartbeat":500}"#, "");
        let no_overflow = "400 Bad Request - Not a Overflow Priority consumer";
        check(&capped, r#"{"min_pending":1}"#, no_overflow);
        check(
            &capped,
            r#"{"priority":11}"#,
            "400 Bad Request - Priority must be between 0 and 9",
        );
        check(&capped, r#"{"group":"A"}"#, "");
        let overflow = ConsumerConfig {
            priority_policy: PriorityPolicy::Overflow,
            priority_groups: vec!["A".into()],
            ..ConsumerConfig::default()
        };
        check(&overflow, "1", "400 Bad Request - Priority Group missing");
        check(
            &overflow,
            r#"{"group":"B"}"#,
            "400 Bad Request - Invalid Priority Group",
        );
        check(&overflow, r#"{"group":"A","min_ack_pending":3}"#, "");
        let no_pins = "400 Bad Request - Not a Pinned Client Priority consumer";
        check(&overflow, r#"{"group":"A","id":"x"}"#, no_pins);
    }
}
