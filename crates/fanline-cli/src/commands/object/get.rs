//! `fanline object get`: downloads an object to a file.

use std::path::{Path, PathBuf};

use clap::Args;
use fanline_client::jetstream::ObjectReader;
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};
use crate::show;

/// Download an object to a file, and verify its digest.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline object get images cup.png
  fanline object get backups docs.tar --output - | tar x")]
pub(crate) struct GetArgs {
    /// Name of the store
    bucket: String,
    /// Name of the object
    name: String,
    /// File to write, `-` for stdout; by default, the object's name in the current folder
    #[arg(short = 'O', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Ignored, for scripts of the nats CLI: this command shows no progress
    #[arg(long, hide = true)]
    no_progress: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl GetArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let store = jetstream.object_store(&self.bucket).await?;
        let mut reader = store.get(&self.name).await?;
        if self.output.as_deref() == Some(Path::new("-")) {
            return copy(&mut reader, &mut BufWriter::new(tokio::io::stdout())).await;
        }
        let path = self.path()?;
        if path.exists() {
            self.force
                .confirm(&format!("Overwrite {}?", path.display()))?;
        }
        self.write(&mut reader, &path).await?;
        let size = show::bytes(reader.info().size);
        eprintln!("Wrote {size} to {}", path.display());
        Ok(())
    }

    /// Writes to a partial file first. The partial file replaces the target file when the object is complete
    /// and its digest is correct.
    async fn write(&self, reader: &mut ObjectReader, path: &Path) -> Result<(), Failure> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut file = BufWriter::new(File::create(&partial).await?);
        let outcome = copy(reader, &mut file).await;
        drop(file);
        match outcome {
            Ok(()) => Ok(std::fs::rename(&partial, path)?),
            Err(error) => {
                // Report the first error only.
                let _ = std::fs::remove_file(&partial);
                Err(error)
            }
        }
    }

    /// Returns the path of the file. Folders in the object's name are ignored, so that the name cannot select
    /// another folder.
    fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(output) = &self.output {
            return Ok(output.clone());
        }
        let name = Path::new(&self.name).file_name();
        name.map(PathBuf::from).ok_or_else(|| {
            Failure::Usage("the object's name is not a file name: use --output".to_owned())
        })
    }
}

async fn copy(
    reader: &mut ObjectReader,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<(), Failure> {
    while let Some(piece) = reader.next().await? {
        out.write_all(&piece).await?;
    }
    out.flush().await?;
    Ok(())
}
