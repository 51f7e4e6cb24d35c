//! The measurement of one kind of load (a *shape*) on one new server process.

use std::time::Duration;

use anyhow::Result;

use super::shapes::Work;
use crate::comparison::cost;
use crate::comparison::one_core::OneCore;
use crate::generator::awake;
use crate::generator::connection::Connection;
use crate::generator::requests::{self, Cores, Party};
use crate::generator::throughput::Fixture;
use crate::report::metric::{Metric, Sample};
use crate::servers::Program;
use crate::servers::process::Server;

/// Starts `program`, runs `work` on it for about `duration`, and stops the server.
pub(crate) fn measure(program: &Program, work: Work, duration: Duration) -> Result<Sample> {
    let server = Server::start(program)?;
    let mut sample = match work {
        Work::Throughput(topology) => {
            let fixture = Fixture::open(server.address(), topology)?;
            cost::throughput(&server, &fixture, duration)?
        }
        Work::Requests(party) => requests(&server, party, duration)?,
        Work::Idle { connections } => {
            cost::idle(&server, connections, |_| Connection::open(server.address()))?
        }
    };
    sample.set(Metric::PeakMemory, server.memory()?.peak as f64);
    Ok(sample)
}

fn requests(server: &Server, party: Party, duration: Duration) -> Result<Sample> {
    let fixture = requests::Fixture::open(server.address(), party)?;
    let _awake = match party.cores {
        Cores::Awake => Some(awake::keep()?),
        Cores::Unbound | Cores::One => None,
    };
    let _one_core = match party.cores {
        Cores::One => Some(OneCore::share_with(server)?),
        Cores::Unbound | Cores::Awake => None,
    };
    cost::requests(server, &fixture, duration)
}
