//! Where a message's content comes from, and its headers.

use std::io::{IsTerminal, Read, stdin};
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use fanline_client::Headers;

use crate::failure::Failure;
use crate::values;

/// Content and headers of a message to send.
#[derive(Args, Clone, Debug)]
pub(crate) struct PayloadArgs {
    /// The payload; `-` reads stdin, and so does leaving it out when something is piped in
    payload: Option<String>,
    /// Take the payload from a file
    #[arg(short, long, conflicts_with = "payload")]
    pub(crate) file: Option<PathBuf>,
    /// Add a header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME:VALUE", value_parser = values::header)]
    headers: Vec<(String, String)>,
}

impl PayloadArgs {
    /// Whether the payload would come from stdin.
    pub(crate) fn is_stdin(&self) -> bool {
        match (&self.payload, &self.file) {
            (Some(payload), _) => payload == "-",
            (None, file) => file.is_none() && !stdin().is_terminal(),
        }
    }

    /// Whether the payload stands on the command line.
    pub(crate) fn is_argument(&self) -> bool {
        self.payload
            .as_deref()
            .is_some_and(|payload| payload != "-")
    }

    /// The whole payload; reads the file or stdin to its end.
    pub(crate) fn read(&self) -> Result<Bytes, Failure> {
        if self.is_stdin() {
            let mut content = Vec::new();
            stdin().read_to_end(&mut content)?;
            return Ok(content.into());
        }
        match (&self.payload, &self.file) {
            (Some(payload), _) => Ok(payload.clone().into()),
            (None, Some(path)) => {
                let content = std::fs::read(path).map_err(|error| {
                    Failure::Error(format!("cannot read {}: {error}", path.display()))
                })?;
                Ok(content.into())
            }
            (None, None) => Ok(Bytes::new()),
        }
    }

    /// The headers, checked.
    pub(crate) fn headers(&self) -> Result<Headers, Failure> {
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            headers.append(name, value)?;
        }
        Ok(headers)
    }
}
