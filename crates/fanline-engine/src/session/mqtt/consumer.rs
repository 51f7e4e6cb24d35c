//! The consumer of `$MQTT_msgs` that a session has for its subscriptions above QoS 0.

use super::messages::{ConsumerSettings, RequestAction, RequestId};
use super::state::Sub;
use super::{MqttSession, names};
use crate::auth::overlap;
use crate::codec::mqtt::{Qos, parent_subject};

/// Largest number of filters of a consumer. More filters are merged into wider ones, and the session drops
/// messages that match only the wider filters.
const CONSUMER_FILTERS_MAX: usize = 256;

/// Which messages a session's consumer delivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConsumerFilters {
    /// Filters of the session's subscriptions above QoS 0. No two of them overlap.
    pub(super) filters: Vec<String>,
    /// Whether only durable messages are delivered. If a power cut removed a QoS 2 message that was already
    /// delivered, its publisher would send it again, and the client would receive it twice.
    durable_only: bool,
}

impl ConsumerFilters {
    pub(super) fn of<'a>(subs: impl Iterator<Item = &'a Sub>) -> Self {
        // Shared subscriptions have consumers of their own.
        let subs = subs.filter(|sub| sub.qos != Qos::AtMostOnce && !sub.is_shared);
        let subs: Vec<&Sub> = subs.collect();
        ConsumerFilters {
            durable_only: subs.iter().any(|sub| sub.qos == Qos::ExactlyOnce),
            filters: filters_of(&subs),
        }
    }
}

impl MqttSession<'_> {
    /// Updates the session's consumer after its subscriptions have changed, as a part of an operation.
    pub(super) fn change_consumer(&mut self, operation: u32) {
        let settings = &self.broker.exchange.config.limits.mqtt;
        let always_in_memory = settings.consumers_in_memory;
        let (ack_wait, ack_pending_max) = (settings.ack_wait, settings.in_flight_max);
        let mqtt = self.state_mut();
        mqtt.has_records = true;
        let consumer = ConsumerFilters::of(mqtt.subs.iter().flatten());
        let had_none = mqtt.consumer.filters.is_empty();
        mqtt.consumer.clone_from(&consumer);
        if had_none {
            mqtt.is_consumer_in_memory = always_in_memory || !mqtt.is_persistent();
        }
        let name = mqtt.id_hash.to_string();
        let action = match consumer.filters.is_empty() {
            true => RequestAction::DeleteConsumer { name },
            false => RequestAction::PutConsumer(ConsumerSettings {
                deliver_subject: format!("{}{name}", names::DELIVER_PREFIX),
                deliver_group: None,
                name,
                filters: consumer.filters,
                ack_wait,
                ack_pending_max,
                in_memory: mqtt.is_consumer_in_memory,
                durable_only: consumer.durable_only,
            }),
        };
        if had_none {
            self.subscribe_to_consumer();
        }
        self.request(Some(RequestId::Consumer(operation)), action);
    }
}

fn filters_of(subs: &[&Sub]) -> Vec<String> {
    let mut filters: Vec<String> = Vec::new();
    for sub in subs {
        let text = String::from_utf8_lossy(&sub.subject).into_owned();
        let parent = parent_subject(text.as_bytes());
        let parent = parent.map(|parent| String::from_utf8_lossy(parent).into_owned());
        for filter in std::iter::once(text).chain(parent) {
            join(&mut filters, filter);
        }
    }
    while filters.len() > CONSUMER_FILTERS_MAX {
        let (Some(one), Some(other)) = (filters.pop(), filters.pop()) else {
            break;
        };
        join(&mut filters, wider(&one, &other));
    }
    filters.sort_unstable();
    let prefixed = |filter: &String| format!("{}{filter}", names::MESSAGES_PREFIX);
    filters.iter().map(prefixed).collect()
}

/// Adds a filter. Filters that overlap are merged into a wider one.
fn join(filters: &mut Vec<String>, filter: String) {
    let mut filter = filter;
    while let Some(at) = filters.iter().position(|other| overlap(other, &filter)) {
        let other = filters.swap_remove(at);
        filter = wider(&other, &filter);
    }
    filters.push(filter);
}

/// Returns a filter that matches each subject that one of the two filters matches.
fn wider(one: &str, other: &str) -> String {
    let mut tokens: Vec<&str> = Vec::new();
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => break,
            (Some(a), Some(b)) if a == b => tokens.push(a),
            (Some(a), Some(b)) if a != ">" && b != ">" => tokens.push("*"),
            // `>` matches at least one token. If one filter ends first, `>` therefore replaces the previous
            // token.
            (Some(_), Some(_)) => {
                tokens.push(">");
                break;
            }
            (None, Some(_)) | (Some(_), None) => {
                tokens.pop();
                tokens.push(">");
                break;
            }
        }
    }
    tokens.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumer_filters_do_not_overlap() {
        let check = |wanted: &[&str], expected: &[&str]| {
            let mut filters = Vec::new();
            for filter in wanted {
                join(&mut filters, (*filter).to_owned());
            }
            filters.sort_unstable();
            assert_eq!(filters, expected, "{wanted:?}");
            for (at, one) in filters.iter().enumerate() {
                assert!(filters[at + 1..].iter().all(|other| !overlap(one, other)));
            }
        };
        check(&["a", "b"], &["a", "b"]);
        check(&["a.b", "a.*"], &["a.*"]);
        check(&["a.>", "a", "a.b.c"], &["a", "a.>"]);
        check(&["a.*.c", "a.b.*"], &["a.*.*"]);
        check(&["a.*.c", "x", "a.b.>"], &["a.*.>", "x"]);
        check(&["a", ">"], &[">"]);
    }
}
