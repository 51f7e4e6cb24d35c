//! Client of a server's monitoring port.

use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::failure::Failure;

/// Default URL of monitoring.
const MONITOR_DEFAULT: &str = "http://127.0.0.1:8222";
/// Largest response in bytes. A longer response does not come from a server's monitoring.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Option for the monitoring port.
#[derive(Args, Clone, Debug)]
pub(crate) struct MonitorArgs {
    /// URL of the server's monitoring port [default: $FANLINE_MONITOR, http://127.0.0.1:8222]
    #[arg(short, long, value_name = "URL")]
    pub(crate) monitor: Option<String>,
}

/// The monitoring port of one server.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    /// Address as `host:port`.
    address: String,
    /// Prefix of each path, without a trailing slash.
    base: String,
    timeout: Duration,
}

impl MonitorArgs {
    pub(crate) fn monitor(&self, timeout: Duration) -> Result<Monitor, Failure> {
        let from_environment = || std::env::var("FANLINE_MONITOR").ok();
        let url = self.monitor.clone().or_else(from_environment);
        Monitor::at(url.as_deref().unwrap_or(MONITOR_DEFAULT), timeout)
    }
}

impl Monitor {
    fn at(url: &str, timeout: Duration) -> Result<Self, Failure> {
        let rest = match url.split_once("://") {
            None => url,
            Some(("http", rest)) => rest,
            Some((scheme, _)) => {
                let problem = format!("{url}: expected a URL with http://, got {scheme}://");
                return Err(Failure::Usage(problem));
            }
        };
        let (address, base) = match rest.split_once('/') {
            Some((address, base)) => (address, format!("/{}", base.trim_end_matches('/'))),
            None => (rest, String::new()),
        };
        let has_port = address
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Monitor {
            address: match has_port {
                true => address.to_owned(),
                false => format!("{address}:8222"),
            },
            base: base.trim_end_matches('/').to_owned(),
            timeout,
        })
    }

    /// Requests a path.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let address = &self.address;
        let response = timeout(self.timeout, self.request(path)).await;
        let body = response.map_err(|_| {
            Failure::NoAnswer(format!("the monitoring port at {address} does not respond"))
        })??;
        serde_json::from_slice(&body)
            .map_err(|error| Failure::Error(format!("{address}{path}: {error}")))
    }

    async fn request(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let Monitor { address, base, .. } = self;
        let failed = |error: std::io::Error| {
            Failure::Error(format!(
                "cannot read http://{address}: {error} (start the server with \
                 --monitor or -m, or use --monitor with its URL)"
            ))
        };
        let mut stream = TcpStream::connect(address).await.map_err(failed)?;
        // HTTP 1.0 has no chunked encoding, and the response ends with the connection.
        let request = format!("GET {base}{path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        let mut answer = Vec::new();
        let mut limited = stream.take(ANSWER_BYTES_MAX);
        limited.read_to_end(&mut answer).await.map_err(failed)?;
        body_of(answer).map_err(|problem| Failure::Error(format!("{address}{path}: {problem}")))
    }
}

fn body_of(answer: Vec<u8>) -> Result<Vec<u8>, String> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or("the response is not HTTP")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).unwrap_or_default();
    let body = answer[end + 4..].to_vec();
    match status {
        "200" => Ok(body),
        other => Err(format!("{other} {}", String::from_utf8_lossy(&body).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let address = |url| {
            let monitor = Monitor::at(url, Duration::ZERO).expect("an address");
            monitor.address + &monitor.base
        };
        assert_eq!(address("http://h:1"), "h:1");
        assert_eq!(address("h"), "h:8222");
        assert_eq!(address("http://h:1/some/base/"), "h:1/some/base");
        assert_eq!(address("http://[::1]:9/"), "[::1]:9");
        assert!(Monitor::at("https://h", Duration::ZERO).is_err());
    }

    #[test]
    fn responses_are_parsed() {
        let body = |text: &str| body_of(text.as_bytes().to_vec());
        assert_eq!(
            body("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}"),
            Ok(b"{}".to_vec())
        );
        assert_eq!(body("HTTP/1.1 404 x\r\n\r\nno\n"), Err("404 no".into()));
        assert!(body("nonsense").is_err());
    }
}
