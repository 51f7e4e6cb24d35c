//! Connections that stay: each has a subscription, answers pings, and is heard at every roll call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::stage::{Counts, Load, PATIENCE, Stage, add, get, keep, violation};

const SUBJECT: &str = "soak.roll";
/// Connections that are opened at a time; the others wait for their turn.
const OPENING_MAX: usize = 1_000;
/// Between two roll calls.
const ROLL_INTERVAL: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// Bytes that are read at a time: little is due.
const READ_BYTES: usize = 512;

/// Opens a connection, says more after CONNECT, and waits for the PONG behind that.
pub(super) async fn open(address: SocketAddr, more: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let hello = format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"name\":\"soak\"}}\r\n{more}PING\r\n"
    );
    stream.write_all(hello.as_bytes()).await?;
    let mut lines = Lines::default();
    let is_pong = |line: &str| line == "PONG";
    timeout(PATIENCE, lines.read_to(&mut stream, is_pong))
        .await
        .context("no PONG")??;
    Ok(stream)
}

/// What a server says, line by line.
#[derive(Default)]
struct Lines {
    unread: Vec<u8>,
}

impl Lines {
    /// Reads until a line is the one that is looked for. Pings are answered.
    async fn read_to(
        &mut self,
        stream: &mut TcpStream,
        mut is_it: impl FnMut(&str) -> bool,
    ) -> Result<()> {
        let mut room = [0; READ_BYTES];
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.unread) {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                if line == "PING" {
                    stream.write_all(b"PONG\r\n").await?;
                }
                ensure!(!line.starts_with("-ERR"), "the server said {line}");
                if is_it(line) {
                    return Ok(());
                }
            }
            let count = stream.read(&mut room).await?;
            ensure!(count > 0, "the server closed a connection");
            self.unread.extend_from_slice(&room[..count]);
        }
    }
}

/// All of them.
pub(super) struct Crowd {
    members: JoinSet<()>,
    pub(super) roll: Arc<Roll>,
}

/// Who has answered the last call.
#[derive(Default)]
pub(super) struct Roll {
    call: AtomicU64,
    answers: AtomicU64,
}

impl Crowd {
    /// Starts `count` of them; they come as fast as the server lets them in.
    pub(super) fn gather(stage: &Arc<Stage>, count: usize) -> Self {
        let (mut members, roll) = (JoinSet::new(), Arc::new(Roll::default()));
        let door = Arc::new(Semaphore::new(OPENING_MAX));
        for _ in 0..count {
            let member = Member {
                door: Arc::clone(&door),
                roll: Arc::clone(&roll),
            };
            members.spawn(keep(Arc::clone(stage), member));
        }
        Self { members, roll }
    }

    /// All leave.
    pub(super) async fn leave(mut self) {
        self.members.shutdown().await;
    }
}

/// Waits until so many are there.
pub(super) async fn assembled(stage: &Stage, count: usize) -> Result<()> {
    let (began, wanted) = (Instant::now(), u64::try_from(count)?);
    while get(&stage.counts.present) < wanted {
        let present = get(&stage.counts.present);
        ensure!(
            began.elapsed() < 2 * PATIENCE,
            "{present} of {wanted} connections came"
        );
        sleep(LOOK).await;
    }
    Ok(())
}

struct Member {
    door: Arc<Semaphore>,
    roll: Arc<Roll>,
}

/// One more is there for as long as this is.
struct Present<'a>(&'a Counts);

impl<'a> Present<'a> {
    fn new(counts: &'a Counts) -> Self {
        add(&counts.present, 1);
        Present(counts)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.present.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Load for Member {
    const NAME: &'static str = LIVE;

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        let turn = self.door.acquire().await?;
        let mut stream = open(stage.nats, &format!("SUB {SUBJECT} 1\r\n")).await?;
        drop(turn);
        let _present = Present::new(&stage.counts);
        let roll = &self.roll;
        let mut lines = Lines::default();
        // A payload is a line of its own: the number of the call.
        let answer = |line: &str| {
            if line.parse() == Ok(roll.call.load(Ordering::Acquire)) {
                roll.answers.fetch_add(1, Ordering::AcqRel);
            }
            false
        };
        lines.read_to(&mut stream, answer).await
    }
}

pub(super) const LIVE: &str = "live connections";

/// Calls the roll again and again.
pub(super) struct Caller {
    pub(super) roll: Arc<Roll>,
    pub(super) count: usize,
}

impl Load for Caller {
    const NAME: &'static str = LIVE;

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        let wanted = u64::try_from(self.count)?;
        let client = stage.connect("soak caller").await?;
        while !stage.is_ending() {
            assembled(stage, self.count).await?;
            // One at a time, and nobody else calls.
            let call = self.roll.call.load(Ordering::Acquire) + 1;
            self.roll.answers.store(0, Ordering::Release);
            self.roll.call.store(call, Ordering::Release);
            client.publish(SUBJECT, call.to_string()).await?;
            client.flush().await?;
            let began = Instant::now();
            loop {
                ensure!(client.disconnect().is_none(), "the caller was closed");
                match self.roll.answers.load(Ordering::Acquire) {
                    answers if answers == wanted => break,
                    answers if answers > wanted => {
                        return Err(violation(format!("{answers} of {wanted} have answered")));
                    }
                    answers if began.elapsed() > PATIENCE => {
                        bail!("{answers} of {wanted} connections have answered")
                    }
                    _ => sleep(LOOK).await,
                }
            }
            add(&stage.counts.roll_calls, 1);
            add(&stage.counts.deliveries, wanted);
            sleep(ROLL_INTERVAL).await;
        }
        Ok(())
    }
}
