//! The input is a list of lines. `+filter` stores a filter, `-filter` removes it, and `?subject` finds the
//! filters that match a subject.

use std::collections::BTreeSet;

use fanline_engine::{Filter, MatchMemo, Matcher, Trie, Vacant};

const LINES_MAX: usize = 200;

#[derive(Default)]
struct Held(Option<Vec<u8>>);

impl Vacant for Held {
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

#[derive(Default)]
struct Tables<'a> {
    trie: Trie<Held>,
    matcher: Matcher,
    /// A naive table, with which the other two are compared.
    stored: BTreeSet<&'a [u8]>,
}

/// Checks that the trie, and the matcher with its cache, find the same filters as a comparison with each
/// filter.
pub fn check(data: &[u8]) {
    let mut tables = Tables::default();
    for line in data.split(|b| *b == b'\n').take(LINES_MAX) {
        let Some((command, path)) = line.split_first() else {
            continue;
        };
        match command {
            b'+' => tables.store(path),
            b'-' => tables.take(path),
            b'?' => tables.ask(path),
            _ => {}
        }
    }
    for path in tables.stored.clone() {
        tables.take(path);
    }
    assert!(tables.trie.is_empty());
}

impl<'a> Tables<'a> {
    fn store(&mut self, path: &'a [u8]) {
        let Ok(filter) = Filter::parse(path) else {
            return;
        };
        let is_new = self.stored.insert(path);
        let node = self.trie.insert(path);
        assert_eq!(self.trie.path(node), path);
        self.trie.value_mut(node).0 = Some(path.to_vec());
        assert_eq!(self.matcher.subscribe(0, path, filter, b""), is_new);
        if is_new {
            assert!(self.matcher.subscribe(1, path, filter, b"group"));
        }
    }

    fn take(&mut self, path: &'a [u8]) {
        let was_there = self.stored.remove(path);
        assert_eq!(self.matcher.unsubscribe(0, path), was_there);
        assert_eq!(self.matcher.unsubscribe(1, path), was_there);
        if was_there {
            let node = self.trie.find(path).expect("it was stored");
            self.trie.value_mut(node).0 = None;
            self.trie.release(node);
        }
    }

    fn ask(&mut self, subject: &'a [u8]) {
        let mut found = BTreeSet::new();
        self.trie.filters_matching(subject, &mut |held: &Held| {
            if let Some(path) = &held.0 {
                assert!(found.insert(path.clone()), "each one is found once");
            }
        });
        let matches = |path: &&&[u8]| Filter::parse(path).is_ok_and(|f| f.matches(subject));
        let expected: BTreeSet<_> = (self.stored.iter())
            .filter(matches)
            .map(|path| path.to_vec())
            .collect();
        assert_eq!(found, expected);
        // The first lookup computes the result, the second one caches it, and the third one finds it in the
        // cache.
        let mut memo = MatchMemo::default();
        for _ in 0..3 {
            let matched = self.matcher.find(subject, &mut memo);
            assert_eq!(matched.subscriptions(), expected.len());
            assert_eq!(matched.groups(), usize::from(!expected.is_empty()));
        }
        self.ask_for_paths(subject);
    }

    /// Finds the stored paths that a filter matches, which is the reverse lookup.
    fn ask_for_paths(&self, filter: &[u8]) {
        let Ok(filter) = Filter::parse(filter) else {
            return;
        };
        let mut found = BTreeSet::new();
        self.trie.subjects_matching(filter, &mut |_, held| {
            if let Some(path) = &held.0 {
                assert!(found.insert(path.clone()), "each one is found once");
            }
        });
        let expected: BTreeSet<_> = (self.stored.iter())
            .filter(|path| filter.matches(path))
            .map(|path| path.to_vec())
            .collect();
        assert_eq!(found, expected);
    }
}
