//! The director of a run: starts, stops, and kills the server, runs the loads, and takes samples.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::churn::Churn;
use super::core_load::Core;
use super::crowd::{self, Caller, Crowd};
use super::mqtt_load::Devices;
use super::number::Seen;
use super::plan::Plan;
use super::slow::{self, Slow};
use super::stage::{Fault, Stage, get, keep};
use super::stream_load::{Ledger, Publisher, Reader, Worker};
use crate::comparison::site::Site;
use crate::report;
use crate::servers::Program;
use crate::servers::descriptors::Descriptors;
use crate::servers::process::{Server, free_address};

/// Number of publishers of core messages, each with its own subscribers.
const CORE_LOADS: usize = 2;
/// Number of threads for the loads. It leaves cores for the server on a small machine.
const THREADS: usize = 2;
/// Time limit for the loads to end.
const ENDING_MAX: Duration = Duration::from_secs(90);
/// Time limit for the server to close its sockets after clients have disconnected.
const LEAVING_MAX: Duration = Duration::from_secs(10);
/// Largest allowed difference between the number of the server's sockets before the first client connects and
/// after the last one has disconnected. Monitoring keeps some sockets open. A leak would be thousands of
/// sockets.
pub(super) const SOCKETS_SLACK: u64 = 16;

/// Everything that was observed in a run.
pub(super) struct Record {
    pub(super) stage: Arc<Stage>,
    /// Three numbers of stream records: acknowledged, read in order, and processed.
    pub(super) stream_records: [u64; 3],
    pub(super) samples: Vec<Sample>,
    pub(super) restarts: Vec<Restart>,
    /// Descriptors of a server before the first client connects, and after the last one has disconnected.
    pub(super) before: Descriptors,
    pub(super) after: Option<Descriptors>,
    /// Time at which the server ended unexpectedly, if it did.
    pub(super) ended_at: Option<Duration>,
    pub(super) faults: Vec<Fault>,
    pub(super) faults_count: u64,
}

/// A sample of the server at one point in time.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) resident: u64,
    pub(super) descriptors: Descriptors,
    /// Number of open permanent connections.
    pub(super) present: u64,
    /// Number of all messages that were received so far.
    pub(super) deliveries: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Restart {
    pub(super) at: Duration,
    pub(super) is_kill: bool,
    /// Time until the new server responded.
    pub(super) downtime: Duration,
}

/// Runs the whole soak test.
pub(super) fn direct(program: &Program, plan: &Plan, dir: &Path) -> Result<Record> {
    let site = Site::new(dir)?;
    let (nats, mqtt) = (free_address()?, free_address()?);
    let program = configured(program, &site.existing(program.system)?, mqtt)?;
    let server = Server::start_at(&program, nats)?;
    let stage = Stage::new(nats, mqtt);
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()?;
    let before = server.descriptors()?;
    let loads = Loads::begin(&stage, &runtime, plan)?;
    let mut director = Director {
        program,
        stage: Arc::clone(&stage),
        plan: *plan,
        began: Instant::now(),
        samples: Vec::new(),
        restarts: Vec::new(),
        ended_at: None,
    };
    let server = director.watch(server)?;
    eprintln!("ending");
    stage.end();
    let ledger = loads.end(&stage, &runtime)?;
    let after = match director.ended_at {
        None => Some(left(&server, before)?),
        Some(_) => None,
    };
    if after.is_some() {
        server.stop()?;
    }
    let (faults, faults_count) = stage.faults();
    Ok(Record {
        stream_records: ledger.state(),
        stage,
        samples: director.samples,
        restarts: director.restarts,
        before,
        after,
        ended_at: director.ended_at,
        faults,
        faults_count,
    })
}

/// Returns the program with a configuration file that all loads need.
fn configured(program: &Program, folder: &str, mqtt: SocketAddr) -> Result<Program> {
    let file = Path::new(folder).join("soak.conf");
    let pending = slow::PENDING_MAX;
    fs::write(
        &file,
        format!(
            "server_name: soak\n\
             max_pending: {pending}\n\
             jetstream {{ store_dir: \"{folder}\" }}\n\
             mqtt {{ listen: \"{mqtt}\" }}\n"
        ),
    )?;
    Ok(program.with(vec!["-c".to_owned(), file.display().to_string()]))
}

/// Returns the server's descriptors after all clients have disconnected. Waits until the server has closed
/// their sockets.
fn left(server: &Server, before: Descriptors) -> Result<Descriptors> {
    let began = Instant::now();
    loop {
        let now = server.descriptors()?;
        if now.sockets <= before.sockets || began.elapsed() > LEAVING_MAX {
            return Ok(now);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// The running loads.
struct Loads {
    playing: JoinSet<()>,
    devices: thread::JoinHandle<()>,
    crowd: Crowd,
    ledger: Arc<Ledger>,
}

impl Loads {
    /// Opens the permanent connections, and then starts all loads.
    fn begin(stage: &Arc<Stage>, runtime: &Runtime, plan: &Plan) -> Result<Self> {
        let _guard = runtime.enter();
        let crowd = Crowd::open_all(stage, plan.connections);
        runtime.block_on(crowd::wait_for_connections(stage, plan.connections))?;
        let (mut playing, ledger) = (JoinSet::new(), Arc::new(Ledger::default()));
        for index in 0..CORE_LOADS {
            let load = Core { index, epoch: 0 };
            playing.spawn(keep(Arc::clone(stage), load));
        }
        playing.spawn(keep(Arc::clone(stage), Publisher(Arc::clone(&ledger))));
        playing.spawn(keep(Arc::clone(stage), Reader(Arc::clone(&ledger))));
        let worker = Worker {
            ledger: Arc::clone(&ledger),
            seen: Seen::default(),
        };
        playing.spawn(keep(Arc::clone(stage), worker));
        let caller = Caller {
            roll: Arc::clone(&crowd.roll),
            count: plan.connections,
        };
        playing.spawn(keep(Arc::clone(stage), caller));
        playing.spawn(keep(Arc::clone(stage), Churn::default()));
        playing.spawn(keep(Arc::clone(stage), Slow));
        Ok(Self {
            playing,
            devices: Devices::default().keep(Arc::clone(stage)),
            crowd,
            ledger,
        })
    }

    /// Waits until all loads have ended, and closes the permanent connections.
    fn end(mut self, stage: &Stage, runtime: &Runtime) -> Result<Arc<Ledger>> {
        let all = async {
            while let Some(outcome) = self.playing.join_next().await {
                outcome?;
            }
            anyhow::Ok(())
        };
        let in_time = runtime.block_on(async { timeout(ENDING_MAX, all).await });
        match in_time {
            Ok(outcome) => outcome?,
            Err(_) => {
                let late = anyhow!("the loads do not end");
                stage.record_fault("all loads", stage.run_state().transitions, &late);
            }
        }
        self.devices
            .join()
            .map_err(|_| anyhow!("the MQTT load panicked"))?;
        runtime.block_on(self.crowd.close_all());
        Ok(self.ledger)
    }
}

struct Director {
    program: Program,
    stage: Arc<Stage>,
    plan: Plan,
    began: Instant,
    samples: Vec<Sample>,
    restarts: Vec<Restart>,
    ended_at: Option<Duration>,
}

impl Director {
    /// Takes samples and restarts the server at the planned times, until the run is over.
    fn watch(&mut self, mut server: Server) -> Result<Server> {
        let plan = self.plan;
        let progress = report::progress(plan.length.as_secs());
        let mut restart_at = plan.restart_interval;
        loop {
            let at = self.began.elapsed();
            progress.set_position(at.as_secs());
            if at >= plan.length {
                break;
            }
            if restart_at <= plan.trouble_until && at >= restart_at {
                restart_at += plan.restart_interval;
                server = self.restart(server)?;
            }
            match self.sample(&server) {
                Ok(sample) => self.samples.push(sample),
                // This fails if the process has ended, because `/proc` then has no entry for it.
                Err(error) => {
                    eprintln!("the server has ended by itself: {error:#}");
                    self.ended_at = Some(at);
                    break;
                }
            }
            thread::sleep(plan.sample_interval);
        }
        progress.finish_and_clear();
        Ok(server)
    }

    fn sample(&self, server: &Server) -> Result<Sample> {
        Ok(Sample {
            at: self.began.elapsed(),
            resident: server.memory()?.resident,
            descriptors: server.descriptors()?,
            present: get(&self.stage.counts.present),
            deliveries: get(&self.stage.counts.deliveries),
        })
    }

    /// Restarts the server. Ends the old process by a kill and by a regular stop, alternately.
    fn restart(&mut self, server: Server) -> Result<Server> {
        let is_kill = self.restarts.len().is_multiple_of(2);
        let at = self.began.elapsed();
        self.stage.begin_or_end_restart();
        match is_kill {
            true => drop(server),
            false => server.stop()?,
        }
        let server = Server::start_at(&self.program, self.stage.nats)?;
        self.stage.begin_or_end_restart();
        self.restarts.push(Restart {
            at,
            is_kill,
            downtime: self.began.elapsed() - at,
        });
        Ok(server)
    }
}
