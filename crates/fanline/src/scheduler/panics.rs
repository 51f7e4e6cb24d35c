//! Where panics of actions go.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Hook = Arc<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

/// What a scheduler does with an action's panic, after the process's panic hook has reported it.
#[derive(Clone, Default)]
pub(super) struct PanicHook(Option<Hook>);

impl PanicHook {
    pub(super) fn new(hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Runs something on a thread that must outlive it.
    pub(super) fn guard(&self, run: impl FnOnce()) {
        let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
            return;
        };
        // The hook is the user's, and so is the payload's `Drop`.
        let _ = catch_unwind(AssertUnwindSafe(|| match &self.0 {
            Some(hook) => hook(payload),
            None => drop(payload),
        }));
    }
}
