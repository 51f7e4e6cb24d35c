//! Account tokens from a web server: `GET <url><account>` returns one.

use std::sync::Arc;

use fanline_engine::auth::jwt::JWT_BYTES_MAX;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::options::{TlsOptions, UrlOptions};
use crate::tls::client_config;

/// The reason why no token was returned.
#[derive(Debug, thiserror::Error)]
pub(super) enum UrlError {
    #[error("{0:?} is not an http or https URL")]
    Url(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("invalid request: {0}")]
    Request(#[from] hyper::http::Error),
    #[error("the response status is {0}")]
    Status(StatusCode),
    #[error("the response is not a token")]
    Body,
}

/// A web server with account tokens.
pub(super) struct Url {
    base: String,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Url").field(&self.base).finish()
    }
}

impl Url {
    /// Parses the options. An account's key is appended to the URL.
    pub(super) fn new(options: &UrlOptions) -> Result<Self, UrlError> {
        let base = options.url.as_str();
        let wrong = || UrlError::Url(base.into());
        let uri: Uri = base.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?;
        let (tls, port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(connector(options.tls.as_ref())?), 443),
            _ => return Err(wrong()),
        };
        Ok(Url {
            base: base.into(),
            host: host.trim_start_matches('[').trim_end_matches(']').into(),
            port: uri.port_u16().unwrap_or(port),
            tls,
        })
    }

    /// Returns the URL of an account's token.
    pub(super) fn url_of(&self, account: &str) -> String {
        format!("{}{account}", self.base)
    }

    /// Fetches an account's token. The caller limits the time.
    pub(super) async fn get(&self, account: &str) -> Result<String, UrlError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        match &self.tls {
            None => self.ask(stream, account).await,
            Some(connector) => {
                let name = ServerName::try_from(self.host.clone());
                let name = name.map_err(|error| UrlError::Tls(error.to_string()))?;
                let stream = connector.connect(name, stream).await?;
                self.ask(stream, account).await
            }
        }
    }

    async fn ask<S>(&self, stream: S, account: &str) -> Result<String, UrlError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let url = self.url_of(account);
        let uri: Uri = url.parse().map_err(|_| UrlError::Url(url.clone()))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        // User info does not belong in the header.
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let request = Request::get(path)
            .header(HOST, host)
            .header(USER_AGENT, "fanline")
            .body(Empty::<Bytes>::new())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The task ends after the response, because `sender` is dropped then.
        let driver = tokio::spawn(connection);
        let answer = sender.send_request(request).await?;
        if answer.status() != StatusCode::OK {
            return Err(UrlError::Status(answer.status()));
        }
        let body = Limited::new(answer.into_body(), JWT_BYTES_MAX);
        let body = body.collect().await.map_err(|_| UrlError::Body)?;
        driver.abort();
        String::from_utf8(body.to_bytes().to_vec()).map_err(|_| UrlError::Body)
    }
}

fn connector(options: Option<&TlsOptions>) -> Result<TlsConnector, UrlError> {
    let usual = TlsOptions::default();
    let config = client_config(options.unwrap_or(&usual));
    let config = config.map_err(|error| UrlError::Tls(error.to_string()))?;
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    fn at(url: impl Into<String>) -> UrlOptions {
        UrlOptions {
            url: url.into(),
            tls: None,
        }
    }

    /// Fetches a token from a server that sends `answer`. Returns the result, and the request that was sent.
    async fn ask(answer: &'static [u8]) -> (Result<String, UrlError>, String) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let count = stream.read(&mut request).await.unwrap();
            stream.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&request[..count]).into_owned()
        });
        let url = Url::new(&at(format!("http://127.0.0.1:{port}/accounts/"))).unwrap();
        (url.get("AB").await, served.await.unwrap())
    }

    #[tokio::test]
    async fn asks_for_an_account() {
        let (answer, request) = ask(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\na.b.c").await;
        assert_eq!(answer.unwrap(), "a.b.c");
        assert!(
            request.starts_with("GET /accounts/AB HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(request.contains("host: 127.0.0.1:"), "{request}");
    }

    #[tokio::test]
    async fn invalid_response_is_an_error() {
        for answer in [
            &b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 2000000\r\n\r\na",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n\xff",
            b"nothing\r\n\r\n",
            b"",
        ] {
            let (token, _) = ask(answer).await;
            assert!(token.is_err(), "{token:?}");
        }
    }

    #[test]
    fn invalid_url_is_rejected() {
        for url in ["", "/a", "ftp://a/", "nats://a", "http://"] {
            assert!(matches!(Url::new(&at(url)), Err(UrlError::Url(_))), "{url}");
        }
        let url = Url::new(&at("http://a/b/")).unwrap();
        assert_eq!(url.url_of("X"), "http://a/b/X");
        let with = |ca_file: &str| UrlOptions {
            tls: Some(TlsOptions {
                ca_file: Some(ca_file.into()),
                ..TlsOptions::default()
            }),
            ..at("https://a/b/")
        };
        assert!(matches!(
            Url::new(&with("nowhere.pem")),
            Err(UrlError::Tls(_))
        ));
    }
}
