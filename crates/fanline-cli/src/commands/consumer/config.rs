//! Options of a consumer's configuration, for `add`, `copy`, and `edit`.

use clap::Args;
use fanline_client::jetstream::{
    AckPolicy, ConsumerConfig, DeliverPolicy, Nanos, PriorityPolicy, ReplayPolicy, Timestamp,
};

use crate::values::{self, set};

/// Configuration of a consumer. Without an option, a new consumer gets the server's default, and an existing
/// one keeps its value.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Configuration")]
pub(super) struct ConfigArgs {
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Filter subjects; may be repeated, or separated by commas
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    filter: Vec<String>,
    /// Start position: all, new, last, subject, a sequence, or a time ago such as 1h
    #[arg(long, value_name = "WHERE", value_parser = deliver)]
    deliver: Option<Deliver>,
    /// Acknowledgement policy: explicit, all, or none
    #[arg(long, value_parser = values::word::<AckPolicy>)]
    ack: Option<AckPolicy>,
    /// Replay speed: instant, or original
    #[arg(long, value_parser = values::word::<ReplayPolicy>)]
    replay: Option<ReplayPolicy>,
    /// Time without an acknowledgement after which a message is redelivered
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    wait: Option<Nanos>,
    /// Largest number of deliveries per message
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_deliver: Option<i64>,
    /// Delays before each redelivery, separated by commas: 1s,10s,1m
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = values::span)]
    backoff: Vec<Nanos>,
    /// Largest number of unacknowledged messages
    #[arg(long, alias = "max-outstanding", value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_pending: Option<i64>,
    /// Largest number of unacknowledged messages per subject (Fanline only): 1 keeps order per key
    #[arg(long, value_name = "N", value_parser = values::limit)]
    max_pending_per_subject: Option<i64>,
    /// Deliver from all subjects in turn (Fanline only)
    #[arg(long)]
    fair_subjects: bool,
    /// Largest number of waiting pull requests
    #[arg(long, value_name = "N", value_parser = values::limit)]
    max_waiting: Option<i64>,
    /// Largest number of messages per pull request
    #[arg(long, value_name = "N", value_parser = values::limit)]
    max_pull_batch: Option<i64>,
    /// Longest expiry of a pull request
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    max_pull_expire: Option<Nanos>,
    /// Largest size of a pull request, in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit)]
    max_pull_bytes: Option<i64>,
    /// Deliver headers without payloads
    #[arg(long)]
    headers_only: bool,
    /// Percentage of acknowledgements that are sampled
    #[arg(long, value_name = "PERCENT")]
    sample: Option<String>,
    /// Time without use after which the consumer is deleted
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    inactive_threshold: Option<Nanos>,
    /// Number of replicas
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Store the consumer's state in memory
    #[arg(long)]
    memory: bool,
    /// Pause until then: 1h, or a time
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pause: Option<Timestamp>,
    /// Push messages to this subject
    #[arg(long, value_name = "SUBJECT")]
    target: Option<String>,
    /// Queue group that receives pushed messages
    #[arg(long, value_name = "GROUP", requires = "target")]
    deliver_group: Option<String>,
    /// Enable flow control by the receiver
    #[arg(long, requires = "target")]
    flow_control: bool,
    /// Interval of heartbeats while there are no messages
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    heartbeat: Option<Nanos>,
    /// Largest rate, in bits per second
    #[arg(long, value_name = "BITS")]
    bps: Option<u64>,
    /// Priority group that serves a single pinned client
    #[arg(long, value_name = "GROUP")]
    pinned_groups: Vec<String>,
    /// Time after which the pinned client loses its priority
    #[arg(long, value_name = "TIME", value_parser = values::span, requires = "pinned_groups")]
    pinned_ttl: Option<Nanos>,
    /// Priority group that is served only with a backlog
    #[arg(long, value_name = "GROUP", conflicts_with = "pinned_groups")]
    overflow_groups: Vec<String>,
    /// Priority group that is served by priority
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["pinned_groups", "overflow_groups"])]
    prioritized_groups: Vec<String>,
    /// Metadata label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    metadata: Vec<(String, String)>,
}

/// The start position of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deliver {
    Policy(DeliverPolicy),
    Sequence(u64),
    Ago(Nanos),
}

fn deliver(text: &str) -> Result<Deliver, String> {
    Ok(match text {
        "subject" => Deliver::Policy(DeliverPolicy::LastPerSubject),
        "all" => Deliver::Policy(DeliverPolicy::All),
        "new" => Deliver::Policy(DeliverPolicy::New),
        "last" => Deliver::Policy(DeliverPolicy::Last),
        text => match text.parse() {
            Ok(sequence) => Deliver::Sequence(sequence),
            Err(_) => Deliver::Ago(values::span(text).map_err(|_| {
                "expected all, new, last, subject, a sequence, or a time such as 1h".to_owned()
            })?),
        },
    })
}

impl ConfigArgs {
    /// Applies the options that are set.
    pub(super) fn apply(&self, config: &mut ConsumerConfig) {
        set(&mut config.description, &self.description);
        self.apply_filter(config);
        if let Some(deliver) = self.deliver {
            deliver.apply(config);
        }
        set(&mut config.ack_policy, &self.ack);
        set(&mut config.replay_policy, &self.replay);
        set(&mut config.ack_wait, &self.wait);
        set(&mut config.max_deliver, &self.max_deliver);
        if !self.backoff.is_empty() {
            config.backoff.clone_from(&self.backoff);
        }
        set(&mut config.max_ack_pending, &self.max_pending);
        set(
            &mut config.max_ack_pending_per_subject,
            &self.max_pending_per_subject,
        );
        config.fair_subjects |= self.fair_subjects;
        set(&mut config.max_waiting, &self.max_waiting);
        set(&mut config.max_batch, &self.max_pull_batch);
        set(&mut config.max_expires, &self.max_pull_expire);
        set(&mut config.max_bytes, &self.max_pull_bytes);
        config.headers_only |= self.headers_only;
        set(&mut config.sample_freq, &self.sample);
        set(&mut config.inactive_threshold, &self.inactive_threshold);
        set(&mut config.num_replicas, &self.replicas);
        config.mem_storage |= self.memory;
        if self.pause.is_some() {
            config.pause_until = self.pause;
        }
        self.apply_push(config);
        self.apply_groups(config);
        config.metadata.extend(self.metadata.iter().cloned());
    }

    fn apply_filter(&self, config: &mut ConsumerConfig) {
        match self.filter.as_slice() {
            [] => {}
            [one] => {
                config.filter_subject.clone_from(one);
                config.filter_subjects.clear();
            }
            several => {
                config.filter_subject.clear();
                config.filter_subjects = several.to_vec();
            }
        }
    }

    fn apply_push(&self, config: &mut ConsumerConfig) {
        set(&mut config.deliver_subject, &self.target);
        set(&mut config.deliver_group, &self.deliver_group);
        config.flow_control |= self.flow_control;
        set(&mut config.idle_heartbeat, &self.heartbeat);
        set(&mut config.rate_limit_bps, &self.bps);
    }

    fn apply_groups(&self, config: &mut ConsumerConfig) {
        for (groups, policy) in [
            (&self.pinned_groups, PriorityPolicy::PinnedClient),
            (&self.overflow_groups, PriorityPolicy::Overflow),
            (&self.prioritized_groups, PriorityPolicy::Prioritized),
        ] {
            if !groups.is_empty() {
                config.priority_groups.clone_from(groups);
                config.priority_policy = policy;
            }
        }
        set(&mut config.priority_timeout, &self.pinned_ttl);
    }
}

impl Deliver {
    fn apply(self, config: &mut ConsumerConfig) {
        (config.opt_start_seq, config.opt_start_time) = (0, None);
        config.deliver_policy = match self {
            Deliver::Policy(policy) => policy,
            Deliver::Sequence(sequence) => {
                config.opt_start_seq = sequence;
                DeliverPolicy::ByStartSequence
            }
            Deliver::Ago(ago) => {
                let now = jiff::Timestamp::now().as_nanosecond();
                let nanos = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(ago.0);
                config.opt_start_time = Some(Timestamp::from_unix_nanos(nanos));
                DeliverPolicy::ByStartTime
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_positions_are_parsed() {
        for (text, expected) in [
            ("all", Some(Deliver::Policy(DeliverPolicy::All))),
            (
                "subject",
                Some(Deliver::Policy(DeliverPolicy::LastPerSubject)),
            ),
            ("42", Some(Deliver::Sequence(42))),
            ("1h", Some(Deliver::Ago(Nanos::from_secs(3_600)))),
            ("soon", None),
        ] {
            assert_eq!(deliver(text).ok(), expected, "{text}");
        }
    }
}
