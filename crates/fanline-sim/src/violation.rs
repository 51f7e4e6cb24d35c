//! Invariants, and how one was violated.

use std::fmt;

/// What always holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// A message that is published after a subscriber has received the PONG behind its SUB reaches the
    /// subscriber exactly once.
    Visibility,
    /// Messages of one publisher arrive in the order in which it published them.
    Order,
    /// An acknowledged message is still stored after any crash, once, and with a sequence that no other
    /// message has.
    Durability,
    /// No message arrives after the PONG that follows an UNSUB, and no more messages than the maximum of the
    /// UNSUB.
    Unsubscribed,
    /// A message stays in its account.
    Isolation,
    /// One member of a queue group receives a message.
    Queue,
    /// Memory is bounded, and released when clients are gone.
    Memory,
    /// There is no panic, and no error to a correct client.
    Correctness,
    /// Everything is answered in the end, and consumers deliver what is stored.
    Liveness,
    /// A server knows the interest of its peers, and no more of a peer whose last route has ended.
    Interest,
    /// A message takes one hop to each server of a cluster at most, and nothing but a cut or a crash loses it.
    Hops,
    /// MQTT messages of QoS 1 reach sessions at least once, and messages of QoS 2 exactly once.
    Mqtt,
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The expectation, and what happened instead.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.text)
    }
}

/// The outcome of a step.
pub(crate) type Outcome = Result<(), Violation>;

/// Returns a violation.
pub(crate) fn violation(invariant: Invariant, text: impl Into<String>) -> Outcome {
    let text = text.into();
    Err(Violation { invariant, text })
}
