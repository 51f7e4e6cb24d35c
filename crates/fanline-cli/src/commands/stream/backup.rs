//! `fanline stream backup`: a stream as files.

use std::path::{Path, PathBuf};

use clap::Args;
use fanline_client::jetstream::Backup;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};

use crate::failure::Failure;
use crate::jetstream::JetStreamArgs;
use crate::show;

/// What describes the stream, in the folder of its backup.
pub(super) const DESCRIPTION_FILE: &str = "backup.json";
/// What it holds, in the server's own format: the names tell the nats CLI which one it is.
pub(super) const CONTENT_FILES: [&str; 2] = ["stream.arc.s2", "stream.tar.s2"];
/// The first version of nats-server whose backups are no tar files.
const ARCHIVE_VERSION: (u32, u32) = (2, 15);

/// Write a stream to a folder, from which any server of the same kind brings it back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline stream backup ORDERS backups/orders
  fanline stream restore backups/orders")]
pub(crate) struct BackupArgs {
    /// The stream
    stream: String,
    /// The folder, which is made
    target: PathBuf,
    /// Look at every record before
    #[arg(long)]
    check: bool,
    /// Leave consumers out
    #[arg(long)]
    no_consumers: bool,
    /// Take the consumers too, which is the default
    #[arg(long, hide = true, conflicts_with = "no_consumers")]
    consumers: bool,
    /// For scripts of the nats CLI: nothing moves here in any case
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
                "there is a backup in {} already",
                self.target.display()
            )));
        }
        let version = &jetstream.client().server_info().version;
        let content = self.target.join(content_file(version));
        let bytes = write_content(&mut backup, &content).await?;
        // Written last: a folder without it is no backup.
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

/// By the server's version, `2.15.0` or the like.
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
    fn the_name_tells_the_format() {
        for (version, expected) in [
            ("2.15.2", "stream.arc.s2"),
            ("3.0.0-dev", "stream.arc.s2"),
            ("2.9.25", "stream.tar.s2"),
        ] {
            assert_eq!(content_file(version), expected, "{version}");
        }
    }
}
