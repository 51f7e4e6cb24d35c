//! Connections of the tools: options, and reconnection.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fanline_client::{Client, ClientError, ConnectOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::failure::Failure;

/// The server if none is configured.
const SERVER_DEFAULT: &str = "nats://127.0.0.1:4222";
/// First delay before another attempt to connect. The delay doubles with each attempt.
const BACK_OFF_FIRST: Duration = Duration::from_millis(100);
/// Longest delay between two attempts.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// Options of all commands that connect to a server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Server URL, or a comma-separated list: nats://user:password@host:port
    ///
    /// The default is $FANLINE_URL, then $NATS_URL, then nats://127.0.0.1:4222.
    #[arg(short, long, value_name = "URL")]
    server: Option<String>,
    /// User name
    #[arg(long)]
    user: Option<String>,
    /// Password of --user
    #[arg(long, requires = "user")]
    password: Option<String>,
    /// Authentication token
    #[arg(long, conflicts_with = "user")]
    token: Option<String>,
    /// PEM file of authorities that may issue the server's certificate
    #[arg(long, alias = "tls-ca", value_name = "FILE")]
    tlsca: Option<PathBuf>,
    /// PEM file of the client's certificate
    #[arg(long, alias = "tls-cert", value_name = "FILE", requires = "tlskey")]
    tlscert: Option<PathBuf>,
    /// PEM file of the key of --tlscert
    #[arg(long, alias = "tls-key", value_name = "FILE", requires = "tlscert")]
    tlskey: Option<PathBuf>,
    /// Start TLS before the server sends INFO
    #[arg(long, alias = "tls-first")]
    tlsfirst: bool,
    /// File with the seed of an nkey, which signs the server's nonce
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "token"])]
    nkey: Option<PathBuf>,
    /// Credentials file: a user's JWT and the seed of its key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "token", "nkey"])]
    creds: Option<PathBuf>,
    /// Name of this connection in the server's monitoring
    #[arg(long, value_name = "NAME", default_value = "fanline CLI")]
    connection_name: String,
}

impl ConnectionArgs {
    /// Returns options of a command that has only these two of them.
    pub(crate) fn to(server: Option<String>, creds: Option<PathBuf>) -> Self {
        ConnectionArgs {
            server,
            user: None,
            password: None,
            token: None,
            tlsca: None,
            tlscert: None,
            tlskey: None,
            tlsfirst: false,
            nkey: None,
            creds,
            connection_name: "fanline CLI".into(),
        }
    }

    /// Returns the server's address from options or environment.
    fn server(&self) -> String {
        let from_environment = |name| std::env::var(name).ok().filter(|url| !url.is_empty());
        self.server
            .clone()
            .or_else(|| from_environment("FANLINE_URL"))
            .or_else(|| from_environment("NATS_URL"))
            .unwrap_or_else(|| SERVER_DEFAULT.to_owned())
    }

    fn options(&self) -> Result<ConnectOptions, Failure> {
        let mut options = ConnectOptions::new(&self.server())?.name(&self.connection_name);
        if let Some(user) = &self.user {
            options = options.user(user, self.password.as_deref().unwrap_or_default());
        }
        if let Some(token) = &self.token {
            options = options.token(token);
        }
        if let Some(ca) = &self.tlsca {
            options = options.tls_ca(ca);
        }
        if let Some((chain, key)) = self.tlscert.as_ref().zip(self.tlskey.as_ref()) {
            options = options.tls_certificate(chain, key);
        }
        if self.tlsfirst {
            options = options.tls_first(true);
        }
        if let Some(path) = &self.nkey {
            options = options.nkey(&read(path)?)?;
        }
        if let Some(path) = &self.creds {
            options = options.credentials(&read(path)?)?;
        }
        Ok(options)
    }

    /// Connects once.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Client::connect(&self.options()?)
            .await
            .map_err(|error| match error {
                // This is not reported as "no response", because no request was sent.
                ClientError::TimedOut => Failure::Error("the server does not respond".into()),
                ClientError::Unreachable { .. } if self.server.is_none() => Failure::Error(
                    format!("{error} (start a server with `fanline serve`, or use --server)"),
                ),
                error => error.into(),
            })
    }

    /// Reconnects after a lost connection, with unlimited attempts, and reports it on stderr.
    pub(crate) async fn reconnect(&self, lost: &str) -> Result<Client, Failure> {
        let options = self.options()?;
        let mut wait = BACK_OFF_FIRST;
        eprintln!("Disconnected: {lost}. Reconnecting...");
        loop {
            sleep(wait).await;
            match Client::connect(&options).await {
                Ok(client) => {
                    eprintln!("Reconnected to \"{}\".", client.server_info().server_name);
                    return Ok(client);
                }
                // Further attempts do not help if the credentials are wrong.
                Err(error @ ClientError::Refused(_)) => return Err(error.into()),
                Err(_) => wait = (wait * 2).min(BACK_OFF_MAX),
            }
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Error(format!("{}: {error}", path.display())))
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn interrupted() {
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(_) => return std::future::pending().await,
    };
    tokio::select! {
        outcome = tokio::signal::ctrl_c() => {
            if outcome.is_err() {
                std::future::pending::<()>().await;
            }
        }
        _ = terminate.recv() => {}
    }
}
