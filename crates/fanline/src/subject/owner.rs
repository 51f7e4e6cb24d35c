//! Shared ownership of a subject's core.

use alloc::sync::Arc;

use super::core::Core;
use super::list::Entry;
use super::policy::Rules;
use crate::fence::Fences;

/// The core of a subject, owned by producers, handles, and sources. Guards reference only the core. They keep
/// its memory allocated, but the user's values are dropped with the last owner. So a guard inside an observer
/// of the same subject does not form a cycle.
pub(super) struct Owner<T, E, P: Rules, L: Entry<T, E>> {
    core: Arc<Core<T, E, P, L>>,
}

impl<T, E, P: Rules, L: Entry<T, E>> Owner<T, E, P, L> {
    pub(super) fn new(policy: P, fences: Fences) -> Arc<Self> {
        Arc::new(Self {
            core: Core::new(policy, fences),
        })
    }

    /// Returns the core. Producers and handles also store their own reference to the core, which saves a
    /// load.
    pub(super) fn core(&self) -> &Arc<Core<T, E, P, L>> {
        &self.core
    }
}

impl<T, E, P: Rules, L: Entry<T, E>> Drop for Owner<T, E, P, L> {
    fn drop(&mut self) {
        self.core.abandon();
    }
}
