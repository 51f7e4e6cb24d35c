//! What survives the server of a stream.

use super::consumer::ConsumerConfig;
use super::stream::{Retention, Storage, StreamConfig};

/// The parts of a stream's configuration that determine which of its consumers are stored.
#[derive(Clone, Copy, Debug)]
pub struct Durability {
    replicas: i64,
    retention: Retention,
}

impl StreamConfig {
    /// Returns whether a group of servers replicates the stream.
    pub fn is_replicated(&self) -> bool {
        self.num_replicas > 1
    }

    /// Returns whether the stream is stored in a folder. This includes replicated streams with memory storage: their
    /// messages must survive the failure of a server, and a group replicates folders.
    pub fn is_in_folder(&self) -> bool {
        self.storage == Storage::File || self.is_replicated()
    }

    /// Returns what determines which consumers are stored.
    pub fn durability(&self) -> Durability {
        Durability {
            replicas: self.num_replicas,
            retention: self.retention,
        }
    }
}

impl Durability {
    /// Returns the number of replicas of a consumer. Without one of its own, an ephemeral consumer has one, unless the
    /// retention policy of the stream depends on it.
    pub fn replicas_of(self, consumer: &ConsumerConfig) -> i64 {
        match consumer.num_replicas {
            0 if !consumer.is_durable() && self.retention == Retention::Limits => 1,
            0 => self.replicas,
            replicas => replicas.min(self.replicas),
        }
    }

    /// Returns whether the configuration and the state of a consumer are stored with the stream: unless they are in
    /// memory only, or if they are replicated.
    pub fn stores(self, consumer: &ConsumerConfig) -> bool {
        !consumer.mem_storage || self.replicas_of(consumer) > 1
    }
}
