//! `fanline stream add`: creates a stream.

use clap::Args;
use fanline_client::jetstream::{Kept, StreamConfig};

use super::config::{ConfigArgs, ConfigFile};
use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Create a stream.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream add ORDERS --subjects 'orders.>'
  fanline stream add JOBS --subjects jobs --retention work --max-age 7d
  fanline stream add LAST --subjects 'state.>' --max-msgs-per-subject 1 --storage memory
  fanline stream add --config orders.json

Without --subjects, the stream stores messages to the subject with its own name.")]
pub(crate) struct AddArgs {
    /// Name of the stream
    stream: Option<String>,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    config: ConfigArgs,
    /// Ignored, for scripts of the nats CLI: this command never prompts
    #[arg(long, hide = true)]
    defaults: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl AddArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut config = self.file.read()?.unwrap_or_else(|| {
            // `allow_direct` is true by default in the nats CLI, but false in the server.
            Kept::from(StreamConfig {
                allow_direct: true,
                ..Default::default()
            })
        });
        if let Some(stream) = &self.stream {
            config.name.clone_from(stream);
        }
        if config.name.is_empty() {
            return Err(Failure::Usage(
                "expected a stream name, as an argument or in --config".to_owned(),
            ));
        }
        self.config.apply(&mut config)?;
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.create_stream(&config).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "Stream", "created"),
        }
    }
}
