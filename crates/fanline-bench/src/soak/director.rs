//! Starts, stops and kills the server, has the loads play, and takes samples.

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
use super::kept::{Ledger, Publisher, Reader, Worker};
use super::mqtt_load::Devices;
use super::number::Seen;
use super::plan::Plan;
use super::slow::{self, Slow};
use super::stage::{Fault, Stage, get, keep};
use crate::comparison::site::Site;
use crate::report;
use crate::servers::Program;
use crate::servers::descriptors::Descriptors;
use crate::servers::process::{Server, free_address};

/// Publishers of core messages, each with subscribers of its own.
const CORE_LOADS: usize = 2;
/// Threads of the loads: there are no more cores where this is measured, and the server needs some.
const THREADS: usize = 2;
/// How long loads may take to come to their end.
const ENDING_MAX: Duration = Duration::from_secs(90);
/// How long it may take until the server has closed what was closed.
const LEAVING_MAX: Duration = Duration::from_secs(10);
/// Sockets of a server with nobody there that may be more than before anybody came: monitoring keeps some, and a
/// leak would be one of thousands.
pub(super) const SOCKETS_SLACK: u64 = 16;

/// All that was seen.
pub(super) struct Record {
    pub(super) stage: Arc<Stage>,
    /// Records of the stream that were acknowledged, read in order, and worked on.
    pub(super) kept: [u64; 3],
    pub(super) samples: Vec<Sample>,
    pub(super) restarts: Vec<Restart>,
    /// Descriptors of a server that nobody has come to yet, and of one that all have left.
    pub(super) before: Descriptors,
    pub(super) after: Option<Descriptors>,
    /// The server ended by itself, at this time.
    pub(super) died: Option<Duration>,
    pub(super) faults: Vec<Fault>,
    pub(super) faults_count: u64,
}

/// The server at one moment.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) resident: u64,
    pub(super) descriptors: Descriptors,
    /// Live connections of the crowd.
    pub(super) present: u64,
    /// Messages that have arrived so far, everywhere.
    pub(super) deliveries: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Restart {
    pub(super) at: Duration,
    pub(super) is_kill: bool,
    /// Until the next server has answered.
    pub(super) away: Duration,
}

/// Runs all of it.
pub(super) fn direct(program: &Program, plan: &Plan, dir: &Path) -> Result<Record> {
    let site = Site::new(dir)?;
    let (nats, mqtt) = (free_address()?, free_address()?);
    let program = configured(program, &site.kept(program.system)?, mqtt)?;
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
        died: None,
    };
    let server = director.watch(server)?;
    eprintln!("ending");
    stage.end();
    let ledger = loads.end(&stage, &runtime)?;
    let after = match director.died {
        None => Some(left(&server, before)?),
        Some(_) => None,
    };
    if after.is_some() {
        server.stop()?;
    }
    let (faults, faults_count) = stage.faults();
    Ok(Record {
        kept: ledger.state(),
        stage,
        samples: director.samples,
        restarts: director.restarts,
        before,
        after,
        died: director.died,
        faults,
        faults_count,
    })
}

/// The program with a file that has all that is loaded.
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

/// Descriptors once all have left: soon none of theirs is open any more.
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

/// The loads as they run.
struct Loads {
    playing: JoinSet<()>,
    devices: thread::JoinHandle<()>,
    crowd: Crowd,
    ledger: Arc<Ledger>,
}

impl Loads {
    /// Starts all of them, once the crowd is there.
    fn begin(stage: &Arc<Stage>, runtime: &Runtime, plan: &Plan) -> Result<Self> {
        let _guard = runtime.enter();
        let crowd = Crowd::gather(stage, plan.connections);
        runtime.block_on(crowd::assembled(stage, plan.connections))?;
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

    /// Waits until all have come to their end, and has the crowd leave.
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
                let late = anyhow!("loads do not come to their end");
                stage.judge("all loads", stage.scene().upheavals, &late);
            }
        }
        self.devices
            .join()
            .map_err(|_| anyhow!("the MQTT load has panicked"))?;
        runtime.block_on(self.crowd.leave());
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
    died: Option<Duration>,
}

impl Director {
    /// Takes samples, and restarts the server when it is time to, until the run is over.
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
                // There is nothing in /proc of what has ended.
                Err(error) => {
                    eprintln!("the server has ended by itself: {error:#}");
                    self.died = Some(at);
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

    /// Kills it the first time, has it stop the next, and so on.
    fn restart(&mut self, server: Server) -> Result<Server> {
        let is_kill = self.restarts.len().is_multiple_of(2);
        let at = self.began.elapsed();
        self.stage.turn_over();
        match is_kill {
            true => drop(server),
            false => server.stop()?,
        }
        let server = Server::start_at(&self.program, self.stage.nats)?;
        self.stage.turn_over();
        self.restarts.push(Restart {
            at,
            is_kill,
            away: self.began.elapsed() - at,
        });
        Ok(server)
    }
}
