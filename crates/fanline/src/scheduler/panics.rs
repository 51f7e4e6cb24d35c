//! The treatment of panics in actions.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Hook = Arc<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

/// The hook that gets the payload of an action's panic, after the process's panic hook has reported the
/// panic.
#[derive(Clone, Default)]
pub(super) struct PanicHook(Option<Hook>);

impl PanicHook {
    pub(super) fn new(hook: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Runs a closure, and passes its panic to the hook, so that the thread continues.
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
