//! The handshake, which turns an open byte stream into an accepted connection.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::address::ServerAddress;
use super::codec::{Decoder, ServerOp};
use super::credentials::Credentials;
use super::error::{ClientError, Disconnect};
use super::info::{Connect, ServerInfo};
use super::options::ConnectOptions;

/// Waits for INFO, the first operation of every connection.
pub(super) async fn read_info<S: AsyncRead + Unpin>(
    stream: &mut S,
    decoder: &mut Decoder,
) -> Result<ServerInfo, ClientError> {
    match next(stream, decoder).await? {
        ServerOp::Info(info) => Ok(*info),
        ServerOp::Error(text) => Err(ClientError::Refused(text)),
        _ => Err(protocol("an operation before INFO")),
    }
}

/// Sends CONNECT and PING, and waits for PONG, because only then has the server accepted the credentials.
/// Returns the decoder with the bytes that arrived after the PONG.
pub(super) async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    mut decoder: Decoder,
    mut info: ServerInfo,
    options: &ConnectOptions,
    address: &ServerAddress,
) -> Result<(ServerInfo, Decoder), ClientError> {
    let mut hello = match options.is_system_client {
        true => Vec::new(),
        false => connect_line(options, address, &info.nonce),
    };
    hello.extend_from_slice(b"PING\r\n");
    stream.write_all(&hello).await.map_err(disconnected)?;
    stream.flush().await.map_err(disconnected)?;
    loop {
        match next(stream, &mut decoder).await? {
            ServerOp::Pong => return Ok((info, decoder)),
            ServerOp::Error(text) => return Err(ClientError::Refused(text)),
            ServerOp::Info(newer) => info = *newer,
            ServerOp::Ping => stream.write_all(b"PONG\r\n").await.map_err(disconnected)?,
            ServerOp::Ok | ServerOp::Message { .. } => {}
        }
    }
}

fn connect_line(options: &ConnectOptions, address: &ServerAddress, nonce: &str) -> Vec<u8> {
    // Explicit options take precedence over the address.
    let (user, pass, auth_token) = match (&options.user, &options.token) {
        (None, None) => (
            address.user.as_deref(),
            address.password.as_deref(),
            address.token.as_deref(),
        ),
        (Some((user, password)), token) => (
            Some(user.as_str()),
            Some(password.as_str()),
            token.as_deref(),
        ),
        (None, token) => (None, None, token.as_deref()),
    };
    let credentials = options.credentials.as_ref();
    let signer = credentials.filter(|_| !nonce.is_empty());
    let connect = Connect {
        verbose: false,
        pedantic: false,
        tls_required: false,
        protocol: 1,
        echo: options.echo,
        headers: true,
        no_responders: options.no_responders,
        lang: "rust",
        version: env!("CARGO_PKG_VERSION"),
        name: options.name.as_deref(),
        user,
        pass,
        auth_token,
        jwt: credentials.and_then(Credentials::jwt),
        nkey: signer.and_then(Credentials::nkey),
        sig: signer.map(|signer| signer.sign(nonce)),
    };
    let mut line = b"CONNECT ".to_vec();
    // Serializing strings and booleans never fails.
    line.extend_from_slice(&serde_json::to_vec(&connect).unwrap_or_default());
    line.extend_from_slice(b"\r\n");
    line
}

async fn next<S: AsyncRead + Unpin>(
    stream: &mut S,
    decoder: &mut Decoder,
) -> Result<ServerOp, ClientError> {
    loop {
        if let Some(op) = decoder.next().map_err(protocol)? {
            return Ok(op);
        }
        if stream
            .read_buf(&mut decoder.buffer)
            .await
            .map_err(disconnected)?
            == 0
        {
            return Err(ClientError::Disconnected(Disconnect::ServerClosed));
        }
    }
}

fn disconnected(error: std::io::Error) -> ClientError {
    ClientError::Disconnected(error.into())
}

pub(super) fn protocol(what: &'static str) -> ClientError {
    ClientError::Disconnected(Disconnect::Protocol(what))
}
