//! The queue of all producers' elements: a list that producers append to and the consumer reads.
//!
//! ```text
//!          head (taken)                       tail: address of the last node, and a bit "closed"
//!            |                                  |
//!            v                                  v
//!          [ a ] --next--> [ b ] --next--> [ a ]       each node is of its producer's lane
//! ```
//!
//! A producer writes a value into a node of its own, makes it the tail by one exchange, and then links
//! it to the node that was the tail before. That exchange is the order of arrival. The consumer follows
//! the links. Closing is the same exchange with a bit: what came before it is received, what comes after
//! it is refused, and nothing is in between.
//!
//! The node that the consumer stands on has given its value away, but is still where the next one will
//! be linked to: it is free when the consumer has gone on. So a lane needs one node more than elements.
//! Nodes live as long as the list.
#![expect(
    unsafe_code,
    reason = "producers write nodes that the consumer reads without a lock"
)]

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use super::lane::Lane;
use crate::sync::{AtomicPtr, Mutex, Ordering, SharedCell, lock};

/// In the address of the tail: nothing is appended any more.
const CLOSED: usize = 1;

pub(super) struct List<T> {
    /// On a cache line of its own: producers write it.
    tail: Tail<T>,
    /// What the nodes were allocated as, to be freed.
    blocks: Mutex<Vec<NonNull<[Node<T>]>>>,
}

#[repr(align(64))]
struct Tail<T>(AtomicPtr<Node<T>>);

/// A place for one element. It is its producer's alone, then the list's, then the consumer's, and its
/// producer's again when the consumer has gone on.
pub(super) struct Node<T> {
    next: AtomicPtr<Self>,
    value: SharedCell<Option<T>>,
    lane: Arc<Lane>,
}

/// The consumer's place: a node whose value is taken, or that never had one.
pub(super) struct Head<T>(NonNull<Node<T>>);

/// Nodes of a lane, for its producer.
pub(super) struct Spare<T> {
    /// Those that were used the longest ago first, each with the number of its element in the lane.
    nodes: VecDeque<(NonNull<Node<T>>, u64)>,
    /// How many elements of the lane were taken, as far as is known.
    taken: u64,
}

/// The number of a node that holds no element; elements are counted from 1.
const UNUSED: u64 = 0;

/// What the consumer finds.
pub(super) enum Found<'a, T> {
    Value(T, &'a Lane),
    Nothing,
    /// Nothing, and nothing comes any more.
    End,
    /// A producer has appended and not linked yet, which are two instructions of it.
    Unlinked,
}

// SAFETY: a node's value is touched by one thread at a time, handed on by the exchange, the link and
// the lane's count; values go from one thread to another, which `Send` allows.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for List<T> {}
// SAFETY: the consumer's right to the values, which are `Send`.
unsafe impl<T: Send> Send for Head<T> {}
// SAFETY: by reference there is nothing that can be done with it.
unsafe impl<T: Send> Sync for Head<T> {}
// SAFETY: free nodes, without values.
unsafe impl<T: Send> Send for Spare<T> {}
// SAFETY: by reference there is nothing that can be done with it.
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

    /// Appends element `number` of the lane, where its producer has found room for it. The value comes
    /// back when the list is closed. The exchange is followed by the caller's fence.
    #[inline]
    pub(super) fn append(
        &self,
        spare: &mut Spare<T>,
        lane: &Arc<Lane>,
        number: u64,
        value: T,
    ) -> Result<(), T> {
        let node = spare.node(self, lane);
        // SAFETY: alive as long as the list, and this producer's.
        let own = unsafe { node.as_ref() };
        // SAFETY: the node is this producer's alone, and holds nothing.
        unsafe { *own.value.get() = Some(value) };
        // Relaxed: the exchange releases it.
        own.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        // Relaxed: only compared.
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        loop {
            if is_closed(tail) {
                spare.nodes.push_front((node, UNUSED));
                // SAFETY: the node was not appended, and is still this producer's alone.
                let value = unsafe { (*own.value.get()).take() };
                return Err(value.expect("it was put there above"));
            }
            // Release: the node's `next` before another producer sets it. Acquire: the same of the node
            // before.
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
        // SAFETY: the consumer stands on this node or before it, and cannot go on before it is linked;
        // so it is in no other use.
        let before = unsafe { &*tail };
        // Release: the value, for the consumer.
        before.next.store(node.as_ptr(), Ordering::Release);
        Ok(())
    }

    /// The next element. Its lane's count is to be raised after this: then the node that the consumer
    /// stood on before may be used again.
    #[inline]
    pub(super) fn take(&self, head: &mut Head<T>) -> Found<'_, T> {
        // SAFETY: nodes live as long as the list.
        let here = unsafe { head.0.as_ref() };
        // Acquire: the value that is linked.
        let next = here.next.load(Ordering::Acquire);
        let Some(next) = NonNull::new(next) else {
            // Acquire: with the bit, what its setter has done before.
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
        // SAFETY: it is linked, so its producer has written it and does not touch it before the lane's
        // count says so; and there is one consumer.
        let value = unsafe { (*node.value.get()).take() };
        Found::Value(value.expect("what is linked holds a value"), &node.lane)
    }

    /// Nothing is appended any more.
    pub(super) fn close(&self) {
        // Relaxed: only compared.
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        while !is_closed(tail) {
            // As in `append`; what the caller has done before is released.
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
        // Acquire: what the one who closed has done before.
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

    /// A node that is free.
    #[inline]
    fn node(&mut self, list: &List<T>, lane: &Arc<Lane>) -> NonNull<Node<T>> {
        if !self.has_free() {
            self.taken = lane.taken();
            if !self.has_free() {
                self.grow(list, lane);
            }
        }
        let node = self.nodes.pop_front();
        node.expect("there was one, or there is now").0
    }

    #[inline]
    fn has_free(&self) -> bool {
        // The consumer stands on the last element that it took of this lane, or on another lane's.
        self.nodes
            .front()
            .is_some_and(|(_, number)| *number < self.taken || *number == UNUSED)
    }

    #[cold]
    fn grow(&mut self, list: &List<T>, lane: &Arc<Lane>) {
        // At most twice what was ever in use at once, and few for producers that send little.
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
            // SAFETY: it was a box, and all who knew of it are gone. Values that are left are dropped
            // with it.
            drop(unsafe { Box::from_raw(block.as_ptr()) });
        }
    }
}
