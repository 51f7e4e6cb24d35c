//! The limits of [`limits`](super::limits), brought into the shape of a measurement.

use super::audience::{Audience, Received, Seat};
use super::grid::{Flavour, Form};
use super::limits::{
    Boxed, BoxedFanOut, BoxedSlice, Keep, KeepSlice, Keeping, Limit, Log, Nothing, OneTypeFanOut,
    Ring, Slices, Slot, TickedLog, TickedRing, TwoRmw,
};
use super::running::{Running, Step, emit_each, emit_slices};

/// The limit for one call per message.
pub(super) fn each(flavour: Flavour, form: Form, audience: &Audience) -> Running {
    let observers = audience.seats().map(boxed);
    match flavour {
        Flavour::Subject => {
            let limit = BoxedFanOut(observers.collect());
            in_form(form, limit)
        }
        Flavour::All => keeping(form, Log::default(), observers),
        Flavour::Behavior | Flavour::One => keeping(form, Slot::default(), observers),
        Flavour::Many => keeping(form, Ring::default(), observers),
        Flavour::Within => keeping(form, TickedLog::new(), observers),
        Flavour::ManyWithin => keeping(form, TickedRing::new(), observers),
        Flavour::Async => {
            // Nobody is called before the end.
            observers.for_each(drop);
            let mut running = keeping(form, Slot::default(), std::iter::empty());
            running.received = Received::Nothing;
            running
        }
    }
}

/// The limit for slices of 64.
pub(super) fn slices(flavour: Flavour, form: Form, audience: &Audience) -> Option<Running> {
    if form == Form::Shared {
        return None;
    }
    match flavour {
        Flavour::Subject
        | Flavour::Behavior
        | Flavour::One
        | Flavour::Many
        | Flavour::ManyWithin => Some(keeping_slices(Nothing, audience)),
        Flavour::All => Some(keeping_slices(Log::default(), audience)),
        Flavour::Within => Some(keeping_slices(TickedLog::new(), audience)),
        Flavour::Async => None,
    }
}

/// The limit for observers of one type.
pub(super) fn one_type(flavour: Flavour, audience: &Audience) -> Option<Running> {
    let of_one_type = audience.seats().map(|mut seat| move |_: u32| seat.bump());
    let limit = OneTypeFanOut(of_one_type.collect());
    (flavour == Flavour::Subject).then(|| running(limit))
}

fn keeping<K: Keep + 'static>(
    form: Form,
    kept: K,
    observers: impl Iterator<Item = Boxed>,
) -> Running {
    in_form(form, Keeping::new(kept, observers.collect()))
}

fn in_form<L: Limit + 'static>(form: Form, limit: L) -> Running {
    match form {
        Form::Exclusive => running(limit),
        Form::Shared => running(TwoRmw::new(limit)),
    }
}

fn running<L: Limit + 'static>(mut limit: L) -> Running {
    Running {
        received: Received::All,
        step: Box::new(move |step| match step {
            Step::Emit(messages) => emit_each(messages, |value| limit.next(value)),
            Step::End => {}
        }),
    }
}

fn keeping_slices<K: KeepSlice + 'static>(kept: K, audience: &Audience) -> Running {
    let observers = audience.seats().map(|mut seat| -> BoxedSlice {
        Box::new(move |values| {
            for value in values {
                seat.see(*value);
            }
        })
    });
    let mut limit = Slices::new(kept, observers.collect());
    Running {
        received: Received::All,
        step: Box::new(move |step| match step {
            Step::Emit(messages) => emit_slices(messages, |values| limit.next_slice(values)),
            Step::End => {}
        }),
    }
}

fn boxed(mut seat: Seat) -> Boxed {
    Box::new(move |_| seat.bump())
}
