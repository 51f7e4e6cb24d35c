//! `fanline consumer find`: which consumers are as described.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::ConsumerInfo;

use super::report;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs};
use crate::{show, values};

/// Find consumers of a stream that all of the flags describe.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline consumer find ORDERS --pending 1000     at least so far behind
  fanline consumer find ORDERS --idle 7d --names")]
pub(crate) struct FindArgs {
    /// The stream
    stream: String,
    /// Those that are pulled from
    #[arg(long)]
    pull: bool,
    /// Those that push
    #[arg(long, conflicts_with = "pull")]
    push: bool,
    /// Those that somebody pulls from, or that have a receiver
    #[arg(long)]
    bound: bool,
    /// Those that are paused
    #[arg(long)]
    paused: bool,
    /// Those with as many pull requests that wait, or fewer
    #[arg(long, value_name = "N", value_parser = values::count)]
    waiting: Option<u64>,
    /// Those with as many records to acknowledge, or more
    #[arg(long, value_name = "N", value_parser = values::count)]
    ack_pending: Option<u64>,
    /// Those with as many records to deliver, or more
    #[arg(long, value_name = "N", value_parser = values::count)]
    pending: Option<u64>,
    /// Those that have delivered nothing for as long
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    idle: Option<Duration>,
    /// Those that were made as long ago
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    created: Option<Duration>,
    /// Those that none of the flags describes
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
        found.retain(|info| self.described(info).all(|is_so| is_so != self.invert));
        let name = |info: &ConsumerInfo| info.name.clone();
        let nothing = "There is no such consumer";
        self.list.print(&found, name, nothing, report::print)
    }

    /// Whether each of the flags that were given describes a consumer.
    fn described(&self, info: &ConsumerInfo) -> impl Iterator<Item = bool> {
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
