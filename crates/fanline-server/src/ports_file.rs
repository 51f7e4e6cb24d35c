//! PID and ports files for other programs.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::listen;
use crate::options::{Addresses, Options};

/// Writes `<program>_<pid>.ports` with the URLs of all listeners, including ports chosen by the system.
pub(crate) fn write_ports(
    folder: &Path,
    options: &Options,
    addresses: &Addresses,
) -> io::Result<PathBuf> {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|n| n.to_str());
    let file = format!("{}_{}.ports", name.unwrap_or("fanline"), std::process::id());
    let path = folder.join(file);
    // Programs poll for the file, so it has to appear complete.
    let unfinished = path.with_extension("ports.new");
    fs::write(&unfinished, listeners(options, addresses).to_string())?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// Returns the URLs of each listener, by the listener's name.
fn listeners(options: &Options, addresses: &Addresses) -> Value {
    let needs_tls = options.tls.is_some() && !options.allow_non_tls;
    let websocket = options.websocket.as_ref();
    let has_wss = websocket.is_some_and(|websocket| websocket.tls.is_some());
    let either = |is_secure, secure, plain| if is_secure { secure } else { plain };
    let of = [
        (
            "nats",
            Some(addresses.clients),
            either(needs_tls, "tls", "nats"),
        ),
        (
            "monitoring",
            addresses.monitoring,
            either(options.monitoring_tls, "https", "http"),
        ),
        (
            "websocket",
            addresses.websocket,
            either(has_wss, "wss", "ws"),
        ),
        ("leafnodes", addresses.leafnodes, "nats-leaf"),
        ("cluster", addresses.cluster, "nats"),
    ];
    let interfaces = listen::interfaces();
    let of = of.into_iter().filter_map(|(name, address, scheme)| {
        let urls = urls(scheme, address?, &interfaces);
        Some((name.to_owned(), urls.into()))
    });
    Value::Object(Map::from_iter(of))
}

/// Returns the URLs of one listener. A listener on all interfaces has a URL for each interface, IPv6
/// included.
fn urls(scheme: &str, listening: SocketAddr, interfaces: &[IpAddr]) -> Vec<String> {
    let url = |address: SocketAddr| format!("{scheme}://{address}");
    if !listening.ip().is_unspecified() {
        return vec![url(listening)];
    }
    interfaces
        .iter()
        .map(|address| url(SocketAddr::new(*address, listening.port())))
        .collect()
}

/// Writes the process id in decimal.
pub(crate) fn write_pid(path: &Path) -> io::Result<()> {
    fs::write(path, std::process::id().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listener_on_all_interfaces_has_a_url_for_each() {
        let interfaces = ["127.0.0.1", "10.1.2.3", "::1"];
        let interfaces = interfaces.map(|text| text.parse().expect("an address"));
        for (listening, expected) in [
            ("127.0.0.1:5", &["ws://127.0.0.1:5"][..]),
            (
                "0.0.0.0:5",
                &["ws://127.0.0.1:5", "ws://10.1.2.3:5", "ws://[::1]:5"],
            ),
            (
                "[::]:5",
                &["ws://127.0.0.1:5", "ws://10.1.2.3:5", "ws://[::1]:5"],
            ),
            ("[::1]:5", &["ws://[::1]:5"]),
        ] {
            let address = listening.parse().expect("an address");
            assert_eq!(urls("ws", address, &interfaces), expected, "{listening}");
        }
    }
}
