//! `fanline stream find`: which streams are as described.

use std::time::Duration;

use clap::Args;
use fanline_client::jetstream::{JetStream, StreamInfo};

use super::ls;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs};
use crate::{show, values};

/// Find streams that all of the flags describe.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream find --empty
  fanline stream find --idle 7d --consumers 0
  fanline stream find --mirrored --invert        those that mirror nothing")]
pub(crate) struct FindArgs {
    /// Those that keep a subject which matches
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,
    /// Those that hold nothing
    #[arg(long)]
    empty: bool,
    /// Those that nothing was published to or delivered from for as long
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    idle: Option<Duration>,
    /// Those that were made as long ago
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    created: Option<Duration>,
    /// Those with as many consumers, or fewer
    #[arg(long, value_name = "N", value_parser = values::count)]
    consumers: Option<u64>,
    /// Those with as many replicas, or fewer
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Those that copy from sources
    #[arg(long)]
    sourced: bool,
    /// Those that mirror another
    #[arg(long)]
    mirrored: bool,
    /// Those that this server leads
    #[arg(long, value_name = "SERVER")]
    leader: Option<String>,
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
        let mut found = Vec::new();
        for info in jetstream.streams(&self.subject).await? {
            let mut described = self.described(&info);
            if let Some(idle) = self.idle {
                described.push(is_idle(&jetstream, &info, idle).await?);
            }
            if described.into_iter().all(|is_so| is_so != self.invert) {
                found.push(info);
            }
        }
        let name = |info: &StreamInfo| info.config.name.clone();
        let nothing = "There is no such stream";
        self.list.print(&found, name, nothing, ls::print)
    }

    /// Whether each of the flags that were given, but for idleness, describes a stream.
    fn described(&self, info: &StreamInfo) -> Vec<bool> {
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

/// Whether nothing has come in or gone out for as long.
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
