//! Requests to a remote origin, and the parsing of its answers.

use serde::{Deserialize, Serialize};

use super::Source;
use super::reader::Names;
use crate::headers::find;
use crate::jetstream::{AckPolicy, ApiError, ConsumerConfig, DeliverPolicy, Message, Nanos};

/// Interval of the origin's heartbeats.
const HEARTBEAT: Nanos = Nanos::from_secs(1);
/// Time after which the origin deletes a consumer without a subscriber.
const INACTIVE_THRESHOLD: Nanos = Nanos::from_secs(10);

const IDENTITY_HEADER: &[u8] = b"Nats-Stream-Identity";

/// A request to the origin's API.
pub(super) struct OriginRequest {
    pub(super) subject: String,
    pub(super) body: Vec<u8>,
}

/// Confirmation of a request by the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Started {
    /// Number of records that will be delivered.
    pub(super) pending: u64,
    /// Number of the last confirmed delivery. A preconfigured consumer continues to count from it.
    pub(super) confirmed: u64,
    /// Identity of the origin, which differs from that of earlier streams of its name; `None` if the origin
    /// sends none.
    pub(super) identity: Option<String>,
}

impl Source {
    /// Returns the request for the next records. It creates a consumer, unless there is a preconfigured one.
    pub(super) fn origin_request(&self, api: &str, names: &Names) -> OriginRequest {
        #[derive(Serialize)]
        struct Request<'a> {
            stream_name: &'a str,
            config: ConsumerConfig,
        }
        let (origin, consumer) = (&self.config.name, &names.consumer);
        if self.config.consumer.is_some() {
            return OriginRequest {
                subject: format!("{api}.CONSUMER.RESET.{origin}.{consumer}"),
                body: Vec::new(),
            };
        }
        let config = self.consumer(names);
        let subject = match config.filter_subject.as_str() {
            "" => format!("{api}.CONSUMER.CREATE.{origin}.{consumer}"),
            filter => format!("{api}.CONSUMER.CREATE.{origin}.{consumer}.{filter}"),
        };
        let request = Request {
            stream_name: origin,
            config,
        };
        OriginRequest {
            subject,
            // Serializing only strings and numbers does not fail.
            body: serde_json::to_vec(&request).unwrap_or_default(),
        }
    }

    /// Returns the configuration of the consumer to create, which is the same as in nats-server.
    fn consumer(&self, names: &Names) -> ConsumerConfig {
        let (policy, sequence, time) = match (self.next, self.config.opt_start_seq) {
            (Some(next), _) => (DeliverPolicy::ByStartSequence, next, None),
            (None, 1..) => {
                let sequence = self.config.opt_start_seq;
                (DeliverPolicy::ByStartSequence, sequence, None)
            }
            (None, 0) => match self.config.opt_start_time {
                Some(time) => (DeliverPolicy::ByStartTime, 0, Some(time)),
                None => (DeliverPolicy::All, 0, None),
            },
        };
        let (filter, filters) = self.consumer_filters();
        ConsumerConfig {
            name: names.consumer.clone(),
            deliver_policy: policy,
            opt_start_seq: sequence,
            opt_start_time: time,
            ack_policy: AckPolicy::None,
            max_deliver: 1,
            filter_subject: filter,
            filter_subjects: filters,
            flow_control: true,
            deliver_subject: names.deliver.clone(),
            idle_heartbeat: HEARTBEAT,
            inactive_threshold: INACTIVE_THRESHOLD,
            mem_storage: true,
            direct: true,
            ..ConsumerConfig::default()
        }
    }

    /// Returns the filter of the records to copy, or several filters. Both are empty if all records are
    /// copied.
    fn consumer_filters(&self) -> (String, Vec<String>) {
        let filters = self.renames.iter().map(|rename| &*rename.filter);
        let mut filters: Vec<String> = filters
            .map(|filter| String::from_utf8_lossy(filter).into_owned())
            .collect();
        if filters.iter().any(|filter| filter == ">") {
            return (String::new(), Vec::new());
        }
        match filters.len() {
            1 => (filters.remove(0), Vec::new()),
            _ => (String::new(), filters),
        }
    }
}

/// Parses the origin's answer.
///
/// # Errors
/// The origin's error; `None` if there was no responder.
pub(super) fn read_answer(message: &Message<'_>) -> Result<Started, Option<ApiError>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Answer {
        error: Option<ApiError>,
        num_pending: u64,
        ack_floor: Floor,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Floor {
        consumer_seq: u64,
    }
    if status(message).is_some() {
        return Err(None);
    }
    let answer: Answer = serde_json::from_slice(message.payload)
        .map_err(|error| Some(ApiError::invalid_json(error)))?;
    if let Some(error) = answer.error {
        return Err(Some(error));
    }
    let identity = find(message.headers, IDENTITY_HEADER);
    let identity = identity.and_then(|name| std::str::from_utf8(name).ok());
    Ok(Started {
        pending: answer.num_pending,
        confirmed: answer.ack_floor.consumer_seq,
        // The identity becomes a token in a header, so only letters and digits are allowed.
        identity: identity
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .map(str::to_owned),
    })
}

/// Returns the status code in the header block of a message that is not a record.
pub(super) fn status(message: &Message<'_>) -> Option<u16> {
    const DIGITS: usize = 3;
    let rest = message.headers.strip_prefix(b"NATS/1.0 ")?;
    std::str::from_utf8(rest.get(..DIGITS)?).ok()?.parse().ok()
}
