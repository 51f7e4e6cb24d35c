//! A cache of last values. A reader of a key gets the current value at once, and then every change.
//!
//! ```sh
//! cargo run -p fanline --example last_value_cache
//! ```
//!
//! One thread writes, and any number of threads read. The writer owns a producer for each key, so an update
//! takes no lock. Readers hold sources, which they can clone and move to any thread.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::mpsc;
use std::thread;

use fanline::policy::Current;
use fanline::{Guard, ObservableExt, Producer, Source};

/// The writing half. With the policy `Current`, each key always has a value.
struct Writer {
    prices: HashMap<&'static str, Producer<u32, Infallible, Current>>,
}

/// The reading half.
#[derive(Clone)]
struct Cache {
    prices: HashMap<&'static str, Source<u32>>,
}

fn cache(initial: &[(&'static str, u32)]) -> (Writer, Cache) {
    let (mut producers, mut sources) = (HashMap::new(), HashMap::new());
    for &(key, price) in initial {
        let (producer, source) = fanline::behavior(price);
        producers.insert(key, producer);
        sources.insert(key, source);
    }
    (Writer { prices: producers }, Cache { prices: sources })
}

impl Writer {
    fn set(&mut self, key: &str, price: u32) {
        if let Some(producer) = self.prices.get_mut(key) {
            producer.next(price);
        }
    }
}

impl Cache {
    /// Returns a clone of the current value. The writer is not blocked.
    fn get(&self, key: &str) -> Option<u32> {
        self.prices.get(key)?.latest()
    }

    /// Calls `on_price` with the current value and all later ones, until the guard is dropped.
    fn watch(&self, key: &str, on_price: impl FnMut(&u32) + Send + 'static) -> Option<Guard> {
        Some(self.prices.get(key)?.subscribe(on_price))
    }
}

fn main() {
    let (mut writer, cache) = cache(&[("coffee", 300), ("tea", 200)]);
    writer.set("coffee", 310);
    assert_eq!(cache.get("coffee"), Some(310));
    assert_eq!(cache.get("cocoa"), None);

    // The closure gets the current value inside `watch`, and the next one inside `set`.
    let (tx, rx) = mpsc::channel();
    let guard = cache.watch("coffee", move |price| tx.send(*price).expect("read below"));
    writer.set("coffee", 320);
    // Dropping the guard drops the closure, and with it the sender, so the loop below ends.
    drop(guard);
    writer.set("coffee", 330);
    let seen: Vec<u32> = rx.iter().collect();
    println!("coffee while it was watched: {seen:?}");
    assert_eq!(seen, [310, 320]);

    // A reader on its own thread may subscribe between updates. It starts with the value that is current at
    // that moment and misses no later one.
    let tea = cache.prices["tea"].clone();
    let reader = thread::spawn(move || {
        let mut prices = tea.into_stream(fanline::stream::Unbounded).blocking_iter();
        let first = prices.next();
        (first, prices.count())
    });
    for price in 201..=10_000 {
        writer.set("tea", price);
        // Give the reader a chance to subscribe before the end.
        if price % 1_000 == 0 {
            thread::yield_now();
        }
    }
    // Dropping the writer ends the reader's stream.
    drop(writer);
    let (first, later) = reader.join().expect("the reader panicked");
    // The reader may have subscribed after the writer was dropped. Then there are no values.
    if let Some(first) = first {
        assert_eq!(usize::try_from(10_000 - first), Ok(later));
    }
    println!("tea: no update was missed");
}
