//! `fanline stream backup`: writes a stream to files.

use std::path::{Path, PathBuf};

use clap::Args;
use fanline_client::jetstream::Backup;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};

use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::show;

/// File in a backup's folder that describes the stream.
pub(super) const DESCRIPTION_FILE: &str = "backup.json";
/// Names of the file with the stream's messages, in the server's own format. The name identifies the format,
/// as in the nats CLI.
pub(super) const CONTENT_FILES: [&str; 2] = ["stream.arc.s2", "stream.tar.s2"];
/// First version of nats-server with backups that are not tar files.
const ARCHIVE_VERSION: (u32, u32) = (2, 15);

/// Back up a stream to a folder, from which a server of the same kind can restore it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream backup ORDERS backups/orders
  fanline stream restore backups/orders")]
pub(crate) struct BackupArgs {
    /// Name of the stream
    stream: String,
    /// Folder to create
    target: PathBuf,
    /// Verify all messages first
    #[arg(long)]
    check: bool,
    /// Back up the messages without consumers
    #[arg(long)]
    no_consumers: bool,
    /// Back up the consumers as well, which is the default
    #[arg(long, hide = true, conflicts_with = "no_consumers")]
    consumers: bool,
    /// Ignored, for scripts of the nats CLI: this command shows no progress
    #[arg(long, hide = true)]
    no_progress: bool,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl BackupArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let mut backup = jetstream
            .backup(&self.stream, !self.no_consumers, self.check)
            .await?;
        std::fs::create_dir_all(&self.target)?;
        let description = self.target.join(DESCRIPTION_FILE);
        if description.exists() {
            return Err(Failure::Error(format!(
                "{} already contains a backup",
                self.target.display()
            )));
        }
        let version = &jetstream.client().server_info().version;
        let content = self.target.join(content_file(version));
        let bytes = write_content(&mut backup, &content).await?;
        // The description is written last, because a folder without a description is not a backup.
        let text = serde_json::to_vec_pretty(backup.description()).map_err(std::io::Error::from)?;
        std::fs::write(description, text)?;
        eprintln!(
            "Backed up stream {}: {} messages, {} in {}",
            self.stream,
            show::count(backup.state().messages),
            show::bytes(bytes),
            self.target.display(),
        );
        Ok(())
    }
}

/// Returns the file's name for a server version such as `2.15.0`.
fn content_file(version: &str) -> &'static str {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    CONTENT_FILES[usize::from(version < ARCHIVE_VERSION)]
}

async fn write_content(backup: &mut Backup, path: &Path) -> Result<u64, Failure> {
    let mut file = BufWriter::new(File::create(path).await?);
    let mut bytes = 0;
    while let Some(piece) = backup.next().await? {
        file.write_all(&piece).await?;
        bytes += piece.len() as u64;
    }
    file.flush().await?;
    file.into_inner().sync_all().await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_matches_the_servers_format() {
        for (version, expected) in [
            ("2.15.2", "stream.arc.s2"),
            ("3.0.0-dev", "stream.arc.s2"),
            ("2.9.25", "stream.tar.s2"),
        ] {
            assert_eq!(content_file(version), expected, "{version}");
        }
    }
}
