//! Rivals in Rust, brought into the shape of a measurement. RxJava is a process of its own.

use std::convert::Infallible;

use rxrust::prelude::{Local, Observable, ObservableFactory, Observer, Shared};
use tokio::sync::broadcast;

use super::audience::{Audience, Received};
use super::grid::Flavour;
use super::running::{Running, Step, emit_each};
use crate::report::versions::built_with;

/// As reports print them.
pub(super) fn versions() -> String {
    built_with(&["rxrust", "tokio"])
}

/// rxRust has no replay and no async subject.
macro_rules! rxrust {
    ($context:ident, $flavour:expr, $audience:expr) => {{
        let audience = $audience;
        match $flavour {
            Flavour::Subject => {
                let subject = $context::subject::<'static, u32, Infallible>();
                Some(rxrust!(running, subject, audience, Received::All))
            }
            Flavour::Behavior => {
                let subject = $context::behavior_subject::<'static, u32, Infallible>(0);
                Some(rxrust!(running, subject, audience, Received::AllAndInitial))
            }
            _ => None,
        }
    }};
    (running, $subject:expr, $audience:expr, $received:expr) => {{
        let mut subject = $subject;
        for mut seat in $audience.seats() {
            // Dropping the subscription does not unsubscribe.
            let _ = subject.clone().subscribe(move |_| seat.bump());
        }
        Running {
            received: $received,
            step: Box::new(move |step| match step {
                Step::Emit(messages) => emit_each(messages, |value| subject.next(value)),
                Step::End => subject.clone().complete(),
            }),
        }
    }};
}

/// For one thread: `Rc` and `RefCell`.
pub(super) fn rxrust_local(flavour: Flavour, audience: &Audience) -> Option<Running> {
    rxrust!(Local, flavour, audience)
}

/// For several: `Arc` and `Mutex`.
pub(super) fn rxrust_shared(flavour: Flavour, audience: &Audience) -> Option<Running> {
    rxrust!(Shared, flavour, audience)
}

/// What the ring of tokio's channel holds.
const CAPACITY: usize = 1024;

/// Messages that are sent before the receivers have their turn.
const BURST: u32 = 256;

/// A channel is pulled, so this is what a message costs one thread that sends a burst and then lets
/// each receiver take it. Between threads it is slower.
pub(super) fn tokio_broadcast(flavour: Flavour, audience: &Audience) -> Option<Running> {
    if flavour != Flavour::Subject {
        return None;
    }
    let (tx, _) = broadcast::channel::<u32>(CAPACITY);
    let receivers = audience.seats().map(|seat| (tx.subscribe(), seat));
    let mut receivers: Vec<_> = receivers.collect();
    Some(Running {
        received: Received::All,
        step: Box::new(move |step| match step {
            Step::Emit(messages) => {
                let mut sent = 0;
                while sent < messages {
                    let end = messages.min(sent + BURST);
                    for value in sent..end {
                        // Only fails without receivers.
                        let _ = tx.send(value);
                    }
                    for (receiver, seat) in &mut receivers {
                        while receiver.try_recv().is_ok() {
                            seat.bump();
                        }
                    }
                    sent = end;
                }
            }
            Step::End => receivers.clear(),
        }),
    })
}
