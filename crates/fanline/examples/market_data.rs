//! Market data: one feed, and several consumers that differ in the data they need and in their speed.
//!
//! ```sh
//! cargo run -p fanline --example market_data
//! ```
//!
//! - An observer that takes whole packets adds up totals on the feed's own thread.
//! - Operators select large trades.
//! - A recorder must get every tick and writes slowly. It has a worker of a thread pool and a bounded queue.
//!   If the queue is full, the recorder delays the feed and loses no tick.
//! - A display shows only the latest tick. It gets that tick whenever it polls, and delays nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fanline::scheduler::{Bound, ThreadPool};
use fanline::stream::Latest;
use fanline::{Observable, ObservableExt, Observer};

const PACKETS: u32 = 1_000;
const PACKET_TICKS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tick {
    number: u32,
    shares: u32,
}

/// Adds up the shares traded.
struct Totaller {
    shares: Arc<AtomicU64>,
}

impl Observer<Tick> for Totaller {
    fn next(&mut self, tick: &Tick) {
        self.next_slice(std::slice::from_ref(tick));
    }

    // Called once per packet, so the sum is updated once per packet.
    fn next_slice(&mut self, packet: &[Tick]) {
        let shares = packet.iter().map(|tick| u64::from(tick.shares)).sum();
        self.shares.fetch_add(shares, Ordering::Relaxed);
    }

    fn error(&mut self, never: &std::convert::Infallible) {
        match *never {}
    }

    fn complete(&mut self) {}
}

fn packet(number: u32) -> Vec<Tick> {
    (number * PACKET_TICKS..(number + 1) * PACKET_TICKS)
        .map(|number| Tick {
            number,
            shares: if number % 100 == 99 { 5_000 } else { 10 },
        })
        .collect()
}

fn main() {
    let (mut feed, ticks) = fanline::subject::<Tick>();

    let shares = Arc::new(AtomicU64::new(0));
    let totaller = Totaller {
        shares: shares.clone(),
    };
    ticks.subscribe_with(totaller).detach();

    let (alarm, large) = mpsc::channel();
    ticks
        .clone()
        .filter(|tick| tick.shares >= 5_000)
        .map(|tick| tick.number)
        .subscribe(move |number| alarm.send(*number).expect("read below"))
        .detach();

    let pool = ThreadPool::new(1);
    let (record, recorded) = mpsc::channel();
    ticks
        .clone()
        .observe_on_with(pool, Bound::block(256))
        .subscribe(move |tick| record.send(tick.number).expect("read below"))
        .detach();

    let mut latest = ticks.into_stream(Latest);
    let display = thread::spawn(move || {
        let (mut shown, mut last) = (0, None);
        while let Some(tick) = latest.blocking_next() {
            shown += 1;
            last = Some(tick);
            // Drawing takes time; the feed does not wait for it.
            thread::sleep(Duration::from_millis(5));
        }
        (shown, latest.lost(), last)
    });

    (0..PACKETS).for_each(|number| feed.next_slice(&packet(number)));
    feed.complete();

    let all = PACKETS * PACKET_TICKS;
    assert_eq!(shares.load(Ordering::Relaxed), 15_840 * 10 + 160 * 5_000);
    // When the feed has ended, the observers are dropped, and with them the senders that they own. So the
    // iterators end.
    assert_eq!(large.iter().count(), 160);
    assert!(recorded.iter().eq(0..all), "every tick, in order");
    let (shown, lost, last) = display.join().expect("the display panicked");
    // Every lost tick is counted, and the last one is never lost.
    assert_eq!(shown + lost, u64::from(all));
    assert_eq!(last.map(|tick| tick.number), Some(all - 1));
    println!(
        "recorder: all {all} ticks; display: the last one, and as many others as it could draw"
    );
}
