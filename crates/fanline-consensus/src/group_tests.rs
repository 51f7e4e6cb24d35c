//! Single rules of a group, with syncs and messages by hand, for each implementation of the interface.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::port::{
    Entry, Group, Members, MessageError, NodeId, Output, Refused, Settings, Stored, Token,
};
use crate::wal::Vote;

/// Nodes that receive each other's messages at once. Syncs are finished at once, except at `slow` nodes.
struct Cluster<G> {
    groups: BTreeMap<NodeId, G>,
    now: Duration,
    slow: Vec<NodeId>,
    /// Nodes whose messages are lost.
    cut: Vec<NodeId>,
    stored: BTreeMap<NodeId, Stored>,
    committed: BTreeMap<NodeId, u64>,
    needs_snapshot: Vec<NodeId>,
    reads: Vec<(u64, u64)>,
}

fn settings(node: NodeId) -> Settings {
    Settings {
        node,
        heartbeat: Duration::from_millis(50),
        election: Duration::from_millis(200),
        seed: node * 7919,
        peer_bytes_max: 1000,
        uncommitted_bytes_max: 5000,
    }
}

impl<G: Group> Cluster<G> {
    fn of(nodes: &[NodeId]) -> Self {
        let mut cluster = Cluster {
            groups: BTreeMap::new(),
            now: Duration::ZERO,
            slow: Vec::new(),
            cut: Vec::new(),
            stored: BTreeMap::new(),
            committed: BTreeMap::new(),
            needs_snapshot: Vec::new(),
            reads: Vec::new(),
        };
        for node in nodes {
            cluster.add(*node, nodes);
        }
        cluster
    }

    fn add(&mut self, node: NodeId, founders: &[NodeId]) {
        let stored = self.stored.entry(node).or_default().clone();
        let group = G::start(settings(node), founders, stored, self.now).unwrap();
        self.groups.insert(node, group);
    }

    fn leader(&self) -> Option<NodeId> {
        let mut leaders = self.groups.iter().filter(|(_, group)| group.is_leader());
        leaders.next().map(|(node, _)| *node)
    }

    fn group(&mut self, node: NodeId) -> &mut G {
        self.groups.get_mut(&node).unwrap()
    }

    /// Lets messages pass until there are none.
    fn settle(&mut self) {
        let nodes: Vec<_> = self.groups.keys().copied().collect();
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for node in &nodes {
                while let Some(output) = self.group(*node).poll_output() {
                    is_busy = true;
                    self.handle(*node, output);
                }
            }
        }
    }

    fn handle(&mut self, node: NodeId, output: Output) {
        let stored = self.stored.entry(node).or_default();
        let mut done = None;
        match output {
            Output::Vote {
                term,
                voted_for,
                token,
            } => {
                stored.vote = Vote { term, voted_for };
                done = Some(token);
            }
            Output::Append {
                index,
                bytes,
                token,
                ..
            } => {
                stored
                    .entries
                    .truncate(usize::try_from(index - stored.floor.0 - 1).unwrap());
                stored.entries.push(bytes);
                done = Some(token);
            }
            Output::Compact {
                index,
                term,
                note,
                token,
            } => {
                let count = usize::try_from(index - stored.floor.0).unwrap();
                stored.entries.drain(..count.min(stored.entries.len()));
                (stored.floor, stored.note) = ((index, term), note);
                done = Some(token);
            }
            Output::Send { to, bytes } => {
                let is_cut = self.cut.contains(&node) || self.cut.contains(&to);
                if let Some(group) = self.groups.get_mut(&to).filter(|_| !is_cut) {
                    group.deliver(node, &bytes).unwrap();
                }
            }
            Output::Commit { index } => {
                self.committed.insert(node, index);
            }
            Output::NeedSnapshot { peer } => self.needs_snapshot.push(peer),
            Output::Read { id, index } => self.reads.push((id, index)),
            Output::Leader { .. } => {}
        }
        if let Some(token) = done.filter(|_| !self.slow.contains(&node)) {
            self.group(node).synced(token);
        }
    }

    fn pass(&mut self, millis: u64) {
        for _ in 0..millis / 10 {
            self.now += Duration::from_millis(10);
            for group in self.groups.values_mut() {
                group.tick(self.now);
            }
            self.settle();
        }
    }

    fn elect(&mut self) -> NodeId {
        self.pass(1000);
        self.leader().expect("a leader within a second")
    }

    fn committed(&self, node: NodeId) -> u64 {
        self.committed.get(&node).copied().unwrap_or(0)
    }
}

/// Makes a module of tests for an implementation.
macro_rules! tests_of {
    ($name:ident, $group:ty, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(
                #[test]
                fn $test() {
                    super::$test::<$group>();
                }
            )*
        }
    };
}

macro_rules! all_tests_of {
    ($name:ident, $group:ty) => {
        tests_of!(
            $name,
            $group,
            [
                leader_counts_itself_only_after_its_own_sync,
                leader_with_a_full_disk_hands_over_and_follows_later,
                leader_with_slow_syncs_hands_over,
                single_voter_commits_after_its_sync,
                follower_without_a_sync_does_not_count,
                vote_leaves_after_its_sync,
                leader_without_contact_refuses_and_another_one_is_elected,
                clock_that_goes_back_does_not_stop_a_group,
                cut_off_node_does_not_disturb_the_leader,
                leader_without_contact_leads_on_if_no_other_can,
                transfer_makes_another_voter_the_leader_at_once,
                new_voter_is_a_learner_first,
                founder_that_lost_its_disk_returns_as_another_member,
                leader_that_removed_itself_does_not_prevent_an_election,
                learner_does_not_count,
                entries_in_flight_and_uncommitted_ones_have_a_limit,
                read_waits_for_a_majority_that_knows_no_later_term,
                node_behind_the_floor_gets_a_snapshot,
                restarted_nodes_continue,
                invalid_messages_are_refused_and_have_no_effect,
            ]
        );
    };
}

all_tests_of!(noraft, crate::noraft_group::NoraftGroup);
#[cfg(feature = "openraft")]
all_tests_of!(openraft, crate::openraft_group::OpenraftGroup);

fn leader_counts_itself_only_after_its_own_sync<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let before = cluster.committed(leader);
    cluster.slow = vec![leader];
    let index = cluster.group(leader).propose(b"order").unwrap();
    cluster.pass(100);
    assert_eq!(cluster.group(leader).last().0, index);
    assert_eq!(
        cluster.committed(leader),
        before,
        "two followers have it, the leader does not"
    );
    cluster.group(leader).synced(Token(u64::MAX));
    cluster.pass(100);
    assert!(
        (1..=3).all(|node| cluster.committed(node) == index),
        "{:?}",
        cluster.committed
    );
    assert_eq!(
        cluster.group(2).entry(index),
        Some(Entry::Command(b"order"))
    );
}

fn leader_with_a_full_disk_hands_over_and_follows_later<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let old = cluster.elect();
    let term = cluster.group(old).term();
    cluster.group(old).set_writable(false);
    assert_eq!(cluster.group(old).propose(b"x"), Err(Refused::NotLeader));
    cluster.settle();
    let new = cluster.leader().expect("another leader at once");
    assert_ne!(new, old);
    let last = cluster.group(old).last();
    let index = cluster.group(new).propose(b"x").unwrap();
    cluster.pass(1000);
    assert_eq!(cluster.committed(new), index);
    assert_eq!(
        (cluster.group(old).term(), cluster.group(old).last()),
        (term, last),
        "it has nothing to write"
    );

    cluster.group(old).set_writable(true);
    cluster.pass(1000);
    assert_eq!(
        (cluster.leader(), cluster.committed(old)),
        (Some(new), index)
    );
}

fn leader_with_slow_syncs_hands_over<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let old = cluster.elect();
    cluster.slow = vec![old];
    cluster.group(old).propose(b"x").unwrap();
    cluster.pass(100);
    assert_eq!(cluster.leader(), Some(old));
    cluster.pass(200);
    assert!(cluster.leader().is_some_and(|new| new != old));
}

fn single_voter_commits_after_its_sync<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1]);
    let leader = cluster.elect();
    cluster.slow = vec![1];
    let index = cluster.group(leader).propose(b"x").unwrap();
    cluster.settle();
    assert!(cluster.committed(1) < index);
    cluster.group(1).synced(Token(u64::MAX));
    cluster.settle();
    assert_eq!(cluster.committed(1), index);
}

fn follower_without_a_sync_does_not_count<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let before = cluster.committed(leader);
    cluster.slow = (1..=3).filter(|node| *node != leader).collect();
    cluster.group(leader).propose(b"x").unwrap();
    cluster.pass(100);
    assert_eq!(cluster.committed(leader), before);
}

fn vote_leaves_after_its_sync<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    cluster.slow = vec![1, 2, 3];
    cluster.pass(2000);
    assert_eq!(cluster.leader(), None, "nobody's vote is synced");
}

fn leader_without_contact_refuses_and_another_one_is_elected<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let old = cluster.elect();
    let term = cluster.group(old).term();
    cluster.cut = vec![old];
    cluster.pass(300);
    assert_eq!(cluster.group(old).propose(b"x"), Err(Refused::NotLeader));
    let new = cluster.elect();
    assert_ne!(new, old);
    assert!(cluster.group(new).term() > term);

    // Pre-vote: the old leader returns without raising the term.
    let term = cluster.group(new).term();
    cluster.cut.clear();
    cluster.pass(1000);
    assert_eq!(
        (cluster.leader(), cluster.group(old).term()),
        (Some(new), term)
    );
}

fn clock_that_goes_back_does_not_stop_a_group<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    cluster.now = Duration::from_hours(1);
    let old = cluster.elect();
    cluster.now = Duration::ZERO;
    cluster.cut = vec![old];
    cluster.pass(1000);
    assert!(!cluster.group(old).is_leader());
    let new = cluster.elect();
    assert_ne!(new, old);
}

fn cut_off_node_does_not_disturb_the_leader<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let term = cluster.group(leader).term();
    let other = if leader == 1 { 2 } else { 1 };
    cluster.cut = vec![other];
    cluster.pass(3000);
    cluster.cut.clear();
    cluster.pass(1000);
    assert_eq!(
        (cluster.leader(), cluster.group(leader).term()),
        (Some(leader), term)
    );
}

/// Two nodes are left: a leader without contact for a while, and a follower that lacks its last entry. The leader
/// sent nothing, and refused the follower its vote.
fn leader_without_contact_leads_on_if_no_other_can<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let others: Vec<_> = (1..=3).filter(|node| *node != leader).collect();
    cluster.cut = others.clone();
    let index = cluster.group(leader).propose(b"x").unwrap();
    cluster.pass(1000);
    assert_eq!(cluster.leader(), None);
    cluster.cut = vec![others[0]];
    assert_eq!(cluster.elect(), leader);
    assert!(cluster.committed(others[1]) >= index);
}

fn transfer_makes_another_voter_the_leader_at_once<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let other = if leader == 1 { 2 } else { 1 };
    cluster.group(leader).transfer(other).unwrap();
    cluster.settle();
    assert!(cluster.group(other).is_leader());
    assert_eq!(cluster.group(other).transfer(9), Err(Refused::Behind(9)));
}

fn new_voter_is_a_learner_first<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    cluster.add(4, &[]);
    let leader = cluster.elect();
    let with = |voters: &[NodeId], learners: &[NodeId]| Members {
        voters: voters.to_vec(),
        learners: learners.to_vec(),
    };
    let group = cluster.group(leader);
    assert_eq!(
        group.change_members(&with(&[], &[])),
        Err(Refused::NoVoters)
    );
    assert_eq!(
        group.change_members(&with(&[1, 2, 3, 4], &[])),
        Err(Refused::Behind(4))
    );
    group.change_members(&with(&[1, 2, 3], &[4])).unwrap();
    assert_eq!(
        group.change_members(&with(&[1, 2, 3], &[])),
        Err(Refused::Pending)
    );
    cluster.pass(100);
    assert_eq!(cluster.committed(4), cluster.committed(leader));
    cluster
        .group(leader)
        .change_members(&with(&[1, 2, 3, 4], &[]))
        .unwrap();
    cluster.pass(100);
    assert_eq!(cluster.group(4).members(), with(&[1, 2, 3, 4], &[]));
}

fn founder_that_lost_its_disk_returns_as_another_member<G: Group>() {
    let founders = [1, 2, 3];
    let mut cluster = Cluster::<G>::of(&founders);
    let leader = cluster.elect();
    let lost = if leader == 1 { 2 } else { 1 };
    cluster.group(leader).propose(b"x").unwrap();
    cluster.settle();
    cluster.groups.remove(&lost);
    cluster.add(lost + 10, &founders);
    cluster.pass(2000);
    assert_eq!(cluster.group(lost + 10).members(), Members::default());
    assert_eq!(cluster.group(lost + 10).term(), 0, "no election");

    let mut members = cluster.group(leader).members();
    members.learners.push(lost + 10);
    cluster.group(leader).change_members(&members).unwrap();
    cluster.pass(200);
    members.voters.retain(|node| *node != lost);
    members.voters.append(&mut members.learners);
    cluster.group(leader).change_members(&members).unwrap();
    cluster.pass(200);
    members.voters.sort_unstable();
    assert_eq!(cluster.group(lost + 10).members(), members);
    assert_eq!(cluster.committed(lost + 10), cluster.committed(leader));
}

/// A leader removed itself and restarted before the others had the entry that did. One of the others is gone; the rest
/// needs this node's vote, and lacks its last entry.
fn leader_that_removed_itself_does_not_prevent_an_election<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3, 4]);
    let leader = cluster.elect();
    let mut members = cluster.group(leader).members();
    members.voters.retain(|node| *node != leader);
    let others = members.voters.clone();
    let before = cluster.group(leader).last().0;
    cluster.group(leader).change_members(&members).unwrap();
    while cluster.group(leader).last().0 < before + 2 {
        for node in 1..=4 {
            if let Some(output) = cluster.group(node).poll_output() {
                cluster.handle(node, output);
            }
        }
    }
    cluster.cut = others.clone();
    cluster.settle();
    assert_eq!(cluster.stored[&leader].entries.len() as u64, before + 2);
    assert_eq!(cluster.group(others[1]).last().0, before + 1);
    cluster.add(leader, &[1, 2, 3, 4]);
    cluster.groups.remove(&others[0]);
    cluster.cut.clear();
    cluster.pass(3000);
    let new = cluster.leader().expect("the change is completed");
    assert_eq!(cluster.group(new).members().voters, others);
}

fn learner_does_not_count<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    cluster.add(4, &[]);
    let leader = cluster.elect();
    let members = Members {
        voters: vec![1, 2, 3],
        learners: vec![4],
    };
    cluster.group(leader).change_members(&members).unwrap();
    cluster.pass(100);
    let before = cluster.committed(leader);
    cluster.slow = (1..=3).filter(|node| *node != leader).collect();
    let index = cluster.group(leader).propose(b"x").unwrap();
    cluster.pass(100);
    assert_eq!(cluster.group(4).last().0, index);
    assert_eq!(
        cluster.committed(leader),
        before,
        "the leader and the learner have it"
    );
}

fn entries_in_flight_and_uncommitted_ones_have_a_limit<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let first = cluster.committed(leader) + 1;
    let mut count = 0;
    while cluster.group(leader).propose(&[7; 99]).is_ok() {
        count += 1;
    }
    assert_eq!(count, 50);
    assert_eq!(cluster.group(leader).propose(&[7; 99]), Err(Refused::Busy));
    let mut sent = BTreeMap::new();
    let mut others = Vec::new();
    while let Some(output) = cluster.group(leader).poll_output() {
        match output {
            Output::Send { to, bytes } => *sent.entry(to).or_insert(0) += bytes.len() / 100,
            other => others.push(other),
        }
    }
    // openraft sends the first entry, and then waits for the answer.
    assert!(
        sent.values().all(|entries| (1..20).contains(entries)),
        "{sent:?}"
    );

    // The messages are lost.
    for output in others {
        cluster.handle(leader, output);
    }
    cluster.pass(500);
    assert_eq!(cluster.committed(leader), first + 49);
    cluster.group(leader).propose(&[7; 99]).unwrap();
    let too_long = vec![0; crate::wal::limits::ENTRY_BYTES_MAX];
    let result = cluster.group(leader).propose(&too_long);
    assert_eq!(result, Err(Refused::TooLong));
}

fn read_waits_for_a_majority_that_knows_no_later_term<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let index = cluster.committed(leader);
    let read = cluster.group(leader).read().unwrap();
    assert_eq!(cluster.group(leader).read(), Ok(read + 1));
    cluster.settle();
    assert_eq!(cluster.reads, [(read, index), (read + 1, index)]);
    let other = if leader == 1 { 2 } else { 1 };
    assert_eq!(cluster.group(other).read(), Err(Refused::NotLeader));

    // The others elect a leader, of which the old one does not know.
    cluster.cut = vec![leader];
    let old = cluster.groups.remove(&leader).unwrap();
    cluster.elect();
    cluster.groups.insert(leader, old);
    cluster.cut.clear();
    cluster.reads.clear();
    assert!(cluster.group(leader).is_leader());
    cluster.group(leader).read().unwrap();
    cluster.pass(500);
    assert_eq!(cluster.reads, []);

    // A single voter needs no others.
    let mut cluster = Cluster::<G>::of(&[1]);
    cluster.elect();
    cluster.group(1).read().unwrap();
    cluster.settle();
    assert_eq!(cluster.reads, [(1, 1)]);
}

fn node_behind_the_floor_gets_a_snapshot<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let behind = if leader == 1 { 2 } else { 1 };
    cluster.cut = vec![behind];
    for _ in 0..5 {
        cluster.group(leader).propose(b"x").unwrap();
        cluster.settle();
    }
    let index = cluster.committed(leader);
    assert!(!cluster.group(leader).compact(index + 1), "not committed");
    assert!(cluster.group(leader).compact(index));
    assert!(!cluster.group(leader).compact(index), "again");
    cluster.settle();
    let stored = cluster.stored[&leader].clone();
    let (term, note) = (stored.floor.1, stored.note);
    assert_eq!(cluster.group(leader).entry(index), None);
    cluster.cut.clear();
    cluster.pass(200);
    assert!(cluster.needs_snapshot.contains(&behind));
    assert!(cluster.group(behind).install(index, term, &note));
    assert!(
        !cluster.group(behind).install(index, term, &note),
        "it has it already"
    );
    let index = cluster.group(leader).propose(b"after").unwrap();
    cluster.pass(200);
    assert_eq!(cluster.committed(behind), index);
    assert_eq!(
        cluster.group(behind).entry(index),
        Some(Entry::Command(b"after"))
    );

    // The note has the members.
    cluster.add(behind, &[]);
    assert_eq!(cluster.group(behind).members().voters, [1, 2, 3]);
    assert_eq!(cluster.group(behind).last().0, index);
}

fn restarted_nodes_continue<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let index = cluster.group(leader).propose(b"before").unwrap();
    cluster.settle();
    let term = cluster.group(leader).term();
    for node in 1..=3 {
        cluster.add(node, &[1, 2, 3]);
    }
    let leader = cluster.elect();
    assert!(cluster.group(leader).term() > term);
    assert!(cluster.committed(leader) > index);
    assert_eq!(
        cluster.group(3).entry(index),
        Some(Entry::Command(b"before"))
    );
}

fn invalid_messages_are_refused_and_have_no_effect<G: Group>() {
    let mut cluster = Cluster::<G>::of(&[1, 2, 3]);
    let leader = cluster.elect();
    let mut messages = Vec::new();
    cluster.group(leader).propose(b"order").unwrap();
    while let Some(output) = cluster.group(leader).poll_output() {
        if let Output::Send { to, bytes } = output {
            messages.push((to, bytes));
        }
    }
    let (to, message) = messages.pop().unwrap();
    let last = cluster.group(to).last();
    for length in 0..message.len() {
        let result = cluster.group(to).deliver(leader, &message[..length]);
        assert_eq!(result, Err(MessageError::Malformed), "{length} bytes");
    }
    for byte in [0, 1] {
        let mut wrong = message.clone();
        wrong[byte] = 99;
        assert_eq!(
            cluster.group(to).deliver(leader, &wrong),
            Err(MessageError::Malformed)
        );
    }
    assert_eq!(cluster.group(to).last(), last);
    cluster.group(to).deliver(leader, &message).unwrap();
    assert_eq!(cluster.group(to).last().0, last.0 + 1);
}

/// Entries, votes, and notes do not depend on the implementation: all nodes together may change to the other one.
#[cfg(feature = "openraft")]
#[test]
fn each_implementation_continues_a_group_of_the_other() {
    fn continue_group<A: Group, B: Group>() {
        let mut before = Cluster::<A>::of(&[1, 2, 3]);
        before.add(4, &[]);
        let leader = before.elect();
        let compacted = before.group(leader).propose(b"before").unwrap();
        before.settle();
        let mut members = before.group(leader).members();
        members.learners.push(4);
        before.group(leader).change_members(&members).unwrap();
        before.pass(1000);
        let index = before.group(leader).propose(b"more").unwrap();
        before.pass(1000);
        assert_eq!(before.committed(4), index);
        assert!(before.group(leader).compact(compacted));
        before.pass(1000);

        let mut after = Cluster::<B>::of(&[]);
        after.stored = before.stored;
        for node in 1..=4 {
            after.add(node, &[1, 2, 3]);
        }
        let leader = after.elect();
        assert_eq!(after.group(leader).members(), members);
        assert_eq!(
            after.group(leader).entry(index),
            Some(Entry::Command(b"more"))
        );
        let index = after.group(leader).propose(b"after").unwrap();
        after.pass(1000);
        assert!((1..=4).all(|node| after.committed(node) == index));
    }
    use crate::{noraft_group::NoraftGroup, openraft_group::OpenraftGroup};
    continue_group::<NoraftGroup, OpenraftGroup>();
    continue_group::<OpenraftGroup, NoraftGroup>();
}
