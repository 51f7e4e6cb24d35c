//! `fanline object put`: uploads a file.

use std::path::{Path, PathBuf};

use clap::Args;
use fanline_client::jetstream::{ObjectInfo, ObjectMeta, ObjectOptions, ObjectStore};

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::values;

/// Upload a file, or stdin; an object of the same name is replaced.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline object put images cup.png
  tar c docs | fanline object put backups --name docs.tar")]
pub(crate) struct PutArgs {
    /// Name of the store
    bucket: String,
    /// File to upload; without it, or for `-`, stdin
    file: Option<PathBuf>,
    /// Name of the object; the file's name by default
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Description
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,
    /// Header to add; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME:VALUE", value_parser = values::header)]
    headers: Vec<(String, String)>,
    /// Metadata label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    metadata: Vec<(String, String)>,
    /// Chunk size in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    chunk_size: Option<usize>,
    /// Ignored, for scripts of the nats CLI: this command shows no progress
    #[arg(long, hide = true)]
    no_progress: bool,
    /// Ignored, for scripts of the nats CLI: an object of the same name is always replaced
    #[arg(short, long, hide = true)]
    force: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl PutArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let meta = self.meta()?;
        let jetstream = self.jetstream.connect().await?;
        let store = jetstream.object_store(&self.bucket).await?;
        let info = self.put(&store, meta).await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print_object(&info),
        }
    }

    async fn put(&self, store: &ObjectStore, meta: ObjectMeta) -> Result<ObjectInfo, Failure> {
        let Some(path) = self.path() else {
            return Ok(store.put(meta, &mut tokio::io::stdin()).await?);
        };
        let file = tokio::fs::File::open(path).await;
        let mut file = file
            .map_err(|error| Failure::Error(format!("cannot read {}: {error}", path.display())))?;
        Ok(store.put(meta, &mut file).await?)
    }

    fn path(&self) -> Option<&Path> {
        self.file.as_deref().filter(|path| *path != Path::new("-"))
    }

    fn meta(&self) -> Result<ObjectMeta, Failure> {
        let file_name = self.path().and_then(Path::file_name);
        let name = self
            .name
            .clone()
            .or_else(|| file_name.map(|name| name.to_string_lossy().into_owned()));
        let name =
            name.ok_or_else(|| Failure::Usage("an object from stdin needs a --name".into()))?;
        let too_large = |_| Failure::Usage("--chunk-size must be less than 4 GiB".to_owned());
        let max_chunk_size = self.chunk_size.map(u32::try_from).transpose();
        let mut meta = ObjectMeta {
            name,
            description: self.description.clone(),
            metadata: self.metadata.iter().cloned().collect(),
            options: Some(ObjectOptions {
                max_chunk_size: max_chunk_size.map_err(too_large)?,
                link: None,
            }),
            ..Default::default()
        };
        for (name, value) in &self.headers {
            let values = meta.headers.entry(name.clone()).or_default();
            values.push(value.clone());
        }
        Ok(meta)
    }
}
