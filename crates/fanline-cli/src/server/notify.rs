//! Notifications to systemd (`sd_notify`): one datagram to its socket.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Environment variable with the path of systemd's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// State of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The server is ready.
    Ready,
    /// The server is reloading; [`State::Ready`] follows.
    Reloading,
    /// The server is stopping.
    Stopping,
}

impl State {
    /// Returns the text of the notification. The text for a reload contains the time at which it starts, by
    /// the clock that systemd uses.
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

/// Notifies the service manager, if there is one. A failure is only logged, and does not stop the server.
pub(crate) fn notify(state: State) {
    if let Some(socket_name) = std::env::var_os(SOCKET)
        && let Err(error) = send(&socket_name, &state.text())
    {
        tracing::warn!("Cannot notify the service manager: {error}");
    }
}

fn send(socket_name: &OsString, text: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(text.as_bytes(), &address(socket_name)?)?;
    Ok(())
}

/// Returns the socket's address: a path, or a name in the abstract namespace that begins with `@`.
fn address(socket_name: &OsString) -> io::Result<SocketAddr> {
    match socket_name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)
        }
        _ => SocketAddr::from_pathname(socket_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets_receive_notifications() {
        let name = format!("fanline-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        for socket_name in [OsString::from(format!("@{name}")), path.clone().into()] {
            let address = address(&socket_name).expect("an address");
            let manager = UnixDatagram::bind_addr(&address).expect("free");
            send(&socket_name, &State::Ready.text()).expect("sent");
            let mut room = [0; 128];
            let length = manager.recv(&mut room).expect("a datagram");
            assert_eq!(&room[..length], b"READY=1\nSTATUS=Serving");
        }
        std::fs::remove_file(path).expect("removed");
        assert!(State::Reloading.text().contains("\nMONOTONIC_USEC="));
    }
}
