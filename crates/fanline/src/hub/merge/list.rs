//! The queue of all producers' elements: a linked list. Producers append to it, and the consumer reads it.
//!
//! ```text
//!          head (taken)                       tail: address of the last node, and a "closed" bit
//!            |                                  |
//!            v                                  v
//!          [ a ] --next--> [ b ] --next--> [ a ]       each node belongs to its producer's lane
//! ```
//!
//! A producer writes a value into a node of its own, makes the node the tail by one exchange, and then links
//! it to the previous tail. That exchange defines the order of arrival. The consumer follows the links.
//! Closing the list is the same exchange, which sets a bit of the address. Elements before it are received,
//! and elements after it are rejected.
//!
//! The consumer has taken the value of its current node, but the next node will be linked to the current one.
//! So a node is free only when the consumer has moved to a later node, and a producer needs one node more
//! than it has elements queued. Nodes live as long as the list.
#![expect(
    unsafe_code,
    reason = "producers write nodes that the consumer reads without a lock"
)]

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use super::lane::Lane;
use crate::sync::{AtomicPtr, Mutex, Ordering, SharedCell, lock};

/// Bit in the tail's address: the list is closed.
const CLOSED: usize = 1;

pub(super) struct List<T> {
    /// On a cache line of its own, because producers write it.
    tail: Tail<T>,
    /// The allocations of the nodes, to be freed.
    blocks: Mutex<Vec<NonNull<[Node<T>]>>>,
}

#[repr(align(64))]
struct Tail<T>(AtomicPtr<Node<T>>);

/// A node for one element. It belongs to its producer, then to the list, then to the consumer. When the
/// consumer has moved on, it belongs to its producer again.
pub(super) struct Node<T> {
    next: AtomicPtr<Self>,
    value: SharedCell<Option<T>>,
    lane: Arc<Lane>,
}

/// The consumer's position: a node whose value was taken, or the first node, which never had one.
pub(super) struct Head<T>(NonNull<Node<T>>);

/// The nodes of one producer.
pub(super) struct Spare<T> {
    /// The nodes, least recently used first. Each has the number of its element, counted for this producer.
    nodes: VecDeque<(NonNull<Node<T>>, u64)>,
    /// Number of this producer's elements that were taken, as far as the producer knows.
    taken: u64,
}

/// The number that [`Spare`] stores for a node without an element. Elements are counted from 1.
const UNUSED: u64 = 0;

/// The result of a read by the consumer.
pub(super) enum Found<'a, T> {
    Value(T, &'a Lane),
    Nothing,
    /// There is no element, and none will follow.
    End,
    /// A producer has made its node the tail but not linked it yet. It will link it within two instructions.
    Unlinked,
}

// SAFETY: one thread at a time accesses a node's value. The exchange, the link, and the count of taken
// elements pass it from thread to thread. Values move between threads, which `Send` allows.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for List<T> {}
// SAFETY: a `Head` grants access to the values, which are `Send`.
unsafe impl<T: Send> Send for Head<T> {}
// SAFETY: a shared reference to a `Head` allows no access to values.
unsafe impl<T: Send> Sync for Head<T> {}
// SAFETY: a `Spare` holds free nodes, without values.
unsafe impl<T: Send> Send for Spare<T> {}
// SAFETY: a shared reference to a `Spare` allows no access to nodes.
unsafe impl<T: Send> Sync for Spare<T> {}

impl<T> List<T> {
    pub(super) fn new() -> (Self, Head<T>) {
        let mut list = Self {
            tail: Tail(AtomicPtr::new(std::ptr::null_mut())),
            blocks: Mutex::new(Vec::new()),
        };
        let first = list.allocate(&Arc::new(Lane::new()), 1);
        let node = first.cast::<Node<T>>();
        list.tail = Tail(AtomicPtr::new(node.as_ptr()));
        (list, Head(node))
    }

    fn allocate(&self, lane: &Arc<Lane>, count: usize) -> NonNull<[Node<T>]> {
        let nodes: Box<[Node<T>]> = (0..count)
            .map(|_| Node {
                next: AtomicPtr::new(std::ptr::null_mut()),
                value: SharedCell::new(None),
                lane: Arc::clone(lane),
            })
            .collect();
        let nodes = NonNull::from(Box::leak(nodes));
        lock(&self.blocks).push(nodes);
        nodes
    }

    /// Appends an element, the producer's `number`th. The producer has checked that there is room. If the
    /// list is closed, returns the value as an error. The caller executes a fence afterwards.
    #[inline]
    pub(super) fn append(
        &self,
        spare: &mut Spare<T>,
        lane: &Arc<Lane>,
        number: u64,
        value: T,
    ) -> Result<(), T> {
        let node = spare.node(self, lane);
        // SAFETY: the node is alive as long as the list, and this producer owns it.
        let own = unsafe { node.as_ref() };
        // SAFETY: only this producer accesses the node, and it holds no value.
        unsafe { *own.value.get() = Some(value) };
        // Relaxed: the exchange below releases the store.
        own.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        // Relaxed: the value is only compared.
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        loop {
            if is_closed(tail) {
                spare.nodes.push_front((node, UNUSED));
                // SAFETY: the node was not appended, so only this producer accesses it.
                let value = unsafe { (*own.value.get()).take() };
                return Err(value.expect("the value was stored above"));
            }
            // Release: a producer that links a node to this node later does so after the null was stored in
            // this node's `next`. Acquire: likewise, this producer links its node after the null was stored
            // in the previous node's `next`.
            match self.tail.0.compare_exchange_weak(
                tail,
                node.as_ptr(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => tail = now,
            }
        }
        spare.nodes.push_back((node, number));
        // SAFETY: the consumer is at this node or before it, and cannot move on before the link exists. So
        // the node is alive and not reused.
        let before = unsafe { &*tail };
        // Release: publishes the value to the consumer.
        before.next.store(node.as_ptr(), Ordering::Release);
        Ok(())
    }

    /// Takes the next element. The caller then raises the count of taken elements in the element's lane.
    /// After that, the consumer's previous node may be reused.
    #[inline]
    pub(super) fn take(&self, head: &mut Head<T>) -> Found<'_, T> {
        // SAFETY: nodes live as long as the list.
        let here = unsafe { head.0.as_ref() };
        // Acquire: sees the value of the linked node.
        let next = here.next.load(Ordering::Acquire);
        let Some(next) = NonNull::new(next) else {
            // Acquire: if the list is closed, sees what the closing thread did before.
            let tail = self.tail.0.load(Ordering::Acquire);
            return if tail.addr() & !CLOSED != head.0.as_ptr().addr() {
                Found::Unlinked
            } else if is_closed(tail) {
                Found::End
            } else {
                Found::Nothing
            };
        };
        head.0 = next;
        // SAFETY: nodes live as long as the list.
        let node = unsafe { next.as_ref() };
        // SAFETY: the node is linked, so its producer has written it. The producer does not touch it again
        // before the lane's count allows it. There is one consumer.
        let value = unsafe { (*node.value.get()).take() };
        Found::Value(value.expect("a linked node holds a value"), &node.lane)
    }

    /// Closes the list: no more elements can be appended.
    pub(super) fn close(&self) {
        // Relaxed: the value is only compared.
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        while !is_closed(tail) {
            // AcqRel for the reasons given in `append`. The release also publishes the caller's earlier
            // writes to threads that find the list closed.
            match self.tail.0.compare_exchange_weak(
                tail,
                tail.map_addr(|address| address | CLOSED),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => tail = now,
            }
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: a thread that finds the list closed sees the closing thread's earlier writes.
        is_closed(self.tail.0.load(Ordering::Acquire))
    }
}

#[inline]
fn is_closed<T>(tail: *mut Node<T>) -> bool {
    tail.addr() & CLOSED != 0
}

impl<T> Spare<T> {
    pub(super) fn new() -> Self {
        Self {
            nodes: VecDeque::new(),
            taken: 0,
        }
    }

    /// Returns a free node.
    #[inline]
    fn node(&mut self, list: &List<T>, lane: &Arc<Lane>) -> NonNull<Node<T>> {
        if !self.has_free() {
            self.taken = lane.taken();
            if !self.has_free() {
                self.grow(list, lane);
            }
        }
        let node = self.nodes.pop_front();
        node.expect("`grow` adds free nodes").0
    }

    #[inline]
    fn has_free(&self) -> bool {
        // A node is free when the consumer has taken a later element of this producer, because the consumer
        // is then past the node.
        self.nodes
            .front()
            .is_some_and(|(_, number)| *number < self.taken || *number == UNUSED)
    }

    #[cold]
    fn grow(&mut self, list: &List<T>, lane: &Arc<Lane>) {
        // This at most doubles the number of nodes, so a producer that sends little has few nodes.
        let count = self.nodes.len().clamp(2, 1024);
        let block = list.allocate(lane, count);
        for index in 0..count {
            // SAFETY: within the block.
            let node = unsafe { block.cast::<Node<T>>().add(index) };
            self.nodes.push_front((node, UNUSED));
        }
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        for block in std::mem::take(&mut *lock(&self.blocks)) {
            // SAFETY: the block was created from a box, and all references to it are gone. This also drops
            // the remaining values.
            drop(unsafe { Box::from_raw(block.as_ptr()) });
        }
    }
}
