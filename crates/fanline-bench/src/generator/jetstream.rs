//! A client of the JetStream API, which creates streams and consumers for the loads.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::connection::{Connection, STALL_LIMIT};
use super::frames;
use super::incoming::Incoming;
use super::interest::new_subject;

pub(crate) struct Api {
    connection: Connection,
    /// Subject of the answers. No other value has it, so late answers to earlier requests do not arrive here.
    inbox: String,
}

impl Api {
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        Self::open_within(address, STALL_LIMIT)
    }

    /// Does the same as [`open`](Self::open). A request without an answer fails after `limit`.
    pub(crate) fn open_within(address: SocketAddr, limit: Duration) -> Result<Self> {
        let connection = Connection::open(address)?;
        let inbox = format!("_INBOX.{}", new_subject());
        connection.subscribe(&inbox, None, 1)?;
        connection.stream().set_read_timeout(Some(limit))?;
        Ok(Self { connection, inbox })
    }

    /// Sends a request to `$JS.API.<endpoint>`. Converts an error response to an error.
    pub(crate) fn ask(&self, endpoint: &str, body: &Value) -> Result<Value> {
        let mut stream = self.connection.stream();
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let subject = format!("$JS.API.{endpoint}");
        stream.write_all(&frames::request(&subject, &self.inbox, &body))?;
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
