//! The interest of each leaf: some of its own subjects and some of the shared ones.

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

/// A subject: one of a leaf's own, or a shared one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Own { leaf: usize, index: usize },
    Shared(usize),
}

/// The interest of all leaf nodes at one moment.
pub(super) struct World {
    pub(super) leafs: usize,
    pub(super) regions: usize,
    own: usize,
    popularity: Zipf,
    /// By leaf: its own subjects with interest.
    wanted: Vec<Bits>,
    /// By shared subject: the leaf nodes with interest.
    holders: Vec<Bits>,
}

impl World {
    /// Draws a world with these parameters.
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
                // If drawn again, two clients of the leaf subscribe to it, and the leaf announces it once.
                if !world.holders[subject].has(leaf) {
                    world.holders[subject].toggle(leaf);
                }
            }
        }
        world
    }

    /// Returns the region of a leaf.
    pub(super) fn region(&self, leaf: usize) -> usize {
        leaf / self.leafs_of_region()
    }

    /// Returns the number of leaf nodes of a region.
    pub(super) fn leafs_of_region(&self) -> usize {
        self.leafs / self.regions
    }

    /// Returns the number of a leaf's own subjects with interest.
    pub(super) fn own_wanted(&self, leaf: usize) -> usize {
        self.wanted[leaf].count()
    }

    /// Returns the leaf nodes with interest, by shared subject.
    pub(super) fn holders(&self) -> &[Bits] {
        &self.holders
    }

    /// Returns the number of different subjects with interest.
    pub(super) fn distinct(&self) -> usize {
        let own: usize = (0..self.leafs).map(|leaf| self.own_wanted(leaf)).sum();
        let shared = self.holders.iter().filter(|holders| holders.count() > 0);
        own + shared.count()
    }

    /// Returns whether this leaf is interested in the subject.
    pub(super) fn wants(&self, leaf: usize, subject: Subject) -> bool {
        match subject {
            Subject::Own { leaf: owner, index } => owner == leaf && self.wanted[leaf].has(index),
            Subject::Shared(shared) => self.holders[shared].has(leaf),
        }
    }

    /// Draws a leaf, and a subject whose interest begins or ends there: nine of ten times one of its own.
    pub(super) fn draw_change(&self, random: &mut Random) -> (usize, Subject) {
        let leaf = random.below(self.leafs);
        let subject = if random.percent(90) {
            self.draw_own(leaf, random)
        } else {
            self.draw_shared(random)
        };
        (leaf, subject)
    }

    /// Draws a leaf and a subject that is published there: five of ten its own, three of ten of another leaf,
    /// and two of ten shared.
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

    /// Toggles the interest of a leaf in a subject.
    pub(super) fn toggle(&mut self, leaf: usize, subject: Subject) {
        match subject {
            Subject::Own { index, .. } => self.wanted[leaf].toggle(index),
            Subject::Shared(shared) => self.holders[shared].toggle(leaf),
        }
    }
}
