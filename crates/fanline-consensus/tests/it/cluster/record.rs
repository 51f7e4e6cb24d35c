//! The rules for the cluster as a whole.

use std::collections::BTreeMap;

use fanline_consensus::port::NodeId;

/// Everything that was committed, acknowledged, or led so far.
#[derive(Default)]
pub(crate) struct Record {
    /// Entries, each with the term of the first node that applied it.
    committed: BTreeMap<(u16, u64), (u64, Vec<u8>)>,
    leaders: BTreeMap<(u16, u64), NodeId>,
    pub elections: usize,
    pub acknowledged: usize,
    pub reads: usize,
}

/// The rule that a seed broke.
pub(crate) type Violation = String;

impl Record {
    /// Election safety: a term has at most one leader.
    pub(crate) fn lead(&mut self, lane: u16, term: u64, node: NodeId) -> Result<(), Violation> {
        self.elections += 1;
        let leader = *self.leaders.entry((lane, term)).or_insert(node);
        match leader == node {
            true => Ok(()),
            false => Err(format!(
                "nodes {leader} and {node} lead lane {lane} in term {term}"
            )),
        }
    }

    /// State machine safety: all nodes commit the same entry at an index. `term` is the node's.
    pub(crate) fn commit(
        &mut self,
        lane: u16,
        index: u64,
        term: u64,
        entry: &[u8],
    ) -> Result<(), Violation> {
        let first = self.committed.entry((lane, index));
        let (_, first) = first.or_insert_with(|| (term, entry.to_vec()));
        match first == entry {
            true => Ok(()),
            false => Err(format!("entry {index} of lane {lane} has two contents")),
        }
    }

    /// Leader completeness: a leader has all entries above its floor that were committed in earlier terms.
    pub(crate) fn check_leader(
        &self,
        lane: u16,
        term: u64,
        floor: u64,
        entry: impl Fn(u64) -> Option<Vec<u8>>,
    ) -> Result<(), Violation> {
        let committed = self.committed.range((lane, floor + 1)..(lane + 1, 0));
        let mut earlier = committed.filter(|(_, (of, _))| *of < term);
        let missing =
            earlier.find(|((_, index), (_, wanted))| entry(*index).as_ref() != Some(wanted));
        missing.map_or(Ok(()), |((_, index), _)| {
            Err(format!(
                "the leader of term {term} of lane {lane} lacks entry {index}"
            ))
        })
    }

    /// Returns the last committed index.
    pub(crate) fn last(&self, lane: u16) -> u64 {
        let mut entries = self.committed.range((lane, 0)..(lane + 1, 0));
        entries.next_back().map_or(0, |((_, index), _)| *index)
    }
}
