//! Adapters that run other Rust libraries in a measurement. RxJava is a separate process.

use std::convert::Infallible;

use rxrust::prelude::{Local, Observable, ObservableFactory, Observer, Shared};
use tokio::sync::broadcast;

use super::audience::{Audience, Received};
use super::grid::{Calls, Flavor, Load};
use super::running::{Running, emit_each};

/// Runs an rxRust subject. rxRust has no replay and no async subject.
macro_rules! rxrust {
    ($context:ident => $load:expr, $audience:expr) => {
        match ($load.flavor, $load.calls) {
            (Flavor::Subject, Calls::Next) => {
                let subject = $context::subject::<'static, u32, Infallible>();
                rxrust!(subject, $audience, Received::All)
            }
            (Flavor::Behavior, Calls::Next) => {
                let subject = $context::behavior_subject::<'static, u32, Infallible>(0);
                rxrust!(subject, $audience, Received::AllAndInitial)
            }
            _ => None,
        }
    };
    ($subject:expr, $audience:expr, $received:expr) => {{
        let subject = $subject;
        for mut counter in $audience.counters() {
            // In rxRust, dropping the subscription does not unsubscribe.
            let _ = subject.clone().subscribe(move |_| counter.count_value());
        }
        Some(Running::ending(
            $received,
            subject,
            |subject, messages| emit_each(messages, |value| subject.next(value)),
            |subject| subject.complete(),
        ))
    }};
}

/// Runs rxRust's single-threaded subject, which uses `Rc` and `RefCell`.
pub(super) fn rxrust_local(load: Load, audience: &Audience) -> Option<Running> {
    rxrust!(Local => load, audience)
}

/// Runs rxRust's multithreaded subject, which uses `Arc` and `Mutex`.
pub(super) fn rxrust_shared(load: Load, audience: &Audience) -> Option<Running> {
    rxrust!(Shared => load, audience)
}

const CAPACITY: usize = 1024;

/// Number of messages sent before the receivers run.
const BURST: u32 = 256;

/// Runs tokio's broadcast channel. Receivers pull from the channel, so one thread sends a burst of messages
/// and then lets each receiver read it. The result is the cost per message on that thread. Between threads
/// the channel is slower.
pub(super) fn tokio_broadcast(load: Load, audience: &Audience) -> Option<Running> {
    if !load.is_plain() {
        return None;
    }
    let (tx, _) = broadcast::channel::<u32>(CAPACITY);
    let receivers = audience.counters().map(|counter| (tx.subscribe(), counter));
    let mut receivers: Vec<_> = receivers.collect();
    Some(Running::new(Received::All, move |messages| {
        let mut sent = 0;
        while sent < messages {
            let end = messages.min(sent + BURST);
            for value in sent..end {
                // Sending fails only if there are no receivers.
                let _ = tx.send(value);
            }
            for (receiver, counter) in &mut receivers {
                while receiver.try_recv().is_ok() {
                    counter.count_value();
                }
            }
            sent = end;
        }
    }))
}
