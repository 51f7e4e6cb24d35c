//! A trie of dot-separated paths, matched in both directions.

use std::hash::{BuildHasher as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use crate::short_bytes::ShortBytes;
use crate::short_hash::{Hashed, ShortHash};
use crate::slack::Slack;
use crate::subject::Filter;

/// A value of a node. The trie removes a node whose value is vacant.
pub trait Vacant: Default {
    /// Returns whether the value is empty.
    fn is_vacant(&self) -> bool;
}

/// The position of a path in a [`Trie`], valid until [`Trie::release`] removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(u32);

/// The comparison of two sets of filters with wildcards exceeded its step limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSteps;

/// Largest number of branches that the search for a deciding prefix follows at once.
const BRANCHES_MAX: usize = 16;

const NONE: NodeId = NodeId(u32::MAX);
const ROOT: NodeId = NodeId(0);

/// A tree of dot-separated paths that is matched both ways: which stored filters match a subject, and which
/// stored subjects match a filter.
///
/// All edges are in one hash table keyed by (parent, token). A node needs no table of its own, and a step
/// down costs one probe. A match visits each node at most once, whatever the filters are.
pub struct Trie<V> {
    nodes: Slab<Node<V>>,
    edges: HashTable<Hashed<NodeId>>,
    hash_builder: DefaultHashBuilder,
    slack: Slack,
}

struct Node<V> {
    token: ShortBytes,
    parent: NodeId,
    first_child: NodeId,
    next_sibling: NodeId,
    previous_sibling: NodeId,
    /// Children `*` and `>`, which a match visits without a probe.
    star: NodeId,
    full: NodeId,
    value: V,
}

impl<V: Vacant> Default for Trie<V> {
    fn default() -> Self {
        let mut nodes = Slab::new();
        nodes.insert(Node::new(ShortBytes::from(&b""[..]), NONE));
        Trie {
            nodes,
            edges: HashTable::new(),
            hash_builder: DefaultHashBuilder::default(),
            slack: Slack::default(),
        }
    }
}

impl<V: Vacant> Node<V> {
    fn new(token: ShortBytes, parent: NodeId) -> Self {
        Node {
            token,
            parent,
            first_child: NONE,
            next_sibling: NONE,
            previous_sibling: NONE,
            star: NONE,
            full: NONE,
            value: V::default(),
        }
    }
}

impl<V: Vacant> Trie<V> {
    /// Returns the number of nodes, including the root.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether no path is stored.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Returns the node of a path, and creates it if necessary. The caller then sets a value that is not
    /// vacant, or calls [`Trie::release`].
    pub fn insert(&mut self, path: &[u8]) -> NodeId {
        let mut at = ROOT;
        for token in path.split(|b| *b == b'.') {
            let hash = self.hash(at, token);
            // A node that was just created has no children to search.
            let has_children = self.node(at).first_child != NONE;
            let child = has_children.then(|| self.child_with(hash, at, token));
            at = match child.flatten() {
                Some(child) => child,
                None => self.add_child(hash, at, token),
            };
        }
        at
    }

    /// Returns the node of a path.
    pub fn find(&self, path: &[u8]) -> Option<NodeId> {
        path.split(|b| *b == b'.')
            .try_fold(ROOT, |at, token| self.child(at, token))
    }

    /// Returns the value of a node.
    pub fn value(&self, id: NodeId) -> &V {
        &self.node(id).value
    }

    /// Returns the value of a node for modification.
    pub fn value_mut(&mut self, id: NodeId) -> &mut V {
        &mut self.node_mut(id).value
    }

    /// Returns the path of a node in a new vector.
    pub fn path(&self, id: NodeId) -> Vec<u8> {
        let mut path = Vec::new();
        self.write_path(id, &mut path);
        path
    }

    /// Replaces the contents of `path` with the path of a node.
    pub fn write_path(&self, id: NodeId, path: &mut Vec<u8>) {
        // Nodes link to their parents only: measure the path first, then fill it from the end.
        let mut bytes = 0;
        let mut at = id;
        while at != ROOT {
            bytes += self.node(at).token.as_slice().len() + 1;
            at = self.node(at).parent;
        }
        path.clear();
        // A dot between any two tokens.
        path.resize(bytes.saturating_sub(1), b'.');
        let mut end = path.len();
        at = id;
        while at != ROOT {
            let token = self.node(at).token.as_slice();
            path[end - token.len()..end].copy_from_slice(token);
            end = (end - token.len()).saturating_sub(1);
            at = self.node(at).parent;
        }
    }

    /// Removes a node that is vacant and has no children. Then does the same with its ancestors.
    pub fn release(&mut self, id: NodeId) {
        let mut at = id;
        while at != ROOT {
            let node = self.node(at);
            if !node.value.is_vacant() || node.first_child != NONE {
                return;
            }
            let parent = node.parent;
            self.remove_leaf(at);
            at = parent;
        }
    }

    /// Calls `found` with the value of each stored filter that matches `subject`. A subject with an empty
    /// token matches no filter.
    pub fn filters_matching<'a>(&'a self, subject: &[u8], found: &mut impl FnMut(&'a V)) {
        if subject.is_empty() || has_empty_token(subject) {
            return;
        }
        self.walk_filters(subject, found);
    }

    /// Returns whether the last token of `subject` can affect which filters match. If the result is false,
    /// all subjects that differ from `subject` only in their last token match the same filters. A subject
    /// with an empty token matches no filter, so the result is true for it.
    pub fn decides_on_last_token(&self, subject: &[u8]) -> bool {
        subject.is_empty() || has_empty_token(subject) || self.walk_to_last(subject)
    }

    /// Returns the length of the shortest prefix, with its final dot, that decides which filters match: all
    /// subjects that continue the prefix match the same filters. Returns `None` if the last token of `subject`
    /// takes part in the decision, or if the subject has an empty token.
    pub(crate) fn deciding_prefix(&self, subject: &[u8]) -> Option<usize> {
        if subject.is_empty() || has_empty_token(subject) {
            return None;
        }
        let (mut at, mut count) = ([ROOT; BRANCHES_MAX], 1);
        let mut rest = subject;
        loop {
            let branches = &at[..count];
            let decides =
                |id: &NodeId| self.children(*id).any(|child| child != self.node(*id).full);
            if !branches.iter().any(decides) {
                return Some(subject.len() - rest.len());
            }
            let (token, below) = split_token(rest);
            rest = below?;
            let children = |id: &NodeId| [self.child(*id, token), some(self.node(*id).star)];
            let mut next = [ROOT; BRANCHES_MAX];
            count = 0;
            for child in branches.iter().flat_map(children).flatten() {
                *next.get_mut(count)? = child;
                count += 1;
            }
            at = next;
        }
    }

    /// Calls `found` with each stored path that `filter` matches. Wildcards in a stored path are plain
    /// characters.
    pub fn subjects_matching(&self, filter: Filter<'_>, found: &mut impl FnMut(NodeId, &V)) {
        let mut steps = vec![(ROOT, Some(filter.as_bytes()))];
        while let Some((at, rest)) = steps.pop() {
            let Some(rest) = rest else {
                found(at, &self.node(at).value);
                continue;
            };
            let (token, below) = split_token(rest);
            match token {
                b">" => self.each_child(at, &mut |child| self.walk_subtree(child, found)),
                b"*" => self.each_child(at, &mut |child| steps.push((child, below))),
                _ => steps.extend(self.child(at, token).map(|child| (child, below))),
            }
        }
    }

    /// Returns the value of a stored filter that overlaps `filter` and that `is_wanted` accepts. Each visited
    /// node costs one of `steps`: with wildcards on both sides, there can be many more steps than filters.
    ///
    /// # Errors
    ///
    /// The step limit was reached before the result was known.
    pub fn overlapping(
        &self,
        filter: Filter<'_>,
        steps: &mut usize,
        is_wanted: impl Fn(&V) -> bool,
    ) -> Result<Option<&V>, OutOfSteps> {
        let mut later = vec![(ROOT, filter.as_bytes())];
        while let Some((at, rest)) = later.pop() {
            let node = self.node(at);
            let (token, below) = split_token(rest);
            // `>` also matches further tokens.
            let below = if token == b">" { Some(rest) } else { below };
            let mut all;
            let mut named;
            let ways: &mut dyn Iterator<Item = NodeId> = match token {
                b"*" | b">" => {
                    all = self.children(at);
                    &mut all
                }
                _ => {
                    let literal = self.child(at, token);
                    named = [literal, some(node.star), some(node.full)]
                        .into_iter()
                        .flatten();
                    &mut named
                }
            };
            for child in ways {
                *steps = steps.checked_sub(1).ok_or(OutOfSteps)?;
                let ends = below.is_none() || token == b">" || child == node.full;
                let value = &self.node(child).value;
                if ends && !value.is_vacant() && is_wanted(value) {
                    return Ok(Some(value));
                }
                if let Some(below) = below
                    && child != node.full
                {
                    later.push((child, below));
                }
            }
        }
        Ok(None)
    }

    // Walks use a stack of their own. An MQTT subject may have 65,536 levels, and recursion that deep
    // overflows the thread's stack. The walk's stack stays empty, without an allocation, as long as no two
    // branches match.

    fn walk_filters<'a>(&'a self, subject: &[u8], found: &mut impl FnMut(&'a V)) {
        let mut later = Vec::new();
        let (mut at, mut rest) = (ROOT, subject);
        loop {
            let node = self.node(at);
            if node.full != NONE {
                found(&self.node(node.full).value);
            }
            let (token, below) = split_token(rest);
            // A subject may contain `*` or `>` as plain characters, but the nodes `*` and `>` are wildcards.
            let literal = self
                .child(at, token)
                .filter(|c| *c != node.star && *c != node.full);
            let star = some(node.star);
            let next = match below {
                Some(below) => fork(literal, star, below, &mut later),
                None => {
                    for child in [literal, star].into_iter().flatten() {
                        found(&self.node(child).value);
                    }
                    None
                }
            };
            match next.or_else(|| later.pop()) {
                Some(next) => (at, rest) = next,
                None => return,
            }
        }
    }

    fn walk_to_last(&self, subject: &[u8]) -> bool {
        let mut later = Vec::new();
        let (mut at, mut rest) = (ROOT, subject);
        loop {
            let node = self.node(at);
            let is_literal = |child: &NodeId| *child != node.star && *child != node.full;
            let (token, below) = split_token(rest);
            let next = match below {
                None if self.children(at).any(|child| is_literal(&child)) => return true,
                None => None,
                Some(below) => {
                    let literal = self.child(at, token).filter(is_literal);
                    fork(literal, some(node.star), below, &mut later)
                }
            };
            match next.or_else(|| later.pop()) {
                Some(next) => (at, rest) = next,
                None => return false,
            }
        }
    }

    fn children(&self, at: NodeId) -> impl Iterator<Item = NodeId> {
        let first = some(self.node(at).first_child);
        std::iter::successors(first, |child| some(self.node(*child).next_sibling))
    }

    fn walk_subtree(&self, at: NodeId, found: &mut impl FnMut(NodeId, &V)) {
        let mut stack = vec![at];
        while let Some(at) = stack.pop() {
            found(at, &self.node(at).value);
            self.each_child(at, &mut |child| stack.push(child));
        }
    }

    fn each_child(&self, at: NodeId, visit: &mut dyn FnMut(NodeId)) {
        self.children(at).for_each(visit);
    }

    fn child(&self, parent: NodeId, token: &[u8]) -> Option<NodeId> {
        self.child_with(self.hash(parent, token), parent, token)
    }

    fn child_with(&self, hash: ShortHash, parent: NodeId, token: &[u8]) -> Option<NodeId> {
        let same = |edge: &Hashed<NodeId>| {
            let is_node = |node: &Node<V>| node.parent == parent && node.token.as_slice() == token;
            edge.hash == hash && is_node(self.node(edge.index))
        };
        (self.edges.find(hash.spread(), same)).map(|edge| edge.index)
    }

    fn add_child(&mut self, hash: ShortHash, parent: NodeId, token: &[u8]) -> NodeId {
        let mut node = Node::new(ShortBytes::from(token), parent);
        node.next_sibling = self.node(parent).first_child;
        let next = node.next_sibling;
        let id = NodeId(u32::try_from(self.nodes.insert(node)).expect("fewer than 2^32 nodes"));
        if next != NONE {
            self.node_mut(next).previous_sibling = id;
        }
        let above = self.node_mut(parent);
        above.first_child = id;
        match token {
            b"*" => above.star = id,
            b">" => above.full = id,
            _ => {}
        }
        let edge = Hashed { index: id, hash };
        self.edges
            .insert_unique(hash.spread(), edge, Hashed::spread);
        id
    }

    fn remove_leaf(&mut self, id: NodeId) {
        let node = self.nodes.remove(id.0 as usize);
        let hash = self.hash(node.parent, node.token.as_slice());
        if let Ok(entry) = (self.edges).find_entry(hash.spread(), |edge| edge.index == id) {
            entry.remove();
        }
        if node.next_sibling != NONE {
            self.node_mut(node.next_sibling).previous_sibling = node.previous_sibling;
        }
        if node.previous_sibling != NONE {
            self.node_mut(node.previous_sibling).next_sibling = node.next_sibling;
        } else {
            self.node_mut(node.parent).first_child = node.next_sibling;
        }
        let above = self.node_mut(node.parent);
        if above.star == id {
            above.star = NONE;
        }
        if above.full == id {
            above.full = NONE;
        }
        if (self.slack).is_due(self.nodes.len(), self.nodes.capacity()) {
            self.shrink();
        }
    }

    /// Releases capacity that is no longer needed, if an earlier removal postponed it.
    pub(crate) fn trim(&mut self) {
        if (self.slack).is_due_now(self.nodes.len(), self.nodes.capacity()) {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.edges.shrink_to(self.nodes.len(), Hashed::spread);
    }

    fn hash(&self, parent: NodeId, token: &[u8]) -> ShortHash {
        let mut hasher = self.hash_builder.build_hasher();
        hasher.write_u32(parent.0);
        hasher.write(token);
        ShortHash::of(&hasher)
    }

    fn node(&self, id: NodeId) -> &Node<V> {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node<V> {
        &mut self.nodes[id.0 as usize]
    }
}

/// Returns one of two branches, with the rest of the subject. If both branches exist, pushes the second one
/// to `later`.
fn fork<'t>(
    literal: Option<NodeId>,
    star: Option<NodeId>,
    rest: &'t [u8],
    later: &mut Vec<(NodeId, &'t [u8])>,
) -> Option<(NodeId, &'t [u8])> {
    if literal.is_some()
        && let Some(star) = star
    {
        later.push((star, rest));
    }
    literal.or(star).map(|child| (child, rest))
}

fn some(id: NodeId) -> Option<NodeId> {
    (id != NONE).then_some(id)
}

fn split_token(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|b| *b == b'.') {
        Some(dot) => (&path[..dot], Some(&path[dot + 1..])),
        None => (path, None),
    }
}

pub(crate) fn has_empty_token(subject: &[u8]) -> bool {
    /// Lowest seven bits of each byte.
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    const DOTS: u64 = u64::from_le_bytes([b'.'; 8]);
    let (chunks, rest) = subject.as_chunks::<8>();
    // The highest bit of the byte before the next one, if that byte is a dot. A dot at the start counts as a pair.
    let mut before = 0x80;
    for chunk in chunks {
        // The highest bit of each byte that is zero, which is a dot in the subject.
        let other = u64::from_le_bytes(*chunk) ^ DOTS;
        let dots = !(((other & LOW) + LOW) | other | LOW);
        if dots & ((dots << 8) | before) != 0 {
            return true;
        }
        before = dots >> 56;
    }
    let mut is_after_dot = before != 0;
    for byte in rest {
        let is_dot = *byte == b'.';
        if is_dot && is_after_dot {
            return true;
        }
        is_after_dot = is_dot;
    }
    is_after_dot
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::auth::overlap;

    #[derive(Default)]
    struct Value(Option<Vec<u8>>);

    impl Vacant for Value {
        fn is_vacant(&self) -> bool {
            self.0.is_none()
        }
    }

    fn put(trie: &mut Trie<Value>, path: &str) {
        let id = trie.insert(path.as_bytes());
        trie.value_mut(id).0 = Some(path.as_bytes().to_vec());
    }

    fn take(trie: &mut Trie<Value>, path: &str) {
        let id = trie.find(path.as_bytes()).unwrap();
        trie.value_mut(id).0 = None;
        trie.release(id);
    }

    fn path() -> impl Strategy<Value = String> {
        // Few distinct tokens, so that paths share prefixes and wildcards overlap.
        let token = prop::sample::select(vec!["a", "b", "c", "*", "aa"]);
        let end = prop::sample::select(vec!["", ".>"]);
        (prop::collection::vec(token, 1..5), end).prop_map(|(t, end)| t.join(".") + end)
    }

    /// MQTT clients choose the number of levels of their subjects, up to 65,536. A match that recurses per
    /// level overflows the stack and aborts the server.
    #[test]
    fn deep_paths_do_not_overflow_the_stack() {
        const TOKENS: usize = 200_000;
        let (subject, stars) = (vec!["a"; TOKENS].join("."), vec!["*"; TOKENS].join("."));
        let mut trie = Trie::<Value>::default();
        put(&mut trie, &subject);
        put(&mut trie, &stars);
        let mut found = 0;
        trie.filters_matching(subject.as_bytes(), &mut |v: &Value| {
            found += usize::from(v.0.is_some());
        });
        assert_eq!(found, 2);
        assert!(trie.decides_on_last_token(subject.as_bytes()));
        let mut found = 0;
        let filter = Filter::parse(stars.as_bytes()).unwrap();
        trie.subjects_matching(filter, &mut |_, v| found += usize::from(v.0.is_some()));
        assert_eq!(found, 2);
        take(&mut trie, &subject);
        take(&mut trie, &stars);
        assert!(trie.is_empty());
    }

    /// Two sets of 10,000 filters that do not overlap. Each filter of one set is compared with the first
    /// tokens of all filters of the other set.
    #[test]
    fn overlapping_stops_at_the_step_limit() {
        let mut trie = Trie::<Value>::default();
        for n in 0..10_000 {
            put(&mut trie, &format!("a{n}.x"));
        }
        let mut steps = 25_000;
        let mut ask = |filter: &str| {
            let filter = Filter::parse(filter.as_bytes()).unwrap();
            let found = trie.overlapping(filter, &mut steps, |_| true);
            found.map(|found| found.is_some())
        };
        assert_eq!(ask("*.y"), Ok(false));
        assert_eq!(ask("a7.*"), Ok(true));
        assert_eq!(ask("a7.y"), Ok(false));
        assert_eq!(ask("*.y"), Ok(false));
        assert_eq!(ask("*.y"), Err(OutOfSteps));
    }

    proptest! {
        #[test]
        fn empty_tokens_are_found(subject in "[.a/]{1,30}") {
            let expected = subject.split('.').any(str::is_empty);
            prop_assert_eq!(has_empty_token(subject.as_bytes()), expected);
        }

        #[test]
        fn agrees_with_the_naive_matcher(
            stored in prop::collection::btree_set(path(), 0..40),
            removed in prop::collection::vec(path(), 0..20),
            asked in prop::collection::vec(path(), 1..20),
        ) {
            let mut trie = Trie::<Value>::default();
            let mut model = BTreeSet::new();
            for p in &stored { put(&mut trie, p); model.insert(p.clone()); }
            for p in &removed { if model.remove(p) { take(&mut trie, p); } }
            for question in &asked {
                let mut found = BTreeSet::new();
                trie.filters_matching(question.as_bytes(), &mut |v: &Value| {
                    // Inner nodes have a vacant value, because no path ends there.
                    if let Some(p) = &v.0 { assert!(found.insert(p.clone())); }
                });
                let expected: BTreeSet<_> = model.iter().map(|p| p.as_bytes().to_vec())
                    .filter(|p| Filter::parse(p).unwrap().matches(question.as_bytes())).collect();
                prop_assert_eq!(&found, &expected);

                if let Some(prefix) = trie.deciding_prefix(question.as_bytes()) {
                    for rest in ["a", "b.c", "*.aa", "new.token.a"] {
                        let sibling = format!("{}{rest}", &question[..prefix]);
                        let mut same = BTreeSet::new();
                        trie.filters_matching(sibling.as_bytes(), &mut |v: &Value| {
                            same.extend(v.0.clone());
                        });
                        prop_assert_eq!(&same, &expected);
                    }
                }

                let filter = Filter::parse(question.as_bytes()).unwrap();
                let mut found = BTreeSet::new();
                trie.subjects_matching(filter, &mut |_, v| {
                    if let Some(p) = &v.0 { assert!(found.insert(p.clone())); }
                });
                let expected: BTreeSet<_> = model.iter().map(|p| p.as_bytes().to_vec())
                    .filter(|p| filter.matches(p)).collect();
                prop_assert_eq!(found, expected);

                // `overlapping` must agree with `overlap` about the wanted filters: those of more than two
                // bytes.
                let mut steps = 10_000;
                let is_wanted = |v: &Value| v.0.as_ref().is_some_and(|p| p.len() > 2);
                let found = trie.overlapping(filter, &mut steps, is_wanted).unwrap();
                let expected = model.iter().any(|p| p.len() > 2 && overlap(p, question));
                prop_assert_eq!(found.is_some(), expected);
                if let Some(Value(Some(p))) = found {
                    prop_assert!(overlap(std::str::from_utf8(p).unwrap(), question));
                }
            }
            for p in &model { take(&mut trie, p); }
            prop_assert!(trie.is_empty());
            prop_assert_eq!(trie.edges.len(), 0);
        }
    }
}
