//! The exchange: prices, a strategy in the same process, and a bridge to clients.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fanline::{Guard, Replay, ReplaySubject, Subject};
use fanline_server::bridge::{Binding, Encode, Json};
use fanline_server::client::jetstream::{JetStream, Storage, StreamConfig};
use fanline_server::{Handle, JetStreamOptions, Options, Server, WebSocketOptions};
use serde::{Deserialize, Serialize};

const SYMBOLS: [&str; 3] = ["CUP", "MUG", "POT"];
/// Number of ticks that are replayed to late observers in this process.
const REPLAYED: usize = 100;
/// Number of ticks that are stored for late clients.
const KEPT: i64 = 10_000;
/// Number of pending orders at which the strategy waits.
const ORDERS_WAITING: usize = 64;

/// A price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tick {
    pub(crate) symbol: String,
    pub(crate) number: u64,
    pub(crate) cents: u64,
}

/// An order of the strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) symbol: String,
    pub(crate) side: String,
    pub(crate) cents: u64,
}

/// The running exchange. It stops when it is dropped.
pub(crate) struct Exchange {
    pub(crate) server: Handle,
    /// The program's ticks.
    feed: ReplaySubject<Tick>,
    market: Market,
    paused: Arc<AtomicBool>,
    orders: Arc<AtomicU64>,
    _bindings: [Binding; 2],
    _guards: Vec<Guard>,
}

impl Exchange {
    /// Starts the server, and binds the prices and orders to its subjects.
    pub(crate) fn open(port: u16, websocket: u16) -> Result<Exchange, Box<dyn Error>> {
        let server = Server::start(Options {
            port,
            websocket: Some(WebSocketOptions {
                port: websocket,
                ..WebSocketOptions::default()
            }),
            jetstream: Some(JetStreamOptions::default()),
            ..Options::default()
        })?;
        keep_ticks(&server)?;
        let bridge = server.bridge()?;

        // A tick is emitted once. Observers in this process receive the value, and clients receive it as
        // JSON.
        let feed = ReplaySubject::new(Replay::many(REPLAYED));
        let to_symbol = |tick: &Tick| format!("ticks.{}", tick.symbol);
        let ticks = bridge.publish_from("ticks.*", &feed, Json.to(to_symbol))?;

        // The strategy observes each tick in this process. Its orders go through a hub. If the server does not
        // keep up, the strategy waits, and no order is lost.
        let orders = Subject::<Order>::new();
        let (hub, waiting) = fanline::hub::merge::<Order>(ORDERS_WAITING);
        let to_hub = hub.producer().attach_source(orders.source());
        let to_side = |order: &Order| format!("orders.{}", order.side);
        let published = bridge.publish_stream("orders.*", waiting, Json.to(to_side))?;
        let count = Arc::new(AtomicU64::new(0));
        let strategy = strategy(&feed, orders, Arc::clone(&count));

        // A button of the browser page pauses the feed by a message.
        let paused = Arc::new(AtomicBool::new(false));
        let is_paused = Arc::clone(&paused);
        let controls = bridge.observe_as::<bool, _>("control.paused", Json)?;
        let controls =
            controls.subscribe(move |paused| is_paused.store(*paused, Ordering::Relaxed));

        // Late clients request the newest prices, which come from memory.
        let (answers, replay) = (bridge.clone(), feed.clone());
        let snapshots = bridge.observe("snapshot")?.subscribe(move |request| {
            let ticks = serde_json::to_vec(&replay.snapshot()).unwrap_or_default();
            if let Some(reply) = request.reply() {
                // This fails if the server has stopped.
                let _ = answers.publish(reply, ticks);
            }
        });
        Ok(Exchange {
            server,
            feed,
            market: Market::default(),
            paused,
            orders: count,
            _bindings: [ticks, published],
            _guards: vec![to_hub, strategy, controls, snapshots],
        })
    }

    /// Emits one more price for each symbol, unless the feed is paused.
    pub(crate) fn trade(&mut self) {
        if !self.paused.load(Ordering::Relaxed) {
            self.feed.next_slice(&self.market.prices());
        }
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.market.number
    }

    pub(crate) fn orders(&self) -> u64 {
        self.orders.load(Ordering::Relaxed)
    }
}

/// Creates a stream in memory for clients that have missed ticks.
fn keep_ticks(server: &Handle) -> Result<(), Box<dyn Error>> {
    let config = StreamConfig {
        name: "TICKS".into(),
        subjects: vec!["ticks.*".into()],
        storage: Storage::Memory,
        max_msgs: KEPT,
        ..StreamConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = server.client().await?;
        JetStream::new(&client)
            .create_stream(&config.into())
            .await?;
        Ok(())
    })
}

/// Starts the strategy: it buys below a symbol's recent average, and sells above.
fn strategy(feed: &ReplaySubject<Tick>, orders: Subject<Order>, count: Arc<AtomicU64>) -> Guard {
    let mut usual = HashMap::<String, u64>::new();
    feed.subscribe(move |tick| {
        let usual = usual.entry(tick.symbol.clone()).or_insert(tick.cents);
        *usual = (*usual * 7 + tick.cents) / 8;
        let side = match tick.cents {
            cents if cents * 50 < *usual * 49 => "buy",
            cents if cents * 50 > *usual * 51 => "sell",
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
        orders.next(Order {
            symbol: tick.symbol.clone(),
            side: side.to_owned(),
            cents: tick.cents,
        });
    })
}

/// Random prices that are the same in every run.
struct Market {
    cents: [u64; SYMBOLS.len()],
    number: u64,
    random: u64,
}

impl Default for Market {
    fn default() -> Self {
        Market {
            cents: [1_000; SYMBOLS.len()],
            number: 0,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }
}

impl Market {
    fn prices(&mut self) -> Vec<Tick> {
        let mut ticks = Vec::with_capacity(SYMBOLS.len());
        for (symbol, cents) in SYMBOLS.iter().zip(&mut self.cents) {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            // Between 97% and 103% of the last price, and never 0.
            *cents = (*cents * (97 + self.random % 7) / 100).clamp(100, 100_000);
            self.number += 1;
            ticks.push(Tick {
                symbol: (*symbol).to_owned(),
                number: self.number,
                cents: *cents,
            });
        }
        ticks
    }
}
