//! Who keeps a subject going.

use std::sync::Arc;

use super::core::Core;
use super::list::Entry;
use super::policy::Rules;
use crate::fence::Fences;

/// A subject's core as producers, handles and sources share it. Guards have the core alone: they keep
/// its memory, and nothing of the user's once the last owner is gone. So a guard that an observer of
/// the same subject owns is no cycle.
pub(super) struct Owner<T, E, P: Rules, L: Entry<T, E>> {
    core: Arc<Core<T, E, P, L>>,
}

impl<T, E, P: Rules, L: Entry<T, E>> Owner<T, E, P, L> {
    pub(super) fn new(policy: P, fences: Fences) -> Arc<Self> {
        Arc::new(Self {
            core: Core::new(policy, fences),
        })
    }

    /// Whoever emits keeps a reference to the core as well, which spares him a load.
    pub(super) fn core(&self) -> &Arc<Core<T, E, P, L>> {
        &self.core
    }
}

impl<T, E, P: Rules, L: Entry<T, E>> Drop for Owner<T, E, P, L> {
    fn drop(&mut self) {
        self.core.abandon();
    }
}
