//! Syslog output, local or remote, in the format of RFC 3164 that every collector accepts.

use std::io::{self, Write};
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Zoned;

use super::line::Tag;

/// Sockets of the local syslog.
const LOCAL_SOCKETS: [&str; 3] = ["/dev/log", "/var/run/syslog", "/var/run/log"];
/// Time limit of a write over TCP. When it expires, the connection is closed and the line is lost.
const WRITE_TIME_MAX: Duration = Duration::from_millis(250);
/// Time after a failure before the next attempt to connect. Meanwhile, lines are dropped.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The facility "daemon".
const FACILITY: u8 = 3;

pub(super) struct Syslog {
    way: Way,
    tag: String,
    host: String,
}

enum Way {
    Local(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpWay),
}

struct TcpWay {
    address: String,
    stream: Option<TcpStream>,
    lost_at: Instant,
}

impl Syslog {
    /// Connects to the local syslog.
    pub(super) fn local() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for path in LOCAL_SOCKETS {
            match datagrams_to(Path::new(path)) {
                Ok(socket) => return Ok(Self::over(Way::Local(socket))),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to a remote syslog: `udp://host:514`, `tcp://host:514`, or `unix:///path`.
    pub(super) fn remote(address: &str) -> io::Result<Self> {
        let way = match address.split_once("://") {
            Some(("udp", address)) => Way::Udp(udp_to(address)?),
            Some(("tcp", address)) => Way::Tcp(TcpWay {
                address: address.to_owned(),
                stream: Some(connect(address)?),
                lost_at: Instant::now(),
            }),
            Some(("unix", path)) => Way::Local(datagrams_to(Path::new(path))?),
            _ => {
                let problem = "expected udp://host:port, tcp://host:port, or unix:///path";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
        };
        Ok(Self::over(way))
    }

    fn over(way: Way) -> Self {
        let program = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&program).file_name().unwrap_or_default();
        let host = rustix::system::uname();
        Syslog {
            way,
            tag: format!("{}[{}]", name.to_string_lossy(), std::process::id()),
            host: host.nodename().to_string_lossy().into_owned(),
        }
    }

    /// Writes a line. A line that cannot be sent at once is lost: the log must not delay the server.
    pub(super) fn write(&mut self, now: &Zoned, tag: Tag, text: &str) {
        match &mut self.way {
            Way::Local(socket) => {
                let line = line(now, tag, None, &self.tag, text);
                let _ = socket.send(line.as_bytes());
            }
            Way::Udp(socket) => {
                let line = line(now, tag, Some(&self.host), &self.tag, text);
                let _ = socket.send(line.as_bytes());
            }
            Way::Tcp(tcp) => {
                let line = line(now, tag, Some(&self.host), &self.tag, text) + "\n";
                tcp.write(line.as_bytes());
            }
        }
    }
}

impl TcpWay {
    fn write(&mut self, line: &[u8]) {
        if self.stream.is_none() && self.lost_at.elapsed() >= RETRY_DELAY {
            self.lost_at = Instant::now();
            self.stream = connect(&self.address).ok();
        }
        let outcome = self.stream.as_mut().map(|stream| stream.write_all(line));
        if let Some(Err(_)) = outcome {
            self.stream = None;
            self.lost_at = Instant::now();
        }
    }
}

fn datagrams_to(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn udp_to(address: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
        .and_then(|socket| socket.connect(address).map(|()| socket))
        .or_else(|_| {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.connect(address).map(|()| socket)
        })?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let address = address.to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let stream = TcpStream::connect_timeout(&address, WRITE_TIME_MAX)?;
    stream.set_write_timeout(Some(WRITE_TIME_MAX))?;
    Ok(stream)
}

/// Formats a line. A line for the local syslog has the local time without a zone. A line for a remote syslog
/// contains the zone and the host.
fn line(now: &Zoned, tag: Tag, host: Option<&str>, program: &str, text: &str) -> String {
    let priority = FACILITY * 8 + severity(tag);
    match host {
        None => {
            let time = now.strftime("%b %e %H:%M:%S");
            format!("<{priority}>{time} {program}: {text}")
        }
        Some(host) => {
            let time = now.strftime("%Y-%m-%dT%H:%M:%S%:z");
            format!("<{priority}>{time} {host} {program}: {text}")
        }
    }
}

fn severity(tag: Tag) -> u8 {
    match tag {
        Tag::Fatal => 2,
        Tag::Error => 3,
        Tag::Warning => 4,
        Tag::Info => 5,
        Tag::Debug | Tag::Trace => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_format_of_rfc_3164() {
        let now: Zoned = "2026-01-03T08:30:00+01:00[+01:00]".parse().expect("a time");
        for (tag, host, expected) in [
            (Tag::Info, None, "<29>Jan  3 08:30:00 x[7]: up"),
            (Tag::Error, None, "<27>Jan  3 08:30:00 x[7]: up"),
            (
                Tag::Warning,
                Some("h"),
                "<28>2026-01-03T08:30:00+01:00 h x[7]: up",
            ),
        ] {
            assert_eq!(line(&now, tag, host, "x[7]", "up"), expected);
        }
    }

    #[test]
    fn lines_arrive_by_datagram() {
        let collector = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = collector.local_addr().expect("an address");
        let mut syslog = Syslog::remote(&format!("udp://{address}")).expect("a socket");
        syslog.write(&Zoned::now(), Tag::Error, "hello");
        let mut room = [0; 512];
        let length = collector.recv(&mut room).expect("a line");
        let text = String::from_utf8_lossy(&room[..length]).into_owned();
        assert!(
            text.starts_with("<27>") && text.ends_with("]: hello"),
            "{text}"
        );
        assert!(Syslog::remote("host:514").is_err());
    }
}
