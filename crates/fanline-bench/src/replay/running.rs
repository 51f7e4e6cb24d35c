//! A system that is ready to run, behind the common interface of all measurements.

use std::hint::black_box;

use anyhow::Result;

use super::audience::{Audience, Received};
use super::grid::{Load, SLICE};
use crate::turns::{self, Repetition};

pub(super) struct Running {
    pub(super) received: Received,
    /// Runs a part of a repetition. The loop over the messages is inside the closure, so a part costs only
    /// one indirect call.
    pub(super) step: Box<dyn FnMut(Step)>,
}

#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Emit the given number of messages. This part is timed.
    Emit(u32),
    /// Complete the subject, if the system supports that.
    End,
}

impl Running {
    /// Returns a system that `emit` runs, and that ends when it is dropped.
    pub(super) fn new(received: Received, mut emit: impl FnMut(u32) + 'static) -> Self {
        Self::ending(received, (), move |(), messages| emit(messages), drop)
    }

    /// Returns a system whose subject `end` completes.
    pub(super) fn ending<S: 'static>(
        received: Received,
        subject: S,
        mut emit: impl FnMut(&mut S, u32) + 'static,
        end: impl Fn(S) + 'static,
    ) -> Self {
        let mut open = Some(subject);
        let step = move |step| match (step, &mut open) {
            (Step::Emit(messages), Some(subject)) => emit(subject, messages),
            _ => open.take().into_iter().for_each(&end),
        };
        Self {
            received,
            step: Box::new(step),
        }
    }
}

/// Runs one repetition: creates a subject, emits with timing, ends the subject, and checks the counts. Returns
/// `None` if the system does not support the load.
pub(super) fn repeat(
    prepare: fn(Load, &Audience) -> Option<Running>,
    load: Load,
) -> Result<Option<Repetition>> {
    let audience = Audience::new(load.subscribers);
    let Some(running) = prepare(load, &audience) else {
        return Ok(None);
    };
    let Running { received, mut step } = running;
    let repetition = turns::timed(|| step(Step::Emit(load.messages)));
    step(Step::End);
    drop(step);
    audience.check(load.messages, received)?;
    Ok(Some(repetition))
}

#[inline(always)]
pub(super) fn emit_each(messages: u32, mut next: impl FnMut(u32)) {
    for value in 0..messages {
        next(value);
    }
}

#[inline(always)]
pub(super) fn emit_slices(messages: u32, mut next_slice: impl FnMut(&[u32])) {
    let values: Vec<u32> = (0..).take(SLICE).collect();
    let mut left = messages as usize;
    while left > 0 {
        let count = left.min(SLICE);
        // Hide the content of the slice from the compiler.
        next_slice(black_box(&values[..count]));
        left -= count;
    }
}
