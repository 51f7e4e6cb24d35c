//! Payload and headers of messages to send.

use std::io::{IsTerminal, Read, stdin};
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use fanline_client::Headers;

use crate::failure::Failure;
use crate::values;

/// Options for payload and headers.
#[derive(Args, Clone, Debug)]
pub(crate) struct PayloadArgs {
    /// The payload; `-`, or no payload with piped input, reads stdin
    payload: Option<String>,
    /// File with the payload
    #[arg(short, long, conflicts_with = "payload")]
    pub(crate) file: Option<PathBuf>,
    /// Header to add; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME:VALUE", value_parser = values::header)]
    headers: Vec<(String, String)>,
}

impl PayloadArgs {
    /// Returns whether the payload comes from stdin.
    pub(crate) fn is_stdin(&self) -> bool {
        match (&self.payload, &self.file) {
            (Some(payload), _) => payload == "-",
            (None, file) => file.is_none() && !stdin().is_terminal(),
        }
    }

    /// Returns whether the command line contains the payload itself, rather than `-` for stdin.
    pub(crate) fn is_argument(&self) -> bool {
        self.payload
            .as_deref()
            .is_some_and(|payload| payload != "-")
    }

    /// Returns the whole payload; reads the file or stdin to its end.
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

    /// Returns the headers, validated.
    pub(crate) fn headers(&self) -> Result<Headers, Failure> {
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            headers.append(name, value)?;
        }
        Ok(headers)
    }
}
