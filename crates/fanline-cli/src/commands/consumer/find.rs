//! `fanline consumer find`: finds consumers by their state.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::ConsumerInfo;

use super::report;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs};
use crate::{show, values};

/// Find the consumers of a stream that match all options.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer find ORDERS --pending 1000     at least 1,000 messages behind
  fanline consumer find ORDERS --idle 7d --names")]
pub(crate) struct FindArgs {
    /// Name of the stream
    stream: String,
    /// Pull consumers
    #[arg(long)]
    pull: bool,
    /// Push consumers
    #[arg(long, conflicts_with = "pull")]
    push: bool,
    /// Consumers with waiting pull requests or with a receiver
    #[arg(long)]
    bound: bool,
    /// Paused consumers
    #[arg(long)]
    paused: bool,
    /// Consumers with at most this many waiting pull requests
    #[arg(long, value_name = "N", value_parser = values::count)]
    waiting: Option<u64>,
    /// Consumers with at least this many unacknowledged messages
    #[arg(long, value_name = "N", value_parser = values::count)]
    ack_pending: Option<u64>,
    /// Consumers with at least this many undelivered messages
    #[arg(long, value_name = "N", value_parser = values::count)]
    pending: Option<u64>,
    /// Consumers without a delivery for at least this time
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    idle: Option<Duration>,
    /// Consumers created at least this time ago
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    created: Option<Duration>,
    /// Invert the selection: consumers that match none of the options
    #[arg(long)]
    invert: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl FindArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let mut found = jetstream.consumers(&self.stream).await?;
        found.retain(|info| self.matches(info).all(|is_so| is_so != self.invert));
        let name = |info: &ConsumerInfo| info.name.clone();
        let nothing = "No consumer matches";
        self.list.print(&found, name, nothing, report::print)
    }

    /// Returns, for each option that is set, whether it matches a consumer.
    fn matches(&self, info: &ConsumerInfo) -> impl Iterator<Item = bool> {
        let is_push = info.config.is_push();
        let has_receiver = info.other.get("push_bound") == Some(&true.into());
        let is_idle = |idle| {
            let last = info.delivered.last_active;
            last.is_none_or(|last| show::is_older(last, idle))
        };
        let flags = [
            self.pull.then_some(!is_push),
            self.push.then_some(is_push),
            self.bound.then_some(has_receiver || info.num_waiting > 0),
            self.paused.then_some(info.paused),
            self.waiting.map(|most| info.num_waiting <= most),
            self.ack_pending.map(|least| info.num_ack_pending >= least),
            self.pending.map(|least| info.num_pending >= least),
            self.idle.map(is_idle),
            self.created.map(|age| show::is_older(info.created, age)),
        ];
        flags.into_iter().flatten()
    }
}
