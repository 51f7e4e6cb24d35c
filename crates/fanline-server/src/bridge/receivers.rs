//! Receivers in this process, for messages from the server and from publishers of the same bridge.

use std::sync::Arc;

use fanline_engine::Filter;
use tokio::task::AbortHandle;

use crate::client::Message;
use crate::sync::{AtomicU64, Lock, Ordering};

/// A receiver.
pub(super) trait Receive: Send + Sync {
    /// Passes a message to the receiver. Called on any thread.
    fn receive(&self, message: &Message);

    /// Reports to the receiver that no more messages follow.
    fn complete(&self) {}

    /// Returns whether anything can still observe this receiver.
    fn is_reachable(&self) -> bool {
        true
    }
}

/// The receivers of a message.
pub(super) type ReceiverSet = Arc<[Arc<dyn Receive>]>;

/// All receivers of a bridge.
#[derive(Default)]
pub(super) struct Receivers {
    state: Lock<State>,
    /// Counts changes, so that a publisher can check whether its last lookup is still valid.
    generation: AtomicU64,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    last_id: u64,
}

struct Entry {
    id: u64,
    filter: Box<str>,
    receiver: Arc<dyn Receive>,
    /// The task that reads the server's messages. It is aborted when the entry is removed. `None` if the
    /// receiver has no such task.
    task: Option<AbortHandle>,
}

impl Receivers {
    pub(super) fn add(
        &self,
        filter: &str,
        receiver: Arc<dyn Receive>,
        task: Option<AbortHandle>,
    ) -> u64 {
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.entries.push(Entry {
            id,
            filter: filter.into(),
            receiver,
            task,
        });
        self.count_change();
        id
    }

    pub(super) fn remove(&self, id: u64) {
        self.remove_if(|entry| entry.id == id);
    }

    /// Removes receivers that nothing can observe any more.
    pub(super) fn sweep(&self) {
        self.remove_if(|entry| !entry.receiver.is_reachable());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().entries.is_empty()
    }

    /// Removes all receivers, and reports the end to them.
    pub(super) fn complete(&self) {
        for entry in self.remove_if(|_| true) {
            entry.receiver.complete();
        }
    }

    /// Removes entries and returns them. Dropping an observer may run any code, so the caller drops the
    /// entries without the lock.
    fn remove_if(&self, is_over: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut state = self.state.lock();
        let over: Vec<Entry> = state
            .entries
            .extract_if(.., |entry| is_over(entry))
            .collect();
        if !over.is_empty() {
            self.count_change();
        }
        drop(state);
        for task in over.iter().filter_map(|entry| entry.task.as_ref()) {
            task.abort();
        }
        over
    }

    /// Counts a change. The caller has the lock.
    fn count_change(&self) {
        // Release: a thread that reads the new count also sees the changed entries.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns the generation of the set.
    pub(super) fn generation(&self) -> u64 {
        // Acquire pairs with the Release in `count_change`. If an observer was added before a publisher's
        // thread loads the count, this thread reads the new count and looks up the receivers again. So the
        // observer receives the value.
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the receivers whose filter matches a subject.
    pub(super) fn matching(&self, subject: &str) -> ReceiverSet {
        let state = self.state.lock();
        let matches = |entry: &&Entry| {
            let filter = Filter::parse(entry.filter.as_bytes());
            filter.is_ok_and(|filter| filter.matches(subject.as_bytes()))
        };
        let found = state.entries.iter().filter(matches);
        found.map(|entry| Arc::clone(&entry.receiver)).collect()
    }
}

#[cfg(all(test, not(fanline_loom)))]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[derive(Default)]
    struct Seen(
        crate::sync::Mutex<Vec<String>>,
        std::sync::atomic::AtomicBool,
    );

    impl Receive for Seen {
        fn receive(&self, message: &Message) {
            let mut seen = self.0.lock().expect("nobody panics");
            seen.push(message.subject().to_owned());
        }

        fn is_reachable(&self) -> bool {
            !self.1.load(Ordering::Relaxed)
        }
    }

    fn publish(receivers: &Receivers, subject: &str) {
        let bytes = u32::try_from(subject.len()).expect("short");
        let message = Message::in_process(Arc::from(subject), bytes, None, Bytes::new());
        for receiver in receivers.matching(subject).iter() {
            receiver.receive(&message);
        }
    }

    #[test]
    fn receiver_gets_matching_messages_until_removed() {
        let receivers = Receivers::default();
        let (orders, all) = (Arc::new(Seen::default()), Arc::new(Seen::default()));
        let id = receivers.add("orders.*", orders.clone(), None);
        let before = receivers.generation();
        receivers.add(">", all.clone(), None);
        assert_ne!(receivers.generation(), before);
        for subject in ["orders.new", "orders", "orders.eu.new"] {
            publish(&receivers, subject);
        }
        receivers.remove(id);
        publish(&receivers, "orders.late");
        assert_eq!(*orders.0.lock().expect("fine"), ["orders.new"]);
        assert_eq!(all.0.lock().expect("fine").len(), 4);

        receivers.sweep();
        assert!(!receivers.is_empty());
        all.1.store(true, Ordering::Relaxed);
        receivers.sweep();
        assert!(receivers.is_empty());
    }
}
