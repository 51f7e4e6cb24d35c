//! Subject mappings of an account.

use crate::auth::Mapping;
use crate::random::FastRandom;
use crate::subject::trie::{Trie, Vacant};

/// The mappings of one account, found by subject.
pub(super) struct Mappings {
    all: Vec<Mapping>,
    by_source: Trie<First>,
}

/// Index of the first mapping with a certain source. The first mapping takes precedence over later ones.
#[derive(Default)]
struct First(Option<usize>);

impl Vacant for First {
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

/// The result of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapped {
    Unchanged,
    /// The subject was replaced.
    Renamed,
    /// The message is dropped.
    Lost,
}

impl Mappings {
    /// Creates the mappings of an account. Returns `None` if the account has no mappings.
    pub(super) fn new(mappings: &[Mapping]) -> Option<Box<Self>> {
        let mut by_source: Trie<First> = Trie::default();
        for (at, mapping) in mappings.iter().enumerate() {
            let node = by_source.insert(mapping.source().as_bytes());
            by_source.value_mut(node).0.get_or_insert(at);
        }
        let all = mappings.to_vec();
        (!all.is_empty()).then(|| Box::new(Mappings { all, by_source }))
    }

    /// Maps a subject. Writes the new subject to `made`.
    pub(super) fn apply(
        &self,
        subject: &[u8],
        random: &mut FastRandom,
        made: &mut Vec<u8>,
    ) -> Mapped {
        let mut first: Option<usize> = None;
        self.by_source.filters_matching(subject, &mut |found| {
            first = first.into_iter().chain(found.0).min();
        });
        let Some(mapping) = first.map(|at| &self.all[at]) else {
            return Mapped::Unchanged;
        };
        // This server is in no cluster, so destinations for a named cluster do not apply.
        let destinations = || {
            mapping
                .destinations()
                .iter()
                .filter(|d| d.cluster.is_none())
        };
        let mut ticket = random.ticket(100);
        let chosen = destinations().find(|d| ticket.is_held_by(d.weight.into()));
        if let Some(destination) = chosen {
            let number = random.below(u32::MAX);
            return match destination.transform.apply(subject, number, made) {
                true => Mapped::Renamed,
                false => Mapped::Unchanged,
            };
        }
        // No destination was chosen, because the weights add up to less than 100. Usually, the message then
        // keeps its subject. The exception is a mapping whose source is also one of its destinations: the
        // weight of that destination is the exact share of messages that keep their subject, so this message
        // is dropped.
        let source = mapping.source().as_bytes();
        match destinations().any(|d| d.transform.destination() == source) {
            true => Mapped::Lost,
            false => Mapped::Unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the subjects to which 1,000 messages to `subject` are mapped, each with its share in units of
    /// 10%.
    fn shares(mappings: &[Mapping], subject: &str) -> Vec<(String, usize)> {
        let mappings = Mappings::new(mappings).unwrap();
        let mut random = FastRandom::new(7);
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for _ in 0..1000 {
            let mut made = Vec::new();
            let name = match mappings.apply(subject.as_bytes(), &mut random, &mut made) {
                Mapped::Unchanged => subject.into(),
                Mapped::Renamed => String::from_utf8(made).unwrap(),
                Mapped::Lost => "-".into(),
            };
            *counts.entry(name).or_default() += 1;
        }
        let round = |(name, count)| (name, (count + 50) / 100);
        counts.into_iter().map(round).collect()
    }

    #[track_caller]
    fn check(mappings: &[Mapping], subject: &str, expected: &[(&str, usize)]) {
        let expected: Vec<_> = expected.iter().map(|(n, s)| (n.to_string(), *s)).collect();
        assert_eq!(shares(mappings, subject), expected, "{subject}");
    }

    #[test]
    fn subjects_are_mapped_by_weight() {
        let plain = Mapping::new("a.*.*", "b.$2.$1").unwrap();
        check(std::slice::from_ref(&plain), "a.x.y", &[("b.y.x", 10)]);
        check(std::slice::from_ref(&plain), "a.x", &[("a.x", 10)]);
        let split = [("new", 30, None), ("old", 50, None)];
        let partly = Mapping::weighted("t", &split).unwrap();
        check(&[partly], "t", &[("new", 3), ("old", 5), ("t", 2)]);
        let lossy = Mapping::weighted("t", &[("t", 50, None), ("u", 30, None)]).unwrap();
        check(&[lossy], "t", &[("-", 2), ("t", 5), ("u", 3)]);
        let elsewhere = Mapping::weighted("t", &[("u", 100, Some("east"))]).unwrap();
        check(&[elsewhere], "t", &[("t", 10)]);
        // The first mapping takes precedence.
        let wide = Mapping::new("a.>", "all.>").unwrap();
        check(&[plain.clone(), wide.clone()], "a.x.y", &[("b.y.x", 10)]);
        check(&[wide, plain], "a.x.y", &[("all.x.y", 10)]);
    }
}
