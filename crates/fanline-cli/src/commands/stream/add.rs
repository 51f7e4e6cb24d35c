//! `fanline stream add`: make a stream.

use clap::Args;
use fanline_client::jetstream::{Kept, StreamConfig};

use super::config::{ConfigArgs, ConfigFile};
use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Make a stream.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream add ORDERS --subjects 'orders.>'
  fanline stream add JOBS --subjects jobs --retention work --max-age 7d
  fanline stream add LAST --subjects 'state.>' --max-msgs-per-subject 1 --storage memory
  fanline stream add --config orders.json

Without --subjects it keeps the subject that is its own name.")]
pub(crate) struct AddArgs {
    /// Its name
    stream: Option<String>,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    config: ConfigArgs,
    /// For scripts of the nats CLI: there are no questions here in any case
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
            // As the nats CLI has it, where the server's default is no.
            Kept::from(StreamConfig {
                allow_direct: true,
                ..Default::default()
            })
        });
        if let Some(stream) = &self.stream {
            config.name.clone_from(stream);
        }
        if config.name.is_empty() {
            return Err(Failure::Usage("the stream needs a name".to_owned()));
        }
        self.config.apply(&mut config)?;
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.create_stream(&config).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info, "Stream", "was created"),
        }
    }
}
