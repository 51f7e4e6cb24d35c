#![doc = include_str!("../README.md")]
//!
//! The server runs on its own threads and needs no tokio runtime of the caller. The client runs on the
//! caller's runtime. [`Options`] documents every option of a server, [`client`] the client, and [`bridge`]
//! how sources of the `fanline` library (subjects, replay subjects, and hubs) are bound to NATS subjects.

mod account_directory;
mod auth_pool;
pub mod bridge;
mod callout;
mod clock;
mod cluster;
mod colocated;
pub mod config;
mod error;
mod gateway;
mod gateways;
mod identity;
mod ipc;
mod jetstream;
mod leaf;
mod listen;
mod monitoring;
mod options;
mod ports_file;
mod private_files;
mod remotes;
mod resolver;
mod routes;
mod runtime;
mod server;
mod shared;
mod sync;
mod threads;
mod tls;
mod version;
mod wire;

pub use account_directory::{Directory, StoreError, Stored};
#[doc(hidden)]
pub use error::os_error_text;
pub use error::{StartError, StoreKeyError};
/// The NATS client. [`Handle::client`] returns a client that is connected to the server by a pipe in this
/// process.
pub use fanline_client as client;
/// Users, accounts, and permissions.
pub use fanline_engine::auth;
#[doc(hidden)]
pub use ipc::JetStreamAtWork;
pub use options::{
    Addresses, AssetLimits, Auth, BatchLimits, Certificate, Cipher, ClientCertificates,
    ClusterOptions, CompressionLevel, Dashboard, DirectoryOptions, Encryption, GatewayOptions,
    JetStreamOptions, LEAFNODE_PORT, LeafnodeListener, LeafnodeOptions, LeafnodeProxy,
    LeafnodeRemote, LeafnodeUser, Limits, LinkCompression, MqttOptions, Options, Origin,
    RemoteGateway, ResolverOptions, Secret, SyncMode, TlsHandshake, TlsOptions, TlsVersion,
    UrlOptions, WebSocketOptions,
};
pub use server::{Handle, Server};
pub use shared::{ReloadRequest, ReloadRequests};
pub use threads::thread_table;
pub use version::{COMPATIBLE_VERSION, VERSION};

/// Tests of the Rust code in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Tests of the Rust code in the book.
#[cfg(doctest)]
mod book {
    macro_rules! pages {
        ($($name:ident: $page:literal),* $(,)?) => {
            $(
                #[doc = include_str!(concat!("../../../docs/", $page))]
                struct $name;
            )*
        };
    }

    pages! {
        ServerTutorial: "tutorials/server.md",
        LibraryTutorial: "tutorials/library.md",
        Choose: "how-to/choose.md",
        Bridge: "tutorials/bridge.md",
        Rx: "how-to/migrate/rx.md",
        Pekko: "how-to/migrate/pekko.md",
    }
}
