//! Starts, restarts, and stops one server process on the loopback interface.

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
    flags: Vec<String>,
    pub port: u16,
}

impl Server {
    pub async fn start(flags: &[&str]) -> anyhow::Result<Self> {
        let port = port_free()?;
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let process = launch(port, &flags).await?;
        Ok(Self {
            process,
            flags,
            port,
        })
    }

    /// Kills the process, as `kill -9` does, and starts it again on the same port.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.kill().await?;
        self.process = launch(self.port, &self.flags).await?;
        Ok(())
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(libc::SIGTERM)?;
        self.process.wait().await?;
        Ok(())
    }

    /// Starts on the same port, after [`stop`](Server::stop).
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process = launch(self.port, &self.flags).await?;
        Ok(())
    }

    pub fn lame_duck(&self) -> anyhow::Result<()> {
        self.signal(libc::SIGUSR2)
    }

    fn signal(&self, number: libc::c_int) -> anyhow::Result<()> {
        let pid = self.process.id().context("the server has ended")?;
        // SAFETY: `kill` takes two integers and touches no memory of ours.
        let result = unsafe { libc::kill(pid.try_into()?, number) };
        anyhow::ensure!(result == 0, "signal {number} was not sent");
        Ok(())
    }
}

/// A folder for a server's streams, which is removed on drop.
pub struct Folder(String);

impl Folder {
    pub fn new(name: &str) -> anyhow::Result<Self> {
        let name = format!("fanline-interop-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(
            path.to_str()
                .context("the folder's name is no text")?
                .to_owned(),
        ))
    }

    pub fn path(&self) -> &str {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that remains does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn launch(port: u16, flags: &[String]) -> anyhow::Result<Child> {
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

/// Returns a free port below the range that the kernel uses for outgoing connections. When a server is
/// restarted on its port, no client can have taken this port.
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
