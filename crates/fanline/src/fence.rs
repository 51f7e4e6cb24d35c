//! A memory fence that is free for one of its two sides.
//!
//! Two threads each write one word and then read the other's word; at least one of them must see the other's
//! write. That takes a full fence between the write and the read on both sides: 7 ns for each message. One
//! side is frequent, such as emission, and the other is rare, such as subscription. Where the kernel has
//! `membarrier`, the rare side executes the fence for both, in about 160 ns. The frequent side then only
//! stops the compiler from reordering, which costs nothing.

use crate::sync::{Ordering, fence};

/// Which of the two sides executes the full fence. Both sides must use the same variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// The rare side executes the fence for both.
    Asymmetric,
    /// Each side executes a full fence.
    Symmetric,
}

impl Fences {
    /// The variant that nearly every machine of this target supports. A fast path may be compiled for this
    /// variant only, if there is a slower path for machines on which [`detect`](Self::detect) returns the
    /// other one.
    pub(crate) const USUAL: Self = membarrier::USUAL;

    /// Returns the cheapest variant that this machine supports.
    pub(crate) fn detect() -> Self {
        if membarrier::register() {
            Self::Asymmetric
        } else {
            Self::Symmetric
        }
    }

    /// Executes the frequent side's fence, between its write and its read.
    #[inline(always)]
    pub(crate) fn light(self) {
        match self {
            // A loom model has no `membarrier`, so there the frequent side executes a full fence too.
            Self::Asymmetric if !cfg!(all(test, fanline_loom)) => {
                core::sync::atomic::compiler_fence(Ordering::SeqCst);
            }
            Self::Asymmetric | Self::Symmetric => fence(Ordering::SeqCst),
        }
    }

    /// Executes the frequent side's fence if the variant is [`Asymmetric`](Self::Asymmetric). With
    /// [`Symmetric`](Self::Symmetric), the caller must execute a full fence itself before its read.
    #[inline(always)]
    pub(crate) fn light_if_asymmetric(self) {
        if !cfg!(all(test, fanline_loom)) || self == Self::Asymmetric {
            Self::Asymmetric.light();
        }
    }

    /// Executes the rare side's fence, between its write and its read.
    pub(crate) fn heavy(self) {
        fence(Ordering::SeqCst);
        if self == Self::Asymmetric {
            membarrier::all_threads();
        }
    }
}

#[cfg(all(
    feature = "std",
    target_os = "linux",
    not(all(test, fanline_loom)),
    not(miri)
))]
mod membarrier {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    use super::Fences;

    pub(super) const USUAL: Fences = Fences::Asymmetric;

    /// Registers the process with the kernel, once, and returns whether `membarrier` is available.
    pub(super) fn register() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok())
    }

    /// Makes each running thread of this process execute a full fence before this returns.
    pub(super) fn all_threads() {
        membarrier(MembarrierCommand::PrivateExpedited)
            .expect("registered, and a system call filter would have rejected the registration");
    }
}

#[cfg(not(all(
    feature = "std",
    target_os = "linux",
    not(all(test, fanline_loom)),
    not(miri)
)))]
mod membarrier {
    use super::Fences;

    pub(super) const USUAL: Fences = Fences::Symmetric;

    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn all_threads() {}
}
