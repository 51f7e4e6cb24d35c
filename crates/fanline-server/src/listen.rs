//! Listening sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt as _;
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use socket2::{Domain, Protocol, Socket, Type};

/// Length of the accept queue. If a thousand clients reconnect at once after a restart, the standard
/// library's length of 128 would make some of them wait for seconds.
const BACKLOG: i32 = 4096;

/// A listening socket.
pub(crate) struct Listening {
    pub(crate) socket: TcpListener,
    /// The configured address, with the port that the system chose for port 0.
    pub(crate) address: SocketAddr,
}

/// Listens on a host and port. Port 0 selects a free port.
pub(crate) fn bind(host: &str, port: u16) -> io::Result<Listening> {
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match bind_all_families(address) {
            Ok(socket) => {
                let port = socket.local_addr()?.port();
                let address = SocketAddr::new(address.ip(), port);
                return Ok(Listening { socket, address });
            }
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// Binds an address. As in nats-server, `0.0.0.0` includes IPv6 if the host supports it.
fn bind_all_families(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() == Ipv4Addr::UNSPECIFIED {
        let with_ipv6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
        match bind_address(with_ipv6) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    bind_address(address)
}

/// Listens on a unix socket. Replaces a socket file that has no listener.
#[cfg(unix)]
pub(crate) fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|what| what.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn bind_address(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A restart must not wait until the previous run's connections have timed out.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Returns the addresses that a server advertises when it listens on all interfaces. These are the addresses,
/// with the port, at which other hosts can reach this host.
pub(crate) fn reachable_urls(listening: SocketAddr) -> Vec<String> {
    if !listening.ip().is_unspecified() {
        return Vec::new();
    }
    interfaces()
        .into_iter()
        .filter(|ip| !ip.is_loopback())
        .map(|ip| SocketAddr::new(ip, listening.port()).to_string())
        .collect()
}

/// Returns the addresses of this host's interfaces. Link-local addresses are left out, because they need a
/// zone.
pub(crate) fn interfaces() -> Vec<IpAddr> {
    let is_link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let addresses = interfaces.iter().map(if_addrs::Interface::ip);
    addresses.filter(|ip| !is_link_local(ip)).collect()
}
