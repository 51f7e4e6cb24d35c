//! Who wants what: each leaf some of its own subjects, and some of those that all share.

use super::Arguments;
use super::random::{Random, Zipf};

const WORD_BITS: usize = u64::BITS as usize;

/// A set of small numbers.
#[derive(Clone)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    fn new(bound: usize) -> Self {
        Self(vec![0; bound.div_ceil(WORD_BITS)])
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.0[number / WORD_BITS] >> (number % WORD_BITS) & 1 == 1
    }

    fn toggle(&mut self, number: usize) {
        self.0[number / WORD_BITS] ^= 1 << (number % WORD_BITS);
    }

    pub(super) fn count(&self) -> usize {
        let words = self.0.iter().map(|word| word.count_ones() as usize);
        words.sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(place, word)| {
            let numbers = (0..WORD_BITS).filter(move |bit| word >> bit & 1 == 1);
            numbers.map(move |bit| place * WORD_BITS + bit)
        })
    }
}

/// A subject: one of a leaf's own, or one that all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Own { leaf: usize, index: usize },
    Shared(usize),
}

/// Who wants what at one moment.
pub(super) struct World {
    pub(super) leafs: usize,
    pub(super) regions: usize,
    own: usize,
    popularity: Zipf,
    /// By leaf: which of its own subjects it wants.
    wanted: Vec<Bits>,
    /// By shared subject: the leafs that want it.
    holders: Vec<Bits>,
}

impl World {
    /// A world of this kind.
    pub(super) fn draw(arguments: &Arguments, random: &mut Random) -> Self {
        let (leafs, own) = (arguments.leafs as usize, arguments.own as usize);
        let shared = arguments.shared as usize;
        let mut world = Self {
            leafs,
            regions: arguments.regions as usize,
            own,
            popularity: Zipf::new(shared),
            wanted: vec![Bits::new(own); leafs],
            holders: vec![Bits::new(leafs); shared],
        };
        for leaf in 0..leafs {
            for index in 0..own {
                if random.percent(arguments.own_wanted_percent) {
                    world.wanted[leaf].toggle(index);
                }
            }
            for _ in 0..arguments.shared_drawn {
                let subject = world.popularity.draw(random);
                // Drawn again, it is wanted by two clients of the leaf, which is told once.
                if !world.holders[subject].has(leaf) {
                    world.holders[subject].toggle(leaf);
                }
            }
        }
        world
    }

    /// The region that a leaf belongs to.
    pub(super) fn region(&self, leaf: usize) -> usize {
        leaf / self.leafs_of_region()
    }

    /// How many leafs a region has.
    pub(super) fn leafs_of_region(&self) -> usize {
        self.leafs / self.regions
    }

    /// How many of its own subjects a leaf wants.
    pub(super) fn own_wanted(&self, leaf: usize) -> usize {
        self.wanted[leaf].count()
    }

    /// By shared subject, the leafs that want it.
    pub(super) fn holders(&self) -> &[Bits] {
        &self.holders
    }

    /// Different subjects that anybody wants.
    pub(super) fn distinct(&self) -> usize {
        let own: usize = (0..self.leafs).map(|leaf| self.own_wanted(leaf)).sum();
        let shared = self.holders.iter().filter(|holders| holders.count() > 0);
        own + shared.count()
    }

    /// Whether this leaf wants that subject.
    pub(super) fn wants(&self, leaf: usize, subject: Subject) -> bool {
        match subject {
            Subject::Own { leaf: owner, index } => owner == leaf && self.wanted[leaf].has(index),
            Subject::Shared(shared) => self.holders[shared].has(leaf),
        }
    }

    /// A leaf, and a subject that it begins or ceases to want: nine times of ten one of its own.
    pub(super) fn draw_change(&self, random: &mut Random) -> (usize, Subject) {
        let leaf = random.below(self.leafs);
        let subject = if random.percent(90) {
            self.draw_own(leaf, random)
        } else {
            self.draw_shared(random)
        };
        (leaf, subject)
    }

    /// A leaf, and a subject that is published there: half of it its own, three of ten those of
    /// another leaf, two of ten shared ones.
    pub(super) fn draw_publication(&self, random: &mut Random) -> (usize, Subject) {
        let leaf = random.below(self.leafs);
        let subject = match random.below(10) {
            0..5 => self.draw_own(leaf, random),
            5..8 => self.draw_own(random.below(self.leafs), random),
            _ => self.draw_shared(random),
        };
        (leaf, subject)
    }

    fn draw_own(&self, leaf: usize, random: &mut Random) -> Subject {
        let index = random.below(self.own);
        Subject::Own { leaf, index }
    }

    fn draw_shared(&self, random: &mut Random) -> Subject {
        Subject::Shared(self.popularity.draw(random))
    }

    /// Makes a leaf want what it did not, or the other way round.
    pub(super) fn toggle(&mut self, leaf: usize, subject: Subject) {
        match subject {
            Subject::Own { index, .. } => self.wanted[leaf].toggle(index),
            Subject::Shared(shared) => self.holders[shared].toggle(leaf),
        }
    }
}
