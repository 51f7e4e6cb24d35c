//! Reading a server's monitoring over HTTP.

use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::failure::Failure;

/// Where monitoring usually is.
const MONITOR_DEFAULT: &str = "http://127.0.0.1:8222";
/// Bytes of an answer. More is not read: it is no server's monitoring.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where to find monitoring.
#[derive(Args, Clone, Debug)]
pub(crate) struct MonitorArgs {
    /// Where the server's monitoring is [default: $FANLINE_MONITOR, http://127.0.0.1:8222]
    #[arg(short, long, value_name = "URL")]
    pub(crate) monitor: Option<String>,
}

/// One server's monitoring.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    /// `host:port`.
    place: String,
    /// What comes before each path, without a slash at its end.
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
                let problem = format!("{url}: monitoring is read over http://, not {scheme}://");
                return Err(Failure::Usage(problem));
            }
        };
        let (place, base) = match rest.split_once('/') {
            Some((place, base)) => (place, format!("/{}", base.trim_end_matches('/'))),
            None => (rest, String::new()),
        };
        let has_port = place
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Monitor {
            place: match has_port {
                true => place.to_owned(),
                false => format!("{place}:8222"),
            },
            base: base.trim_end_matches('/').to_owned(),
            timeout,
        })
    }

    /// Asks for what is at a path.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let place = &self.place;
        let asked = timeout(self.timeout, self.ask(path)).await;
        let body = asked.map_err(|_| {
            Failure::NoAnswer(format!("the monitoring at {place} does not answer"))
        })??;
        serde_json::from_slice(&body)
            .map_err(|error| Failure::Error(format!("{place}{path}: {error}")))
    }

    async fn ask(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let Monitor { place, base, .. } = self;
        let failed = |error: std::io::Error| {
            Failure::Error(format!(
                "cannot read the monitoring at http://{place}: {error} (start the server with \
                 --monitor or -m, or name another with --monitor)"
            ))
        };
        let mut stream = TcpStream::connect(place).await.map_err(failed)?;
        // Version 1.0 has no chunks, and ends with the connection.
        let request = format!("GET {base}{path} HTTP/1.0\r\nHost: {place}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        let mut answer = Vec::new();
        let mut limited = stream.take(ANSWER_BYTES_MAX);
        limited.read_to_end(&mut answer).await.map_err(failed)?;
        body_of(answer).map_err(|problem| Failure::Error(format!("{place}{path}: {problem}")))
    }
}

fn body_of(answer: Vec<u8>) -> Result<Vec<u8>, String> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or("this is not HTTP")?;
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
    fn addresses() {
        let place = |url| {
            let monitor = Monitor::at(url, Duration::ZERO).expect("an address");
            monitor.place + &monitor.base
        };
        assert_eq!(place("http://h:1"), "h:1");
        assert_eq!(place("h"), "h:8222");
        assert_eq!(place("http://h:1/some/base/"), "h:1/some/base");
        assert_eq!(place("http://[::1]:9/"), "[::1]:9");
        assert!(Monitor::at("https://h", Duration::ZERO).is_err());
    }

    #[test]
    fn answers() {
        let body = |text: &str| body_of(text.as_bytes().to_vec());
        assert_eq!(
            body("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}"),
            Ok(b"{}".to_vec())
        );
        assert_eq!(body("HTTP/1.1 404 x\r\n\r\nno\n"), Err("404 no".into()));
        assert!(body("nonsense").is_err());
    }
}
