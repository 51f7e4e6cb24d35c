//! `fanline stream restore`: restores a stream from files.

use std::path::PathBuf;

use bytes::BytesMut;
use clap::Args;
use fanline_client::jetstream::{Kept, Placement, Restore, StreamConfig};
use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::backup::{CONTENT_FILES, DESCRIPTION_FILE};
use super::config::ConfigFile;
use super::details;
use crate::failure::Failure;
use crate::files::read_json;
use crate::jetstream::JetStreamArgs;

/// Restore a stream from the folder of its backup.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// Folder of the backup
    #[arg(value_name = "FOLDER")]
    source: PathBuf,
    #[command(flatten)]
    file: ConfigFile,
    /// Number of replicas
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Cluster to place it in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Ignored, for scripts of the nats CLI: this command shows no progress
    #[arg(long, hide = true)]
    no_progress: bool,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RestoreArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut description: Value = read_json(&self.source.join(DESCRIPTION_FILE))?;
        let wrong = |error| Failure::Error(format!("cannot read {DESCRIPTION_FILE}: {error}"));
        let mut config: Kept<StreamConfig> = match self.file.read()? {
            Some(config) => config,
            None => serde_json::from_value(description["config"].take()).map_err(wrong)?,
        };
        if let Some(replicas) = self.replicas {
            config.num_replicas = replicas;
        }
        if let Some(cluster) = self.cluster {
            config.placement = Some(Placement {
                cluster,
                ..Default::default()
            });
        }
        let name = config.name.clone();
        description["config"] = serde_json::to_value(config).map_err(wrong)?;

        let content = CONTENT_FILES.map(|name| self.source.join(name));
        let content = content.iter().find(|path| path.exists()).ok_or_else(|| {
            let folder = self.source.display();
            Failure::Error(format!("{folder} does not contain a backup"))
        })?;
        let jetstream = self.jetstream.connect().await?;
        let mut content = File::open(content).await?;
        let restore = jetstream.restore(&name, &description).await?;
        send_content(&restore, &mut content).await?;
        let info = restore.finish().await?;
        details::print(&info, "Stream", "restored")
    }
}

async fn send_content(restore: &Restore, content: &mut File) -> Result<(), Failure> {
    loop {
        let mut piece = BytesMut::with_capacity(Restore::PIECE_BYTES);
        let left = Restore::PIECE_BYTES as u64;
        if (&mut *content).take(left).read_buf(&mut piece).await? == 0 {
            return Ok(());
        }
        restore.send(piece.freeze()).await?;
    }
}
