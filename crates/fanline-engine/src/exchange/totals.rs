//! Counters of an account that outlive its sessions.

/// Counters of closed sessions, and of all sessions ever opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) opened: u64,
    pub(crate) in_msgs: u64,
    pub(crate) in_bytes: u64,
    pub(crate) out_msgs: u64,
    pub(crate) out_bytes: u64,
    pub(crate) slow_consumers: u64,
    pub(crate) stale: u64,
    pub(crate) stalls: u64,
    pub(crate) leafs: LeafTraffic,
}

/// The part of the counters for messages from and to other servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the counts that it is a part of")]
pub struct LeafTraffic {
    pub in_msgs: u64,
    pub in_bytes: u64,
    pub out_msgs: u64,
    pub out_bytes: u64,
}

impl LeafTraffic {
    pub(crate) fn add(&mut self, other: &LeafTraffic) {
        self.in_msgs += other.in_msgs;
        self.in_bytes += other.in_bytes;
        self.out_msgs += other.out_msgs;
        self.out_bytes += other.out_bytes;
    }
}
