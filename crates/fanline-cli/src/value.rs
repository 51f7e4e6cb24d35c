//! A value from the command line, or from stdin.

use std::io::{Read, stdin};

use bytes::Bytes;
use clap::Args;

use crate::failure::Failure;

/// What a key is given.
#[derive(Args, Clone, Debug)]
pub(crate) struct ValueArgs {
    /// The value; without it, or as `-`, all of stdin
    value: Option<String>,
}

impl ValueArgs {
    pub(crate) fn read(&self) -> Result<Bytes, Failure> {
        match self.value.as_deref() {
            Some(value) if value != "-" => Ok(value.to_owned().into()),
            _ => {
                let mut value = Vec::new();
                stdin().read_to_end(&mut value)?;
                Ok(value.into())
            }
        }
    }
}
