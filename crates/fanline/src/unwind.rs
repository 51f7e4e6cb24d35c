//! The unwinding of panics. Without the feature `std` a panic ends the program, so there is nothing to catch.

#[cfg(feature = "std")]
mod exports {
    use std::any::Any;

    pub(crate) use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    pub(crate) use std::process::abort;
    pub(crate) use std::thread::panicking;

    /// The payload of a panic.
    pub(crate) type Panic = Box<dyn Any + Send>;
}

#[cfg(not(feature = "std"))]
mod exports {
    /// The payload of a panic. None exists.
    pub(crate) type Panic = core::convert::Infallible;

    pub(crate) struct AssertUnwindSafe<F>(pub(crate) F);

    #[inline(always)]
    pub(crate) fn catch_unwind<R>(call: AssertUnwindSafe<impl FnOnce() -> R>) -> Result<R, Panic> {
        Ok((call.0)())
    }

    pub(crate) fn resume_unwind(panic: Panic) -> ! {
        match panic {}
    }

    pub(crate) fn abort() -> ! {
        panic!("an observer has panicked")
    }

    pub(crate) fn panicking() -> bool {
        false
    }
}

pub(crate) use exports::*;
