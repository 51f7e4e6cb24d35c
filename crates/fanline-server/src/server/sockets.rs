//! The sockets that a server listens on.

use std::net::{SocketAddr, TcpListener};

use crate::error::StartError;
use crate::listen;
use crate::options::{Addresses, Options};

/// The listening sockets of a server.
pub(crate) struct Sockets {
    pub(crate) clients: TcpListener,
    pub(crate) websocket: Option<TcpListener>,
    pub(crate) mqtt: Option<TcpListener>,
    pub(crate) leafnodes: Option<TcpListener>,
    #[cfg(unix)]
    pub(crate) unix: Option<std::os::unix::net::UnixListener>,
    pub(crate) monitoring: Option<TcpListener>,
}

impl Sockets {
    pub(super) fn bind(options: &Options) -> Result<Self, StartError> {
        let clients = bind(&options.host, options.port)?;
        let websocket = options.websocket.as_ref();
        let websocket = websocket.map(|websocket| bind(&websocket.host, websocket.port));
        let mqtt = options.mqtt.as_ref();
        let mqtt = mqtt.map(|mqtt| bind(&mqtt.host, mqtt.port));
        let leafnodes = options.leafnodes.listener.as_ref();
        let leafnodes = leafnodes.map(|listener| bind(&listener.host, listener.port));
        let monitoring = options.monitoring.as_ref();
        let monitoring = monitoring.map(|(host, port)| bind(host, *port));
        Ok(Sockets {
            clients,
            websocket: websocket.transpose()?,
            mqtt: mqtt.transpose()?,
            leafnodes: leafnodes.transpose()?,
            #[cfg(unix)]
            unix: match &options.unix_socket {
                Some(path) => Some(listen::bind_unix(path).map_err(|source| {
                    let path = path.clone();
                    StartError::UnixSocket { path, source }
                })?),
                None => None,
            },
            monitoring: monitoring.transpose()?,
        })
    }

    pub(super) fn addresses(&self) -> Result<Addresses, StartError> {
        let address =
            |listener: &Option<TcpListener>| listener.as_ref().map(local_address).transpose();
        Ok(Addresses {
            clients: local_address(&self.clients)?,
            monitoring: address(&self.monitoring)?,
            websocket: address(&self.websocket)?,
            mqtt: address(&self.mqtt)?,
            leafnodes: address(&self.leafnodes)?,
        })
    }
}

fn bind(host: &str, port: u16) -> Result<TcpListener, StartError> {
    listen::bind(host, port).map_err(|source| StartError::Listen {
        host: host.into(),
        port,
        source,
    })
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(StartError::Thread)
}
