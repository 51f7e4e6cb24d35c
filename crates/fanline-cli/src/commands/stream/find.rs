//! `fanline stream find`: finds streams by their state.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::{JetStream, StreamInfo};

use super::ls;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs};
use crate::{show, values};

/// Find the streams that match all options.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream find --empty
  fanline stream find --idle 7d --consumers 0
  fanline stream find --mirrored --invert        streams that are not mirrors")]
pub(crate) struct FindArgs {
    /// Streams that store a matching subject
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,
    /// Streams without messages
    #[arg(long)]
    empty: bool,
    /// Streams without a publish or delivery for at least this time
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    idle: Option<Duration>,
    /// Streams created at least this time ago
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    created: Option<Duration>,
    /// Streams with at most this many consumers
    #[arg(long, value_name = "N", value_parser = values::count)]
    consumers: Option<u64>,
    /// Streams with at most this many replicas
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Streams with sources
    #[arg(long)]
    sourced: bool,
    /// Streams that mirror another one
    #[arg(long)]
    mirrored: bool,
    /// Streams with this leader
    #[arg(long, value_name = "SERVER")]
    leader: Option<String>,
    /// Invert the selection: streams that match none of the options
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
        let mut found = Vec::new();
        for info in jetstream.streams(&self.subject).await? {
            let mut matching = self.matches(&info);
            if let Some(idle) = self.idle {
                matching.push(is_idle(&jetstream, &info, idle).await?);
            }
            if matching.into_iter().all(|is_so| is_so != self.invert) {
                found.push(info);
            }
        }
        let name = |info: &StreamInfo| info.config.name.clone();
        let nothing = "No stream matches";
        self.list.print(&found, name, nothing, ls::print)
    }

    /// Returns, for each option that is set except `idle`, whether it matches a stream.
    fn matches(&self, info: &StreamInfo) -> Vec<bool> {
        let (config, state) = (&info.config, &info.state);
        let leader = info.cluster.as_ref().map(|cluster| &cluster.leader);
        let flags = [
            self.empty.then_some(state.messages == 0),
            self.created.map(|age| show::is_older(info.created, age)),
            self.consumers.map(|most| state.consumer_count <= most),
            self.replicas.map(|most| config.num_replicas <= most),
            self.sourced.then_some(!config.sources.is_empty()),
            self.mirrored.then_some(config.mirror.is_some()),
            self.leader.as_ref().map(|wanted| leader == Some(wanted)),
        ];
        flags.into_iter().flatten().collect()
    }
}

/// Returns whether the stream had no publish and no delivery for this time.
async fn is_idle(
    jetstream: &JetStream,
    info: &StreamInfo,
    idle: Duration,
) -> Result<bool, Failure> {
    if !show::is_older(info.state.last_ts, idle) {
        return Ok(false);
    }
    if info.state.consumer_count == 0 {
        return Ok(true);
    }
    let consumers = jetstream.consumers(&info.config.name).await?;
    let mut delivered = consumers
        .iter()
        .filter_map(|consumer| consumer.delivered.last_active);
    Ok(delivered.all(|last| show::is_older(last, idle)))
}
