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
}
