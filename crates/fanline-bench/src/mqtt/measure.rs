//! The measurement of one row on one server.

use std::net::SocketAddr;
use std::slice::from_ref;
use std::time::Duration;

use anyhow::Result;

use super::allocations;
use super::rows::{Load, PAYLOAD_BYTES, Protocol, Work};
use crate::comparison::cost::{self, Cost, WARM_UP};
use crate::comparison::site::Site;
use crate::generator::mqtt;
use crate::generator::mqtt::flow::Flow;
use crate::generator::side::Side;
use crate::generator::throughput::{Fixture, Topology};
use crate::report::metric::{Metric, Sample};
use crate::servers::process::{Server, free_address};
use crate::servers::{Program, Streams, System};

struct Peer {
    server: Server,
    mqtt: SocketAddr,
}

impl Peer {
    fn start(program: &Program, site: &Site) -> Result<Self> {
        let folder = site.empty(program.system)?;
        let mqtt = free_address()?;
        let config = config(program.system, &folder, mqtt);
        let program = program.with_config(&folder, &config, Streams::Configured)?;
        let server = match program.system {
            System::Mosquitto => Server::start_at(&program, mqtt)?,
            System::Nats | System::NatsSynced | System::Fanline => Server::start(&program)?,
        };
        Ok(Self { server, mqtt })
    }

    fn side(&self, protocol: Protocol) -> Side {
        match protocol {
            Protocol::Nats => Side::Nats(self.server.address()),
            Protocol::Mqtt => Side::Mqtt(self.mqtt),
        }
    }
}

/// Returns the configuration of a server. mosquitto's limits are set so high that they do not affect the
/// measurement.
fn config(system: System, folder: &str, mqtt: SocketAddr) -> String {
    let port = mqtt.port();
    match system {
        System::Nats | System::NatsSynced | System::Fanline => format!(
            "server_name: bench\n\
             jetstream {{ store_dir: \"{folder}\" }}\n\
             mqtt {{ listen: \"127.0.0.1:{port}\" }}\n"
        ),
        System::Mosquitto => format!(
            "user root\n\
             listener {port} 127.0.0.1\n\
             allow_anonymous true\n\
             persistence true\n\
             persistence_location {folder}/\n\
             max_queued_messages 0\n\
             max_inflight_messages 1000\n\
             set_tcp_nodelay true\n"
        ),
    }
}

/// Runs a row's load on `program` for about `duration`. Returns `None` if the server does not support it.
pub(crate) fn measure(
    program: &Program,
    load: &Load,
    site: &Site,
    duration: Duration,
) -> Result<Option<Sample>> {
    let Some(work) = load.work(program.system) else {
        return Ok(None);
    };
    if let Work::Allocations = work {
        let mut sample = Sample::default();
        let allocations = allocations::per_message(PAYLOAD_BYTES)?;
        sample.set(Metric::Allocations, allocations);
        return Ok(Some(sample));
    }
    let peer = Peer::start(program, site)?;
    let sample = match work {
        Work::Full {
            from,
            to,
            subscribers,
        } => {
            let topology = Topology::new(1, subscribers, PAYLOAD_BYTES);
            let fixture = Fixture::open(peer.side(from), peer.side(to), topology)?;
            cost::throughput(from_ref(&peer.server), &fixture, duration)?
        }
        Work::Flow { qos } => flow(&peer, qos, duration)?,
        Work::Idle { connections } => {
            let open = |index| mqtt::Connection::open(peer.mqtt, &format!("idle{index}"), true);
            cost::idle(&peer.server, connections, open)?
        }
        Work::Allocations => Sample::default(),
    };
    Ok(Some(sample))
}

fn flow(peer: &Peer, qos: u8, duration: Duration) -> Result<Sample> {
    let flow = Flow::open(peer.mqtt, qos, PAYLOAD_BYTES)?;
    flow.run(WARM_UP)?;
    let cost = Cost::start(from_ref(&peer.server))?;
    cost.of(from_ref(&peer.server), &flow.run(duration)?)
}
