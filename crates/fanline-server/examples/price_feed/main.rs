//! A price feed: one program publishes once, for observers, browsers, and other clients.
//!
//! ```sh
//! cargo run -p fanline-server --example price_feed
//! ```
//!
//! The README in this folder describes the browser page and the Python client.

mod exchange;

use std::error::Error;
use std::time::{Duration, Instant};

use exchange::Exchange;

/// Time between two prices of a symbol.
const ROUND: Duration = Duration::from_millis(100);

/// Runs the exchange. Arguments are the ports for NATS and WebSocket clients, and the running time in
/// seconds.
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut port = |default: u16| -> Result<u16, Box<dyn Error>> {
        Ok(arguments.next().map_or(Ok(default), |port| port.parse())?)
    };
    let (nats, websocket) = (port(4222)?, port(8080)?);
    let seconds = arguments
        .next()
        .map(|seconds| seconds.parse())
        .transpose()?;
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));

    let mut exchange = Exchange::open(nats, websocket)?;
    let addresses = exchange.server.addresses();
    println!("NATS       nats://{}", addresses.clients);
    if let Some(websocket) = addresses.websocket {
        println!("WebSocket  ws://{websocket}");
    }
    while end.is_none_or(|end| Instant::now() < end) {
        exchange.trade();
        std::thread::sleep(ROUND);
    }
    println!("{} ticks, {} orders", exchange.ticks(), exchange.orders());
    exchange.server.shutdown();
    Ok(())
}
