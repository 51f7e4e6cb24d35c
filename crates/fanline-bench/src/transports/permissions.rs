//! The cost of permissions for a publisher. Two users of one server publish in turn, so drift of the machine
//! affects both equally. One user is unrestricted, and the other has a list of allowed subjects.

use std::io::Write;
use std::slice::from_ref;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::comparison::cost::Cost;
use crate::generator::connection::Connection;
use crate::generator::frames;
use crate::generator::throughput::calibrate;
use crate::report::metric::{Metric, Sample};
use crate::servers::{Program, Streams, process::Server};

const ALLOWED: usize = 50;
const PAYLOAD_BYTES: usize = 128;
/// Number of turns of each user during one measurement.
const TURNS: u32 = 10;

/// The properties of the restricted user that vary between rows.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    /// Number of allowed subjects to which the user publishes in turn.
    pub(crate) subjects: usize,
    /// Whether the user's account has an import from another account.
    pub(crate) imports: bool,
}

/// Starts `program`, lets both users publish for about `duration`, and stops the server.
pub(crate) fn measure(
    folder: &str,
    program: &Program,
    bound: Bound,
    duration: Duration,
) -> Result<Sample> {
    let config = text(bound.imports);
    let server = Server::start(&program.with_config(folder, &config, Streams::None)?)?;
    let chunk = Chunk::new(bound.subjects);
    let open = Connection::open_as(server.address(), "open", "pw")?;
    let restricted = Connection::open_as(server.address(), "bound", "pw")?;
    let turn = duration / (2 * TURNS);
    // Calibrate the size of a turn. This also fills the server's caches.
    let chunks = calibrate(turn / 2, |chunks| burst(&open, &chunk, chunks))?.chunks;
    burst(&restricted, &chunk, chunks)?;
    let cost = Cost::start(from_ref(&server))?;
    let (mut open_time, mut bound_time) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        open_time += burst(&open, &chunk, chunks)?;
        bound_time += burst(&restricted, &chunk, chunks)?;
    }
    let messages = chunks * chunk.messages * u64::from(TURNS);
    let mut sample = cost.end(from_ref(&server), 2 * messages)?;
    sample.set_rate(messages, bound_time);
    sample.set(
        Metric::AgainstOpen,
        open_time.as_secs_f64() / bound_time.as_secs_f64(),
    );
    sample.set(Metric::PeakMemory, server.memory()?.peak as f64);
    Ok(sample)
}

/// Returns the server's configuration. Connections without credentials are allowed, because the check whether
/// the server is ready has none.
fn text(imports: bool) -> String {
    let allowed: Vec<String> = (0..ALLOWED).map(|n| format!("{:?}", subject(n))).collect();
    let imports = match imports {
        true => "imports: [ { service: { account: SHOP, subject: \"prices.*\" } } ]",
        false => "",
    };
    format!(
        "no_auth_user: open\n\
         accounts {{\n\
         OPEN {{ users: [ {{ user: open, password: pw }} ] }}\n\
         SHOP {{ exports: [ {{ service: \"prices.*\" }} ] }}\n\
         BOUND {{ {imports}\n\
         users: [ {{ user: bound, password: pw, permissions: {{ publish: [ {} ] }} }} ] }}\n\
         }}\n",
        allowed.join(", ")
    )
}

fn subject(number: usize) -> String {
    format!("orders.{number}.new")
}

/// The bytes of one write.
struct Chunk {
    bytes: Vec<u8>,
    messages: u64,
}

impl Chunk {
    fn new(subjects: usize) -> Self {
        let payload = frames::payload(PAYLOAD_BYTES);
        let round: Vec<u8> = (0..subjects)
            .flat_map(|number| frames::publish(&subject(number), &payload))
            .collect();
        let (bytes, rounds) = frames::repeat_to(&round, frames::CHUNK_BYTES);
        Chunk {
            bytes,
            messages: rounds * subjects as u64,
        }
    }
}

/// Measures the time from the first write until the server has processed all messages.
fn burst(publisher: &Connection, chunk: &Chunk, chunks: u64) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..chunks {
        publisher.stream().write_all(&chunk.bytes)?;
    }
    publisher.flush()?;
    Ok(start.elapsed())
}
