//! `fanline stream edit`: changes a stream.

use clap::Args;

use super::config::{ConfigArgs, ConfigFile};
use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs, print_json};

/// Change a stream's configuration; values without an option stay unchanged.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream edit ORDERS --max-age 30d --force
  fanline stream edit ORDERS --subjects 'orders.>' --subjects 'returns.>' --dry-run
  fanline stream edit COPY --no-mirror --subjects 'orders.>' --force")]
pub(crate) struct EditArgs {
    /// Name of the stream
    stream: String,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    config: ConfigArgs,
    /// Stop mirroring: the stream keeps its messages, and may have subjects of its own
    #[arg(long, conflicts_with = "mirror")]
    no_mirror: bool,
    /// Print the new configuration, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl EditArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let before = jetstream.stream_info(&self.stream).await?.config;
        let mut config = self.file.read()?.unwrap_or_else(|| before.clone());
        config.name.clone_from(&self.stream);
        self.config.apply(&mut config)?;
        if self.no_mirror {
            config.mirror = None;
            config.mirror_direct = false;
        }
        if config == before {
            eprintln!("The configuration is unchanged");
            return Ok(());
        }
        if self.dry_run {
            return print_json(&config);
        }
        self.force
            .confirm(&format!("Change stream {}?", self.stream))?;
        let info = jetstream.update_stream(&config).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "Stream", "changed"),
        }
    }
}
