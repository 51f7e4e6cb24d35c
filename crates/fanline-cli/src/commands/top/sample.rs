//! Samples of a server's monitoring, and the rates between two samples.

use std::collections::HashMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::monitor::Monitor;

/// The server as a whole, from `/varz`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Server {
    pub(super) server_id: String,
    pub(super) server_name: String,
    pub(super) version: String,
    pub(super) uptime: String,
    pub(super) mem: u64,
    pub(super) cpu: f64,
    pub(super) connections: u64,
    pub(super) subscriptions: u64,
    pub(super) slow_consumers: u64,
    pub(super) in_msgs: u64,
    pub(super) out_msgs: u64,
    pub(super) in_bytes: u64,
    pub(super) out_bytes: u64,
}

/// A connection, from `/connz`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Connection {
    pub(super) cid: u64,
    pub(super) ip: String,
    pub(super) port: u16,
    pub(super) name: String,
    pub(super) lang: String,
    pub(super) version: String,
    pub(super) account: String,
    pub(super) authorized_user: String,
    pub(super) subscriptions: u64,
    pub(super) pending_bytes: u64,
    pub(super) rtt: String,
    pub(super) uptime: String,
    pub(super) idle: String,
    pub(super) in_msgs: u64,
    pub(super) out_msgs: u64,
    pub(super) in_bytes: u64,
    pub(super) out_bytes: u64,
    pub(super) slow_consumer: Option<SlowConsumer>,
}

/// Fanline's details about a slow connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct SlowConsumer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waited: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
}

/// A leaf connection to another server, from `/leafz`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Leaf {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) is_spoke: bool,
    pub(super) account: String,
    pub(super) ip: String,
    pub(super) port: u16,
    pub(super) rtt: String,
    pub(super) subscriptions: u64,
    pub(super) compression: String,
    /// Reported by Fanline only.
    pub(super) reconnects: u64,
    pub(super) in_msgs: u64,
    pub(super) out_msgs: u64,
    pub(super) in_bytes: u64,
    pub(super) out_bytes: u64,
}

/// All data of one moment.
pub(super) struct Sample {
    at: Instant,
    server: Server,
    connections: Vec<Connection>,
    leafs: Vec<Leaf>,
}

/// Paths of the data.
pub(super) struct Paths {
    pub(super) connections: String,
    pub(super) leafs: String,
}

impl Sample {
    pub(super) async fn take(monitor: &Monitor, paths: &Paths) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Connections {
            connections: Vec<Connection>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Leafs {
            leafs: Vec<Leaf>,
        }
        let server = monitor.get("/varz").await?;
        let found: Connections = monitor.get(&paths.connections).await?;
        let linked: Leafs = monitor.get(&paths.leafs).await?;
        Ok(Sample {
            at: Instant::now(),
            server,
            connections: found.connections,
            leafs: linked.leafs,
        })
    }
}

/// Messages and bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rates {
    pub(super) in_msgs: f64,
    pub(super) out_msgs: f64,
    pub(super) in_bytes: f64,
    pub(super) out_bytes: f64,
}

impl Rates {
    /// Computes rates from the counters `in_msgs`, `out_msgs`, `in_bytes`, and `out_bytes`, in this order. A
    /// counter that decreased was reset and counts as unchanged.
    pub(super) fn between(before: [u64; 4], after: [u64; 4], seconds: f64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rate to a few digits")]
        let rate = |nth: usize| after[nth].saturating_sub(before[nth]) as f64 / seconds.max(1e-3);
        Rates {
            in_msgs: rate(0),
            out_msgs: rate(1),
            in_bytes: rate(2),
            out_bytes: rate(3),
        }
    }
}

/// A connection with its rates.
pub(super) struct Row {
    pub(super) connection: Connection,
    pub(super) rates: Rates,
}

/// A leaf connection with its rates.
pub(super) struct LeafRow {
    pub(super) leaf: Leaf,
    pub(super) rates: Rates,
}

/// The state at the second of two samples, with the rates between them.
pub(super) struct View {
    pub(super) server: Server,
    pub(super) rates: Rates,
    pub(super) rows: Vec<Row>,
    pub(super) leafs: Vec<LeafRow>,
}

impl View {
    pub(super) fn between(before: &Sample, after: &Sample) -> Self {
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
        let of = |server: &Server| {
            let Server {
                in_msgs,
                out_msgs,
                in_bytes,
                out_bytes,
                ..
            } = server;
            [*in_msgs, *out_msgs, *in_bytes, *out_bytes]
        };
        let of_one = |connection: &Connection| {
            let Connection {
                in_msgs,
                out_msgs,
                in_bytes,
                out_bytes,
                ..
            } = connection;
            [*in_msgs, *out_msgs, *in_bytes, *out_bytes]
        };
        let known: HashMap<u64, [u64; 4]> = (before.connections.iter())
            .map(|connection| (connection.cid, of_one(connection)))
            .collect();
        let rows = after.connections.iter().map(|connection| {
            // The last sample does not contain a new connection. All its messages were sent or received since
            // then, so its earlier counts are 0.
            let earlier = known.get(&connection.cid).copied().unwrap_or_default();
            Row {
                connection: connection.clone(),
                rates: Rates::between(earlier, of_one(connection), seconds),
            }
        });
        View {
            server: after.server.clone(),
            rates: Rates::between(of(&before.server), of(&after.server), seconds),
            rows: rows.collect(),
            leafs: leaf_rows(&before.leafs, &after.leafs, seconds),
        }
    }
}

fn leaf_rows(before: &[Leaf], after: &[Leaf], seconds: f64) -> Vec<LeafRow> {
    let counts = |leaf: &Leaf| [leaf.in_msgs, leaf.out_msgs, leaf.in_bytes, leaf.out_bytes];
    let rows = after.iter().map(|leaf| {
        let earlier = before.iter().find(|earlier| earlier.id == leaf.id);
        let earlier = earlier.map(counts).unwrap_or_default();
        LeafRow {
            leaf: leaf.clone(),
            rates: Rates::between(earlier, counts(leaf), seconds),
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rates_are_differences_per_second() {
        let at = Instant::now();
        let connection = |cid, in_msgs| Connection {
            cid,
            in_msgs,
            ..Connection::default()
        };
        let sample = |after, in_msgs, connections| Sample {
            at: at + Duration::from_secs(after),
            server: Server {
                in_msgs,
                ..Server::default()
            },
            connections,
            leafs: vec![Leaf {
                id: 7,
                out_bytes: in_msgs * 10,
                ..Leaf::default()
            }],
        };
        let before = sample(0, 100, vec![connection(1, 10), connection(2, 90)]);
        let after = sample(2, 140, vec![connection(1, 30), connection(3, 8)]);
        let view = View::between(&before, &after);
        assert_eq!(view.rates.in_msgs, 20.0);
        let rates: Vec<f64> = view.rows.iter().map(|row| row.rates.in_msgs).collect();
        assert_eq!(rates, [10.0, 4.0]);
        assert_eq!(view.leafs[0].rates.out_bytes, 200.0);
        assert_eq!(
            View::between(&after, &before).rates.in_msgs,
            0.0,
            "a restart"
        );
    }
}
