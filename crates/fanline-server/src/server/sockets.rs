//! The sockets that a server listens on.

use std::net::{SocketAddr, TcpListener};

use crate::error::StartError;
use crate::listen::{self, Listening};
use crate::options::{Addresses, Options};

/// The sockets of all listeners.
pub(crate) struct Sockets {
    pub(crate) clients: TcpListener,
    pub(crate) websocket: Option<TcpListener>,
    pub(crate) mqtt: Option<TcpListener>,
    pub(crate) leafnodes: Option<TcpListener>,
    pub(crate) cluster: Option<TcpListener>,
    pub(crate) gateway: Option<TcpListener>,
    #[cfg(unix)]
    pub(crate) unix: Option<std::os::unix::net::UnixListener>,
    pub(crate) monitoring: Option<TcpListener>,
}

impl Sockets {
    /// Listens on all configured addresses. In the returned addresses, port 0 is replaced by the port that
    /// the system chose.
    pub(super) fn bind(options: &Options) -> Result<(Self, Addresses), StartError> {
        let websocket = options.websocket.as_ref();
        let websocket = websocket.map(|websocket| bind(&websocket.host, websocket.port));
        let mqtt = options.mqtt.as_ref();
        let mqtt = mqtt.map(|mqtt| bind(&mqtt.host, mqtt.port));
        let leafnodes = options.leafnodes.listener.as_ref();
        let leafnodes = leafnodes.map(|listener| bind(&listener.host, listener.port));
        let cluster = options.cluster.as_ref();
        let cluster = cluster.map(|cluster| bind(&cluster.host, cluster.port));
        let gateway = options.gateway.as_ref();
        let gateway = gateway.map(|gateway| bind(&gateway.host, gateway.port));
        let monitoring = options.monitoring.as_ref();
        let monitoring = monitoring.map(|(host, port)| bind(host, *port));
        let (websocket, websocket_address) = split(websocket.transpose()?);
        let (mqtt, mqtt_address) = split(mqtt.transpose()?);
        let (leafnodes, leafnodes_address) = split(leafnodes.transpose()?);
        let (cluster, cluster_address) = split(cluster.transpose()?);
        let (gateway, gateway_address) = split(gateway.transpose()?);
        let (monitoring, monitoring_address) = split(monitoring.transpose()?);
        // A client that reaches its port also reaches the others.
        let clients = bind(&options.host, options.port)?;
        let addresses = Addresses {
            clients: clients.address,
            monitoring: monitoring_address,
            websocket: websocket_address,
            mqtt: mqtt_address,
            leafnodes: leafnodes_address,
            cluster: cluster_address,
            gateway: gateway_address,
        };
        let sockets = Sockets {
            clients: clients.socket,
            websocket,
            mqtt,
            leafnodes,
            cluster,
            gateway,
            #[cfg(unix)]
            unix: match &options.unix_socket {
                Some(path) => Some(listen::bind_unix(path).map_err(|source| {
                    let path = path.clone();
                    StartError::UnixSocket { path, source }
                })?),
                None => None,
            },
            monitoring,
        };
        Ok((sockets, addresses))
    }
}

fn bind(host: &str, port: u16) -> Result<Listening, StartError> {
    listen::bind(host, port).map_err(|source| StartError::Listen {
        host: host.into(),
        port,
        source,
    })
}

fn split(listening: Option<Listening>) -> (Option<TcpListener>, Option<SocketAddr>) {
    listening
        .map(|listening| (listening.socket, listening.address))
        .unzip()
}
