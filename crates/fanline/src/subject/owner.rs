//! Shared ownership of a subject's core.

use std::sync::Arc;

use super::core::Core;
use super::list::Entry;
use super::policy::Rules;
use crate::fence::Fences;

/// The core of a subject, owned by producers, handles, and sources. Guards refer to the core alone: they
/// keep its memory, but no user values after the last owner is gone. So a guard inside an observer of the
/// same subject is no cycle.
pub(super) struct Owner<T, E, P: Rules, L: Entry<T, E>> {
    core: Arc<Core<T, E, P, L>>,
}

impl<T, E, P: Rules, L: Entry<T, E>> Owner<T, E, P, L> {
    pub(super) fn new(policy: P, fences: Fences) -> Arc<Self> {
        Arc::new(Self {
            core: Core::new(policy, fences),
        })
    }

    /// Returns the core. An emitter stores a reference of its own, which saves a load.
    pub(super) fn core(&self) -> &Arc<Core<T, E, P, L>> {
        &self.core
    }
}

impl<T, E, P: Rules, L: Entry<T, E>> Drop for Owner<T, E, P, L> {
    fn drop(&mut self) {
        self.core.abandon();
    }
}
