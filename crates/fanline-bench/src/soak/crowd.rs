//! Permanent connections. Each has a subscription, answers pings, and must answer every *roll call*: a
//! message to all of them.

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

use super::stage::{Counts, Load, Stage, TIMEOUT, add, get, keep, violation};

const SUBJECT: &str = "soak.roll";
/// Maximum number of connections that are being opened at the same time. Others wait.
const OPENING_MAX: usize = 1_000;
/// Interval between two roll calls.
const ROLL_INTERVAL: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of bytes of one read. Little data is expected.
const READ_BYTES: usize = 512;

/// Opens a connection, sends `more` after CONNECT, and waits for the PONG.
pub(super) async fn open(address: SocketAddr, more: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let hello = format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"name\":\"soak\"}}\r\n{more}PING\r\n"
    );
    stream.write_all(hello.as_bytes()).await?;
    let mut lines = Lines::default();
    let is_pong = |line: &str| line == "PONG";
    timeout(TIMEOUT, lines.read_to(&mut stream, is_pong))
        .await
        .context("no PONG")??;
    Ok(stream)
}

/// The server's output, split into lines.
#[derive(Default)]
struct Lines {
    unread: Vec<u8>,
}

impl Lines {
    /// Reads until a line matches. Answers pings in the meantime.
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
                ensure!(!line.starts_with("-ERR"), "the server sent {line}");
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

/// All permanent connections.
pub(super) struct Crowd {
    members: JoinSet<()>,
    pub(super) roll: Arc<Roll>,
}

/// The current roll call, and the number of its answers.
#[derive(Default)]
pub(super) struct Roll {
    call: AtomicU64,
    answers: AtomicU64,
}

impl Crowd {
    /// Opens `count` connections in the background, as fast as the server accepts them.
    pub(super) fn open_all(stage: &Arc<Stage>, count: usize) -> Self {
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

    /// Closes all connections.
    pub(super) async fn close_all(mut self) {
        self.members.shutdown().await;
    }
}

/// Waits until `count` connections are open.
pub(super) async fn wait_for_connections(stage: &Stage, count: usize) -> Result<()> {
    let (began, wanted) = (Instant::now(), u64::try_from(count)?);
    while get(&stage.counts.present) < wanted {
        let present = get(&stage.counts.present);
        ensure!(
            began.elapsed() < 2 * TIMEOUT,
            "{present} of {wanted} connections opened"
        );
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

struct Member {
    door: Arc<Semaphore>,
    roll: Arc<Roll>,
}

/// A guard that counts a connection as open while the guard exists.
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
        // A payload is on a line of its own. It is the number of the roll call.
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

/// The load that repeats the roll call.
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
            wait_for_connections(stage, self.count).await?;
            // Only this task changes the number of the roll call, so it may read and store the number in two
            // operations.
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
                    answers if began.elapsed() > TIMEOUT => {
                        bail!("{answers} of {wanted} connections have answered")
                    }
                    _ => sleep(POLL_INTERVAL).await,
                }
            }
            add(&stage.counts.roll_calls, 1);
            add(&stage.counts.deliveries, wanted);
            sleep(ROLL_INTERVAL).await;
        }
        Ok(())
    }
}
