//! Clients, and checks of what a case receives.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::ensure;
use async_nats::{Client, ConnectOptions};

use crate::server::Server;

pub type Outcome = anyhow::Result<()>;

/// Time limit of a wait. It only prevents a hanging case from blocking the run.
pub const WAIT: Duration = Duration::from_secs(30);

pub async fn connect_with(server: &Server, options: ConnectOptions) -> anyhow::Result<Client> {
    Ok(options
        .connection_timeout(Duration::from_secs(10))
        .request_timeout(Some(WAIT))
        .subscription_capacity(1 << 17)
        .connect(format!("127.0.0.1:{}", server.port))
        .await?)
}

pub async fn connect(server: &Server) -> anyhow::Result<Client> {
    connect_with(server, ConnectOptions::new()).await
}

pub fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

pub fn equal<F: PartialEq<W> + Debug, W: Debug>(found: F, wanted: W, what: &str) -> Outcome {
    ensure!(
        found == wanted,
        "{what}: found {found:.400?}, wanted {wanted:.400?}"
    );
    Ok(())
}
