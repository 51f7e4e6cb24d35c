//! The Fanline server as a library: shards, sockets, clock, options, monitoring, and a client.
//!
//! A server in one's own process is reached without a socket; NATS clients in any language reach
//! the same one over TCP:
//!
//! ```
//! use fanline_server::{Options, Server};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Port 0 is any free port. Without it: 127.0.0.1:4222.
//!     let server = Server::start(Options { port: 0, ..Options::default() })?;
//!     println!("NATS clients connect to {}", server.addresses().clients);
//!
//!     let client = server.client().await?;
//!     let mut orders = client.subscribe("orders.*").await?;
//!     // What anybody publishes after this arrives.
//!     client.flush().await?;
//!
//!     client.publish("orders.new", "one coffee").await?;
//!     let order = orders.next().await.ok_or("the server is gone")?;
//!     assert_eq!(order.subject(), "orders.new");
//!     assert_eq!(order.payload(), b"one coffee");
//!
//!     server.shutdown();
//!     server.wait().await;
//!     Ok(())
//! }
//! ```
//!
//! The server runs on threads of its own and needs no runtime of the caller's; the client runs on
//! the caller's tokio runtime. [`Options`] says everything that a server can be told before it
//! starts, [`client`] everything about the client, and [`bridge`] how subjects, replay subjects and hubs of
//! the `fanline` library are bound to subjects of the server.

mod accounts;
pub mod bridge;
mod callout;
mod checks;
pub mod config;
mod control;
mod identity;
mod jetstream;
mod leaf;
mod listen;
mod monitoring;
mod options;
mod panic_guard;
mod ports_file;
mod private;
mod reloads;
mod resolver;
mod server;
mod shell;
mod sync;
mod threads;
mod tls;

/// The NATS client: [`Handle::client`] gives one that reaches the server through a pipe in this process.
pub use fanline_client as client;
/// Who may connect, and what they may do.
pub use fanline_engine::auth;
pub use jetstream::StoreKeyError;
pub use options::{
    Addresses, AssetLimits, Auth, BatchLimits, Certificate, Cipher, ClientCertificates,
    CompressionLevel, Dashboard, Encryption, JetStreamOptions, LEAFNODE_PORT, LeafCompression,
    LeafnodeListener, LeafnodeOptions, LeafnodeProxy, LeafnodeRemote, LeafnodeUser, Limits,
    MqttOptions, Options, Origin, ResolverOptions, Secret, SyncMode, TlsHandshake, TlsOptions,
    TlsVersion, UrlOptions, WebSocketOptions,
};
#[doc(hidden)]
pub use panic_guard::JetStreamAtWork;
pub use reloads::{ReloadRequest, ReloadRequests};
pub use resolver::{Directory, DirectoryOptions, StoreError, Stored};
pub use server::{COMPATIBLE_VERSION, Handle, Server, StartError, VERSION};
pub use threads::thread_table;

/// The Rust code in the README compiles and runs as part of the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The Rust code in the book compiles and runs as part of the tests.
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
