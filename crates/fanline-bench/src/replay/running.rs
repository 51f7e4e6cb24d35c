//! A system that is ready to emit: the one shape that all of them are brought into.

use std::hint::black_box;

use anyhow::Result;

use super::audience::{Audience, Received};
use super::grid::{Calls, Flavour, SLICE, System};
use super::{hand_written, library, rivals};
use crate::turns::{self, Repetition};

/// A fresh subject with its subscribers.
pub(super) struct Running {
    pub(super) received: Received,
    /// One indirect call per repetition; the loop over the messages is inside.
    pub(super) step: Box<dyn FnMut(Step)>,
}

/// What a repetition consists of.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// So many messages: what is timed.
    Emit(u32),
    /// Complete, if it can.
    End,
}

/// `flavour` of `system`, subscribed to by `audience`; `None` when there is no such thing.
pub(super) fn prepare(
    system: System,
    flavour: Flavour,
    calls: Calls,
    audience: &Audience,
) -> Option<Running> {
    match (system, calls) {
        (System::Fanline(form), Calls::Next) => library::each(flavour, form, audience),
        (System::Fanline(form), Calls::NextSlice) => library::slices(flavour, form, audience),
        (System::FanlineOneType, Calls::Next) => library::one_type(flavour, audience),
        (System::FanlineLocal, Calls::Next) => library::local(flavour, audience),
        (System::Limit(form), Calls::Next) => Some(hand_written::each(flavour, form, audience)),
        (System::Limit(form), Calls::NextSlice) => hand_written::slices(flavour, form, audience),
        (System::LimitOneType, Calls::Next) => hand_written::one_type(flavour, audience),
        (System::RxRustLocal, Calls::Next) => rivals::rxrust_local(flavour, audience),
        (System::RxRustShared, Calls::Next) => rivals::rxrust_shared(flavour, audience),
        (System::TokioBroadcast, Calls::Next) => rivals::tokio_broadcast(flavour, audience),
        _ => None,
    }
}

/// One repetition: fresh subject, timed emission, end, check.
pub(super) fn repeat(
    system: System,
    flavour: Flavour,
    calls: Calls,
    messages: u32,
    subscribers: usize,
) -> Result<Option<Repetition>> {
    let audience = Audience::new(subscribers);
    let Some(running) = prepare(system, flavour, calls, &audience) else {
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
        // Else the compiler knows what is in there.
        next_slice(black_box(&values[..count]));
        left -= count;
    }
}
