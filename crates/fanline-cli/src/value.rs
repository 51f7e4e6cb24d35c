//! Values from an argument or from stdin.

use std::io::{Read, stdin};

use bytes::Bytes;
use clap::Args;

use crate::failure::Failure;

/// The value of a key.
#[derive(Args, Clone, Debug)]
pub(crate) struct ValueArgs {
    /// The value; without it, or for `-`, all of stdin
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
