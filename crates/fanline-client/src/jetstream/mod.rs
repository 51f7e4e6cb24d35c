//! JetStream: streams, consumers, [key-value buckets](KeyValue), and [object stores](ObjectStore).
//!
//! ```no_run
//! use fanline_client::jetstream::{JetStream, StreamConfig};
//! use fanline_client::{Client, ConnectOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(&ConnectOptions::new("nats://localhost:4222")?).await?;
//! let jetstream = JetStream::new(&client);
//! let config = StreamConfig {
//!     name: "ORDERS".into(),
//!     subjects: vec!["orders.>".into()],
//!     ..Default::default()
//! };
//! jetstream.create_stream(&config.into()).await?;
//! let ack = jetstream.publish("orders.new", "one coffee").await?;
//! println!("stored at {}", ack.seq);
//! # Ok(()) }
//! ```
//!
//! Every call is a request to the API `$JS.API.>`, with the JSON that NATS servers and clients share. Every
//! request can return [`Client`](JetStreamError::Client), [`Api`](JetStreamError::Api),
//! [`NotEnabled`](JetStreamError::NotEnabled), and [`Unexpected`](JetStreamError::Unexpected). The sections
//! about errors call these four the *errors of every request*.
//!
//! Fields that this version does not know are preserved and sent back ([`Kept`]). So a client that updates a
//! stream of a newer server loses no settings.

mod consumer_config;
mod consumers;
mod error;
mod info;
mod kv;
mod messages;
mod names;
mod object;
mod ordered;
mod publish;
mod pull;
mod stream_config;
mod streams;
mod transfer;
mod values;

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use consumer_config::{AckPolicy, ConsumerConfig, DeliverPolicy, PriorityPolicy, ReplayPolicy};
pub use consumers::{ConsumerAction, PauseInfo};
pub use error::JetStreamError;
pub use info::{
    AccountInfo, AccountLimits, ApiError, ApiUse, ClusterInfo, ConsumerInfo, Kept, Lost,
    OriginInfo, Other, Position, StreamInfo, StreamState,
};
pub use kv::{BucketConfig, Entry, KeyValue, Operation, Watch, WatchOptions};
pub use messages::{StoredMessage, Wanted};
pub use object::{
    ObjectInfo, ObjectLink, ObjectMeta, ObjectOptions, ObjectReader, ObjectStore,
    ObjectStoreConfig, ObjectWatch,
};
pub use ordered::{Ordered, OrderedOptions, Start};
pub use publish::{PublishAck, Publisher};
pub use pull::{Acknowledgement, Delivery, Pull, PullRequest};
pub use stream_config::{
    Compression, ConsumerLimits, Discard, External, PersistMode, Placement, Republish, Retention,
    SourceConsumer, Storage, StreamConfig, StreamSource, SubjectTransform, SyncMode,
};
pub use streams::Purge;
pub use transfer::{Backup, Restore};
pub use values::{Metadata, Nanos, Timestamp};

use super::{Client, ClientError, Message};

/// Prefix of the API's subjects without a domain.
const API_PREFIX: &str = "$JS.API";
/// Default time to wait for a reply of the API.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// The JetStream API of an account. Clones share the connection.
#[derive(Clone)]
pub struct JetStream {
    client: Client,
    prefix: String,
    timeout: Duration,
}

impl JetStream {
    /// Returns the JetStream API of the account that the client is connected to.
    pub fn new(client: &Client) -> Self {
        JetStream {
            client: client.clone(),
            prefix: API_PREFIX.to_owned(),
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// Sets the JetStream domain, for example that of a server behind a leaf node connection.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> Self {
        self.prefix = format!("$JS.{domain}.API");
        self
    }

    /// Sets the time to wait for a reply; 5 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the usage and limits of the account.
    ///
    /// # Errors
    ///
    /// The [errors of every request](self).
    pub async fn account(&self) -> Result<AccountInfo, JetStreamError> {
        self.call("INFO").await
    }

    /// Sends a request without a body.
    async fn call<R: DeserializeOwned>(&self, endpoint: &str) -> Result<R, JetStreamError> {
        self.send(endpoint, Bytes::new()).await
    }

    /// Sends a request with a body.
    async fn call_with<R: DeserializeOwned>(
        &self,
        endpoint: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<R, JetStreamError> {
        self.send(endpoint, json(body)?).await
    }

    async fn send<R: DeserializeOwned>(
        &self,
        endpoint: &str,
        payload: Bytes,
    ) -> Result<R, JetStreamError> {
        read(self.request(endpoint, payload).await?.payload())
    }

    /// Sends a request whose reply need not be JSON.
    async fn request(&self, endpoint: &str, payload: Bytes) -> Result<Message, JetStreamError> {
        let subject = format!("{}.{endpoint}", self.prefix);
        match self.client.request(&subject, payload, self.timeout).await {
            // No server with JetStream has received the request.
            Err(ClientError::NoResponders) => Err(JetStreamError::NotEnabled),
            reply => Ok(reply?),
        }
    }

    /// Returns the subject to publish to, for a message that is stored with `subject`. Subjects such as
    /// `$KV.>` exist in each domain, so a message for another domain is published through that domain's API.
    fn write_subject(&self, subject: &str) -> String {
        match self.prefix == API_PREFIX {
            true => subject.to_owned(),
            false => format!("{}.{subject}", self.prefix),
        }
    }

    /// Returns the subject of a request that can have several replies.
    fn endpoint(&self, endpoint: &str) -> String {
        format!("{}.{endpoint}", self.prefix)
    }
}

/// Parses a reply. Returns the result, or the error that the API returned.
fn read<R: DeserializeOwned>(payload: &[u8]) -> Result<R, JetStreamError> {
    let value: Value = serde_json::from_slice(payload).map_err(JetStreamError::unexpected)?;
    if let Some(error) = value.get("error") {
        return Err(JetStreamError::from_json(error));
    }
    serde_json::from_value(value).map_err(JetStreamError::unexpected)
}

fn json(body: &(impl Serialize + ?Sized)) -> Result<Bytes, JetStreamError> {
    let text = serde_json::to_vec(body).map_err(JetStreamError::unexpected)?;
    Ok(text.into())
}
