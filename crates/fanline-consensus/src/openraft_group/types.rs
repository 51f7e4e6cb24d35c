//! The library's types for a group.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use openraft::{EmptyNode, alias};

use super::runtime::Runtime;
use crate::port::{Members, NodeId};

openraft::declare_raft_types!(
    /// The library's types.
    pub(super) Types:
        D = Command,
        R = (),
        NodeId = NodeId,
        Node = EmptyNode,
        // One leader for each term, so that the term of an entry identifies its leader.
        LeaderId = openraft::impls::leader_id_std::LeaderId<u64, NodeId>,
        AsyncRuntime = Runtime,
);

pub(super) type Entry = alias::EntryOf<Types>;
pub(super) type Payload = alias::PayloadOf<Types>;
pub(super) type LogId = alias::LogIdOf<Types>;
pub(super) type Vote = alias::VoteOf<Types>;
pub(super) type LeaderId = alias::LeaderIdOf<Types>;
pub(super) type Membership = openraft::Membership<NodeId, EmptyNode>;
pub(super) type StoredMembership = alias::StoredMembershipOf<Types>;

/// A command as it is stored. All holders share its bytes.
#[derive(Clone, PartialEq)]
pub(super) struct Command(pub Rc<[u8]>);

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({} bytes)", self.0.len())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Returns the library's name of an entry. Both count from 1; the library's entry 0 stands for the founding.
pub(super) fn log_id(index: u64, term: u64) -> LogId {
    use openraft::vote::RaftLeaderId as _;
    LogId::new(LeaderId::new(term, 0).to_committed(), index)
}

/// Returns the term of an entry.
pub(super) fn term_of(id: &LogId) -> u64 {
    id.committed_leader_id().term
}

pub(super) fn membership(
    voters: BTreeSet<NodeId>,
    new_voters: BTreeSet<NodeId>,
    learners: BTreeSet<NodeId>,
) -> Membership {
    let all = voters.iter().chain(&new_voters).chain(&learners);
    let nodes: BTreeMap<_, _> = all.map(|node| (*node, EmptyNode {})).collect();
    let mut sets = vec![voters, new_voters];
    sets.retain(|voters| !voters.is_empty());
    Membership::new_with_defaults(sets, nodes.into_keys())
}

/// Returns the members. During a change, the voters are those of before.
pub(super) fn members(membership: &Membership) -> Members {
    let sets = membership.get_joint_config();
    let voters = sets.first().cloned().unwrap_or_default();
    Members {
        voters: voters.into_iter().collect(),
        learners: membership.learner_ids().collect(),
    }
}
