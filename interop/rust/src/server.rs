//! Starting, restarting and ending one server process on the loopback interface.

use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

const START_TRIES_MAX: usize = 500;

pub struct Server {
    process: Child,
    flags: Vec<&'static str>,
    pub port: u16,
}

impl Server {
    pub async fn start(flags: &[&'static str]) -> anyhow::Result<Self> {
        let port = port_free()?;
        let process = launch(port, flags).await?;
        Ok(Self {
            process,
            flags: flags.to_vec(),
            port,
        })
    }

    /// As `kill -9` and a start on the same port by a supervisor.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.kill().await?;
        self.process = launch(self.port, &self.flags).await?;
        Ok(())
    }

    pub fn lame_duck(&self) -> anyhow::Result<()> {
        let pid = self.process.id().context("the server has ended")?;
        // SAFETY: `kill` takes two integers and touches no memory of ours.
        let result = unsafe { libc::kill(pid.try_into()?, libc::SIGUSR2) };
        anyhow::ensure!(result == 0, "SIGUSR2 was not sent");
        Ok(())
    }
}

async fn launch(port: u16, flags: &[&str]) -> anyhow::Result<Child> {
    let binary = std::env::var("SERVER").context("SERVER must name the server to test")?;
    let mut process = Command::new(binary)
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    for _ in 0..START_TRIES_MAX {
        if let Some(status) = process.try_wait()? {
            bail!("the server ended with {status}");
        }
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return Ok(process);
        }
        sleep(Duration::from_millis(20)).await;
    }
    bail!("the server does not listen on {port}");
}

/// A port that nobody listens on, from below the range that the kernel gives to outgoing
/// connections: a server that is restarted on its port must not find a client sitting there.
fn port_free() -> anyhow::Result<u16> {
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)?
        .subsec_nanos();
    for step in 0..200_u32 {
        let port = 12_000 + (seed.wrapping_add(step * 7_919) % 19_000) as u16;
        if TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port");
}
