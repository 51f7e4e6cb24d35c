//! A client of the JetStream API, which creates streams and consumers for the loads.

use std::io::Write;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::connection::Connection;
use super::frames;
use super::incoming::Incoming;

const INBOX: &str = "_INBOX.api";

pub(crate) struct Api {
    connection: Connection,
}

impl Api {
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        let connection = Connection::open(address)?;
        connection.subscribe(INBOX, None, 1)?;
        Ok(Self { connection })
    }

    /// Sends a request to `$JS.API.<endpoint>`. Converts an error response to an error.
    pub(crate) fn ask(&self, endpoint: &str, body: &Value) -> Result<Value> {
        let mut stream = self.connection.stream();
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let subject = format!("$JS.API.{endpoint}");
        stream.write_all(&frames::request(&subject, INBOX, &body))?;
        let mut incoming = Incoming::new(stream);
        loop {
            if let Some(answer) = incoming.next()? {
                let payload = answer.payload;
                let headers = answer.headers;
                let value: Value = serde_json::from_slice(payload)
                    .with_context(|| format!("{endpoint}: {}", String::from_utf8_lossy(headers)))?;
                if let Some(error) = value.get("error") {
                    bail!("{endpoint}: {error}");
                }
                return Ok(value);
            }
            incoming.read()?;
        }
    }

    pub(crate) fn messages(&self, stream: &str) -> Result<u64> {
        let info = self.ask(&format!("STREAM.INFO.{stream}"), &Value::Null)?;
        let messages = info["state"]["messages"].as_u64();
        messages.context("a stream without a number of messages")
    }
}
