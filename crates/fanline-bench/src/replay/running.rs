//! A system that is ready to run, behind the common interface of all measurements.

use std::hint::black_box;

use anyhow::Result;

use super::audience::{Audience, Received};
use super::grid::{Calls, Flavor, SLICE, System};
use super::{hand_written, library, rivals};
use crate::turns::{self, Repetition};

/// A new subject with its subscribers.
pub(super) struct Running {
    pub(super) received: Received,
    /// Runs a part of a repetition. The loop over the messages is inside the closure, so a part costs only
    /// one indirect call.
    pub(super) step: Box<dyn FnMut(Step)>,
}

/// A part of a repetition.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Emit the given number of messages. This part is timed.
    Emit(u32),
    /// Complete the subject, if the system supports that.
    End,
}

/// Prepares `flavor` of `system` with the subscribers of `audience`. Returns `None` if the system does not
/// support the load.
pub(super) fn prepare(
    system: System,
    flavor: Flavor,
    calls: Calls,
    audience: &Audience,
) -> Option<Running> {
    match (system, calls) {
        (System::Fanline(form), Calls::Next) => library::each(flavor, form, audience),
        (System::Fanline(form), Calls::NextSlice) => library::slices(flavor, form, audience),
        (System::FanlineOneType, Calls::Next) => library::one_type(flavor, audience),
        (System::FanlineLocal, Calls::Next) => library::local(flavor, audience),
        (System::Reference(form), Calls::Next) => Some(hand_written::each(flavor, form, audience)),
        (System::Reference(form), Calls::NextSlice) => hand_written::slices(flavor, form, audience),
        (System::ReferenceOneType, Calls::Next) => hand_written::one_type(flavor, audience),
        (System::RxRustLocal, Calls::Next) => rivals::rxrust_local(flavor, audience),
        (System::RxRustShared, Calls::Next) => rivals::rxrust_shared(flavor, audience),
        (System::TokioBroadcast, Calls::Next) => rivals::tokio_broadcast(flavor, audience),
        _ => None,
    }
}

/// Runs one repetition: creates a subject, emits with timing, ends the subject, and checks the counts.
pub(super) fn repeat(
    system: System,
    flavor: Flavor,
    calls: Calls,
    messages: u32,
    subscribers: usize,
) -> Result<Option<Repetition>> {
    let audience = Audience::new(subscribers);
    let Some(running) = prepare(system, flavor, calls, &audience) else {
        return Ok(None);
    };
    let Running { received, mut step } = running;
    let repetition = turns::timed(|| step(Step::Emit(messages)));
    step(Step::End);
    drop(step);
    audience.check(messages, received)?;
    Ok(Some(repetition))
}

/// Calls `next` with `messages` values.
#[inline(always)]
pub(super) fn emit_each(messages: u32, mut next: impl FnMut(u32)) {
    for value in 0..messages {
        next(value);
    }
}

/// Calls `next_slice` with `messages` values in slices.
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
