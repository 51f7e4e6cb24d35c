//! Faults of the harness itself, with which tests show that each invariant can fail.

/// What the harness does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// It drops one batch between shards.
    DropBatch,
    /// It applies one batch twice.
    ApplyTwice,
    /// It reports syncs that it has not performed.
    SkipSync,
    /// It loses results of syncs.
    LoseSyncs,
    /// It does not remove sessions whose connection has closed.
    KeepSessions,
    /// It drops a line that announces interest to a peer.
    DropAnnouncement,
    /// It drops a line that withdraws interest from a peer.
    DropWithdrawal,
    /// It drops a message between servers.
    DropRouted,
    /// It delivers a message between servers twice.
    RepeatRouted,
    /// It forwards a message that came from a peer to another peer.
    ForwardRouted,
    /// It does not remove routes whose connection has closed.
    KeepRoutes,
}
