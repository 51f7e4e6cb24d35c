//! A fence of which one side pays nothing.
//!
//! Two threads that each write one word and then read the other's must not both miss the other's
//! write. That takes a full fence between the write and the read, on both sides: 7 ns for each
//! message. Where the kernel has `membarrier`, the rare side can make it for both, for about 160 ns,
//! and the frequent side keeps the compiler from reordering, which costs nothing.

use crate::sync::{Ordering, fence};

/// How the two sides agree; the same value must be used on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// The rare side pays for both.
    Asymmetric,
    /// Both make a full fence.
    Symmetric,
}

impl Fences {
    /// What nearly every machine of this kind can do. A fast path may be compiled for this one alone,
    /// with a slower one beside it for when [`detect`](Self::detect) finds another.
    pub(crate) const USUAL: Self = membarrier::USUAL;

    /// The cheapest that this machine can do.
    pub(crate) fn detect() -> Self {
        if membarrier::register() {
            Self::Asymmetric
        } else {
            Self::Symmetric
        }
    }

    /// The frequent side's fence, between its write and its read.
    #[inline(always)]
    pub(crate) fn light(self) {
        match self {
            // In a model, where nobody can make it for others, it is a full one as well.
            Self::Asymmetric if !cfg!(all(test, fanline_loom)) => {
                std::sync::atomic::compiler_fence(Ordering::SeqCst);
            }
            Self::Asymmetric | Self::Symmetric => fence(Ordering::SeqCst),
        }
    }

    /// The same where another path, taken when the sides agree on full fences, makes one before it reads again:
    /// costs nothing either way.
    #[inline(always)]
    pub(crate) fn light_if_asymmetric(self) {
        if !cfg!(all(test, fanline_loom)) || self == Self::Asymmetric {
            Self::Asymmetric.light();
        }
    }

    /// The rare side's fence, between its write and its read.
    pub(crate) fn heavy(self) {
        fence(Ordering::SeqCst);
        if self == Self::Asymmetric {
            membarrier::all_threads();
        }
    }
}

#[cfg(all(target_os = "linux", not(all(test, fanline_loom)), not(miri)))]
mod membarrier {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    use super::Fences;

    pub(super) const USUAL: Fences = Fences::Asymmetric;

    /// Says once for the process that it will be used, as the kernel asks; whether it can be.
    pub(super) fn register() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok())
    }

    /// Each running thread of this process makes a full fence before this returns.
    pub(super) fn all_threads() {
        membarrier(MembarrierCommand::PrivateExpedited)
            .expect("registered, and a filter that forbids it would have forbidden that");
    }
}

#[cfg(not(all(target_os = "linux", not(all(test, fanline_loom)), not(miri))))]
mod membarrier {
    use super::Fences;

    pub(super) const USUAL: Fences = Fences::Symmetric;

    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn all_threads() {}
}
