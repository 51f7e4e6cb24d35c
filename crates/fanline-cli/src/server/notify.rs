//! Telling systemd how the server is (`sd_notify`): one datagram to the socket that it names.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where systemd says its socket is.
const SOCKET: &str = "NOTIFY_SOCKET";

/// How the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It serves.
    Ready,
    /// It reads its configuration again; [`State::Ready`] follows.
    Reloading,
    /// It goes away.
    Stopping,
}

impl State {
    /// What is told. With a reload goes when it began, by the clock that systemd compares with.
    fn text(self) -> String {
        match self {
            State::Ready => "READY=1\nSTATUS=Serving".into(),
            State::Reloading => {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
                let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
                format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\nSTATUS=Reloading")
            }
            State::Stopping => "STOPPING=1\nSTATUS=Stopping".into(),
        }
    }
}

/// Tells whoever started the server, if they asked for it. A service manager that does not listen is
/// no reason to stop.
pub(crate) fn tell(state: State) {
    if let Some(place) = std::env::var_os(SOCKET)
        && let Err(error) = send(&place, &state.text())
    {
        tracing::warn!("Cannot notify the service manager: {error}");
    }
}

fn send(place: &OsString, text: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(text.as_bytes(), &address(place)?)?;
    Ok(())
}

/// A path, or a name in the abstract namespace, which begins with `@`.
fn address(place: &OsString) -> io::Result<SocketAddr> {
    match place.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)
        }
        _ => SocketAddr::from_pathname(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reaches_both_kinds_of_sockets() {
        let name = format!("fanline-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        for place in [OsString::from(format!("@{name}")), path.clone().into()] {
            let address = address(&place).expect("an address");
            let manager = UnixDatagram::bind_addr(&address).expect("free");
            send(&place, &State::Ready.text()).expect("sent");
            let mut room = [0; 128];
            let length = manager.recv(&mut room).expect("a datagram");
            assert_eq!(&room[..length], b"READY=1\nSTATUS=Serving");
        }
        std::fs::remove_file(path).expect("removed");
        assert!(State::Reloading.text().contains("\nMONOTONIC_USEC="));
    }
}
