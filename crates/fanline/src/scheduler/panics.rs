//! Panics of actions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Hook = Arc<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

/// The hook that gets an action's panic after the process's panic hook has reported it.
#[derive(Clone, Default)]
pub(super) struct PanicHook(Option<Hook>);

impl PanicHook {
    pub(super) fn new(hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Runs a closure on a thread that must survive its panic.
    pub(super) fn guard(&self, run: impl FnOnce()) {
        let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
            return;
        };
        // The hook and the payload's `Drop` are user code, which may panic too.
        let _ = catch_unwind(AssertUnwindSafe(|| match &self.0 {
            Some(hook) => hook(payload),
            None => drop(payload),
        }));
    }
}
