//! `fanline stream edit`: change a stream.

use clap::Args;

use super::config::{ConfigArgs, ConfigFile};
use super::details;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs, print_json};

/// Change a stream's configuration; what is not named stays.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream edit ORDERS --max-age 30d --force
  fanline stream edit ORDERS --subjects 'orders.>' --subjects 'returns.>' --dry-run
  fanline stream edit COPY --no-mirror --subjects 'orders.>' --force")]
pub(crate) struct EditArgs {
    /// The stream
    stream: String,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    config: ConfigArgs,
    /// Copy no other stream any more: what it has stays, and it may have subjects of its own
    #[arg(long, conflicts_with = "mirror")]
    no_mirror: bool,
    /// Show what it would be, and change nothing
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
            eprintln!("Nothing changes");
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
            false => details::print(&info, "Stream", "was changed"),
        }
    }
}
