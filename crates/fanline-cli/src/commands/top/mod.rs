//! `fanline top`: connections and their rates, live.

mod cluster;
mod sample;
mod screen;

use std::cmp::{Ordering, Reverse};
use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::connection::{ConnectionArgs, interrupted};
use crate::failure::Failure;
use crate::monitor::{Monitor, MonitorArgs};
use crate::values;
use cluster::Servers;
use sample::{Paths, Row, Sample, View};
use screen::{Key, Screen};

/// Longest wait for a response.
const RESPONSE_LIMIT: Duration = Duration::from_secs(5);
/// Largest number of connections requested for each sample. A server with more connections decides which ones
/// it returns.
const CONNECTIONS_MAX: usize = 10_000;

/// Watch a server: its connections, their rates, and slow consumers.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads the monitoring port of Fanline or nats-server (-m) over HTTP.
Keys: q quits; these sort: c cid, n name, s subscriptions, p pending, i in msgs, o out msgs, I in bytes,
O out bytes, r rtt.

With --all, shows one line for each server of the cluster. That needs a user of the system account.

Examples:
  fanline top
  fanline top --monitor http://10.0.0.7:8222 --sort pending
  fanline top --all --server nats://sys:password@10.0.0.7:4222
  fanline top --once --json | jq '.connections[] | select(.pending_bytes > 0)'")]
pub(crate) struct TopArgs {
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Sort key of the connections
    #[arg(long, value_name = "KEY", value_enum, default_value = "out-msgs")]
    sort: Sort,
    /// Number of connections to show
    #[arg(short = 'n', long, value_name = "N", default_value = "50")]
    limit: usize,
    /// Time between samples
    #[arg(short, long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    interval: Duration,
    /// Show connections of this account only
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Show connections of this user only
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Show all servers of the cluster, which answer in the system account
    #[arg(long, conflicts_with_all = ["monitor", "account", "user"])]
    all: bool,
    /// With --all: server URL [default: $FANLINE_URL, $NATS_URL, nats://127.0.0.1:4222]
    #[arg(short, long, value_name = "URL", requires = "all")]
    server: Option<String>,
    /// With --all: credentials file of a user of the system account
    #[arg(long, value_name = "FILE", requires = "all")]
    creds: Option<PathBuf>,
    /// Take one sample (two, an interval apart, for the rates) and exit
    #[arg(long)]
    once: bool,
    /// Print JSON, one object per line and sample
    #[arg(long)]
    json: bool,
}

/// Sort keys of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    Cid,
    Name,
    #[value(alias = "subs")]
    Subscriptions,
    Pending,
    #[value(alias = "msgs_from")]
    InMsgs,
    #[value(alias = "msgs_to")]
    OutMsgs,
    #[value(alias = "bytes_from")]
    InBytes,
    #[value(alias = "bytes_to")]
    OutBytes,
    Rtt,
}

impl TopArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let watch = async {
            match self.all {
                true => self.watch_servers().await,
                false => self.watch().await,
            }
        };
        tokio::select! {
            outcome = watch => outcome,
            () = interrupted() => Ok(()),
        }
    }

    /// Opens the screen, unless the output is for programs.
    fn screen(&self) -> Result<Option<Screen>, Failure> {
        let is_live = !self.once && !self.json && stdout().is_terminal() && stdin().is_terminal();
        is_live.then(Screen::open).transpose()
    }

    /// Waits until the next sample, or for a key.
    async fn pause(&self, screen: &mut Option<Screen>) -> Option<Key> {
        match screen {
            Some(screen) => screen.key_within(self.interval).await,
            None => {
                sleep(self.interval).await;
                None
            }
        }
    }

    /// Shows the servers of the cluster.
    async fn watch_servers(&self) -> Result<(), Failure> {
        let connection = ConnectionArgs::to(self.server.clone(), self.creds.clone());
        let client = connection.connect().await?;
        let mut before = Servers::take(&client, None).await?;
        let mut screen = self.screen()?;
        loop {
            if let Some(Key::Quit) = self.pause(&mut screen).await {
                return Ok(());
            }
            let after = Servers::take(&client, Some(&before)).await?;
            let rows = cluster::rows(&before, &after);
            match &mut screen {
                Some(screen) => screen.draw(&cluster::lines(&rows))?,
                None if self.json => writeln!(stdout(), "{}", cluster::to_json(&rows))?,
                None => writeln!(stdout(), "{}", cluster::lines(&rows).join("\n"))?,
            }
            if self.once {
                return Ok(());
            }
            before = after;
        }
    }

    async fn watch(&self) -> Result<(), Failure> {
        let monitor = self.monitor.monitor(RESPONSE_LIMIT)?;
        let mut sort = self.sort;
        let mut before = self.sample(&monitor).await?;
        let mut screen = self.screen()?;
        loop {
            match self.pause(&mut screen).await {
                Some(Key::Quit) => return Ok(()),
                Some(Key::Sort(by)) => sort = by,
                None => {}
            }
            let after = self.sample(&monitor).await?;
            let mut view = View::between(&before, &after);
            sort_by(&mut view.rows, sort);
            view.rows.truncate(self.limit);
            match &mut screen {
                Some(screen) => screen.draw(&screen::lines(&view, sort))?,
                None => self.print(&view, sort)?,
            }
            if self.once {
                return Ok(());
            }
            before = after;
        }
    }

    async fn sample(&self, monitor: &Monitor) -> Result<Sample, Failure> {
        let mut paths = Paths {
            connections: format!("/connz?auth=1&limit={CONNECTIONS_MAX}"),
            leafs: "/leafz".to_owned(),
        };
        for (name, value) in [("acc", &self.account), ("user", &self.user)] {
            if let Some(value) = value {
                paths.connections += &format!("&{name}={}", encode(value));
            }
        }
        if let Some(account) = &self.account {
            paths.leafs += &format!("?acc={}", encode(account));
        }
        Sample::take(monitor, &paths).await
    }

    fn print(&self, view: &View, sort: Sort) -> Result<(), Failure> {
        let text = match self.json {
            true => to_json(view).to_string(),
            false => screen::lines(view, sort).join("\n") + "\n",
        };
        writeln!(stdout(), "{text}")?;
        Ok(())
    }
}

/// Percent-encodes characters that would end a query parameter.
fn encode(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let encoded = text.bytes().map(|byte| match plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

fn sort_by(rows: &mut [Row], sort: Sort) {
    let most = |a: f64, b: f64| b.total_cmp(&a);
    rows.sort_by(|a, b| {
        let (left, right) = (&a.connection, &b.connection);
        let order = match sort {
            Sort::Cid => Ordering::Equal,
            Sort::Name => left.name.cmp(&right.name),
            Sort::Subscriptions => Reverse(left.subscriptions).cmp(&Reverse(right.subscriptions)),
            Sort::Pending => Reverse(left.pending_bytes).cmp(&Reverse(right.pending_bytes)),
            Sort::InMsgs => most(a.rates.in_msgs, b.rates.in_msgs),
            Sort::OutMsgs => most(a.rates.out_msgs, b.rates.out_msgs),
            Sort::InBytes => most(a.rates.in_bytes, b.rates.in_bytes),
            Sort::OutBytes => most(a.rates.out_bytes, b.rates.out_bytes),
            Sort::Rtt => most(screen::seconds(&left.rtt), screen::seconds(&right.rtt)),
        };
        order.then(left.cid.cmp(&right.cid))
    });
}

fn to_json(view: &View) -> Value {
    let server = &view.server;
    let connections = view.rows.iter().map(|row| {
        let connection = &row.connection;
        json!({
            "cid": connection.cid,
            "ip": connection.ip,
            "port": connection.port,
            "name": connection.name,
            "lang": connection.lang,
            "version": connection.version,
            "account": connection.account,
            "user": connection.authorized_user,
            "subscriptions": connection.subscriptions,
            "pending_bytes": connection.pending_bytes,
            "slow_consumer": connection.slow_consumer,
            "rtt": connection.rtt,
            "uptime": connection.uptime,
            "idle": connection.idle,
            "rates": row.rates,
        })
    });
    let leafs = view.leafs.iter().map(|row| {
        let leaf = &row.leaf;
        json!({
            "id": leaf.id,
            "name": leaf.name,
            "ip": leaf.ip,
            "port": leaf.port,
            "account": leaf.account,
            "is_spoke": leaf.is_spoke,
            "subscriptions": leaf.subscriptions,
            "rtt": leaf.rtt,
            "compression": leaf.compression,
            "reconnects": leaf.reconnects,
            "rates": row.rates,
        })
    });
    json!({
        "server": {
            "id": server.server_id,
            "name": server.server_name,
            "version": server.version,
            "uptime": server.uptime,
            "memory_bytes": server.mem,
            "cpu_percent": server.cpu,
            "connections": server.connections,
            "subscriptions": server.subscriptions,
            "slow_consumers": server.slow_consumers,
            "rates": view.rates,
        },
        "connections": connections.collect::<Vec<_>>(),
        "leafnodes": leafs.collect::<Vec<_>>(),
    })
}
