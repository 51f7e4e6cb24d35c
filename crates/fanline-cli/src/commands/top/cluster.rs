//! `fanline top --all`: the servers of a cluster, from their answers in the system account.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fanline_client::{Client, OutgoingMessage};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::sample::Rates;
use super::screen::{byte_rate, plain, rate};
use crate::failure::Failure;
use crate::show;
use crate::table::Table;

/// Every server of the cluster answers this request.
const PING: &str = "$SYS.REQ.SERVER.PING.STATSZ";
/// Time limit of the answers of all servers.
const ANSWERS_LIMIT: Duration = Duration::from_secs(1);
/// Time without another answer after which no further one is expected from an unknown server.
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Clone, Debug, Default, Deserialize)]
struct Answer {
    server: Server,
    statsz: Statistics,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Server {
    id: String,
    name: String,
    cluster: String,
    ver: String,
    jetstream: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Statistics {
    mem: u64,
    cpu: f64,
    connections: u64,
    subscriptions: u64,
    slow_consumers: u64,
    sent: Flow,
    received: Flow,
    routes: Vec<Route>,
    /// The dialed connections to other clusters.
    gateways: Vec<Gateway>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Flow {
    msgs: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Route {
    pending: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Gateway {
    inbound_connections: u64,
}

/// The answers of all servers.
pub(super) struct Servers {
    at: Instant,
    /// Each answer with the time that it took, by the server's id.
    answers: BTreeMap<String, (Answer, Duration)>,
}

/// A server with its rates.
pub(super) struct ServerRow {
    answer: Answer,
    rtt: Duration,
    rates: Rates,
}

impl Servers {
    /// Requests the counters of all servers. Waits for the servers in `before`, and a short time for further ones.
    pub(super) async fn take(client: &Client, before: Option<&Servers>) -> Result<Self, Failure> {
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(&inbox).await?;
        let request = OutgoingMessage {
            subject: PING.into(),
            reply: Some(inbox),
            ..OutgoingMessage::default()
        };
        let at = Instant::now();
        client.publish_message(&request).await?;
        let mut found = BTreeMap::new();
        loop {
            let is_known = |id: &String| found.contains_key(id);
            let has_all = before.is_some_and(|before| before.answers.keys().all(is_known));
            let until = match has_all || before.is_none() && !found.is_empty() {
                true => Instant::now() + PAUSE,
                false => at + ANSWERS_LIMIT,
            };
            let Ok(Some(answer)) = timeout_at(until.into(), answers.next()).await else {
                break;
            };
            if answer.status() == Some(503) {
                break;
            }
            if let Ok(answer) = serde_json::from_slice::<Answer>(answer.payload()) {
                found.insert(answer.server.id.clone(), (answer, at.elapsed()));
            }
        }
        if found.is_empty() {
            let problem = "no server answers in this account: use a user of the system account";
            return Err(Failure::NoAnswer(problem.into()));
        }
        Ok(Servers { at, answers: found })
    }
}

/// Returns the servers of the second of two samples, with the rates between them, by name.
pub(super) fn rows(before: &Servers, after: &Servers) -> Vec<ServerRow> {
    let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
    let counts = |of: &Statistics| {
        let Statistics { received, sent, .. } = of;
        [received.msgs, sent.msgs, received.bytes, sent.bytes]
    };
    let row = |(id, (answer, rtt)): (&String, &(Answer, Duration))| {
        let now = counts(&answer.statsz);
        let then = before.answers.get(id);
        let then = then.map_or(now, |(answer, _)| counts(&answer.statsz));
        ServerRow {
            answer: answer.clone(),
            rtt: *rtt,
            rates: Rates::between(then, now, seconds),
        }
    };
    let mut rows: Vec<ServerRow> = after.answers.iter().map(row).collect();
    rows.sort_by(|a, b| a.answer.server.name.cmp(&b.answer.server.name));
    rows
}

/// Returns the lines of the screen.
pub(super) fn lines(rows: &[ServerRow]) -> Vec<String> {
    let mut table = Table::new([
        "server",
        "cluster",
        "version",
        "JS",
        ">conns",
        ">subs",
        ">in/s",
        ">out/s",
        ">in B/s",
        ">out B/s",
        ">slow",
        ">cpu",
        ">memory",
        ">routes",
        ">pending",
        ">gateways",
        ">rtt",
    ]);
    for ServerRow { answer, rtt, rates } in rows {
        let Answer { server, statsz } = answer;
        let pending: u64 = statsz.routes.iter().map(|route| route.pending).sum();
        table.row([
            plain(&server.name),
            plain(&server.cluster),
            plain(&server.ver),
            if server.jetstream { "yes" } else { "no" }.to_owned(),
            show::count(statsz.connections),
            show::count(statsz.subscriptions),
            rate(rates.in_msgs),
            rate(rates.out_msgs),
            byte_rate(rates.in_bytes),
            byte_rate(rates.out_bytes),
            show::count(statsz.slow_consumers),
            format!("{:.1} %", statsz.cpu),
            show::bytes(statsz.mem),
            show::count(statsz.routes.len() as u64),
            show::bytes(pending),
            show::count(statsz.gateways.len() as u64),
            format!("{:.1}ms", rtt.as_secs_f64() * 1e3),
        ]);
    }
    table.lines()
}

/// Returns the servers as JSON.
pub(super) fn to_json(rows: &[ServerRow]) -> Value {
    let servers = rows.iter().map(|row| {
        let Answer { server, statsz } = &row.answer;
        json!({
            "id": server.id,
            "name": server.name,
            "cluster": server.cluster,
            "version": server.ver,
            "jetstream": server.jetstream,
            "memory_bytes": statsz.mem,
            "cpu_percent": statsz.cpu,
            "connections": statsz.connections,
            "subscriptions": statsz.subscriptions,
            "slow_consumers": statsz.slow_consumers,
            "routes": statsz.routes.len(),
            "routes_pending_bytes": statsz.routes.iter().map(|route| route.pending).sum::<u64>(),
            "gateways": statsz.gateways.len(),
            "gateways_inbound": statsz.gateways.iter().map(|one| one.inbound_connections).sum::<u64>(),
            "rtt_seconds": row.rtt.as_secs_f64(),
            "rates": row.rates,
        })
    });
    json!({ "servers": servers.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_servers_are_differences_per_second() {
        let at = Instant::now();
        let sample = |after, counts: &[(&str, u64)]| Servers {
            at: at + Duration::from_secs(after),
            answers: (counts.iter())
                .map(|(id, msgs)| {
                    let mut answer = Answer::default();
                    answer.server.name = format!("name of {id}");
                    answer.statsz.received.msgs = *msgs;
                    ((*id).to_owned(), (answer, Duration::from_millis(1)))
                })
                .collect(),
        };
        let rows = rows(&sample(0, &[("a", 10)]), &sample(2, &[("b", 7), ("a", 30)]));
        let rates: Vec<f64> = rows.iter().map(|row| row.rates.in_msgs).collect();
        assert_eq!(rates, [10.0, 0.0]);
        assert!(lines(&rows)[2].starts_with("name of a"));
        assert_eq!(to_json(&rows)["servers"][1]["rates"]["in_msgs"], 0.0);
    }
}
