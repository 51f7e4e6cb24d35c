//! Adapters that run the reference loops of [`reference_loops`](super::reference_loops) in a measurement.

use super::audience::{Audience, Counter, Received};
use super::grid::{Calls, Flavor, Form, Load};
use super::reference_loops::{
    Boxed, BoxedFanOut, BoxedSlice, Log, Nothing, OneTypeFanOut, Reference, Ring, SliceStorage,
    Slices, Slot, Storage, StoringFanOut, TickedLog, TickedRing, TwoRmw,
};
use super::running::{Running, emit_each, emit_slices};

pub(super) fn subject(form: Form, load: Load, audience: &Audience) -> Option<Running> {
    match load.calls {
        Calls::Next => Some(each(load.flavor, form, audience)),
        Calls::NextSlice => slices(load.flavor, form, audience),
    }
}

fn each(flavor: Flavor, form: Form, audience: &Audience) -> Running {
    let observers = audience.counters().map(boxed);
    match flavor {
        Flavor::Subject => in_form(form, BoxedFanOut(observers.collect())),
        Flavor::All => keeping(form, Log::default(), observers),
        Flavor::Behavior | Flavor::One => keeping(form, Slot::default(), observers),
        Flavor::Many => keeping(form, Ring::default(), observers),
        Flavor::Within => keeping(form, TickedLog::new(), observers),
        Flavor::ManyWithin => keeping(form, TickedRing::new(), observers),
        Flavor::Async => {
            // This flavor calls no observer before the subject completes.
            observers.for_each(drop);
            Running {
                received: Received::Nothing,
                ..keeping(form, Slot::default(), std::iter::empty())
            }
        }
    }
}

fn slices(flavor: Flavor, form: Form, audience: &Audience) -> Option<Running> {
    if form == Form::Shared {
        return None;
    }
    match flavor {
        Flavor::Subject | Flavor::Behavior | Flavor::One | Flavor::Many | Flavor::ManyWithin => {
            Some(keeping_slices(Nothing, audience))
        }
        Flavor::All => Some(keeping_slices(Log::default(), audience)),
        Flavor::Within => Some(keeping_slices(TickedLog::new(), audience)),
        Flavor::Async => None,
    }
}

pub(super) fn one_type(load: Load, audience: &Audience) -> Option<Running> {
    let of_one_type = audience
        .counters()
        .map(|mut counter| move |_: u32| counter.count_value());
    let reference = OneTypeFanOut(of_one_type.collect());
    load.is_plain().then(|| running(reference))
}

fn keeping<K: Storage + 'static>(
    form: Form,
    storage: K,
    observers: impl Iterator<Item = Boxed>,
) -> Running {
    in_form(form, StoringFanOut::new(storage, observers.collect()))
}

fn in_form<L: Reference + 'static>(form: Form, reference: L) -> Running {
    match form {
        Form::Exclusive => running(reference),
        Form::Shared => running(TwoRmw::new(reference)),
    }
}

fn running<L: Reference + 'static>(mut reference: L) -> Running {
    let emit = move |messages| emit_each(messages, |value| reference.next(value));
    Running::new(Received::All, emit)
}

fn keeping_slices<K: SliceStorage + 'static>(storage: K, audience: &Audience) -> Running {
    let observers = audience.counters().map(|mut counter| -> BoxedSlice {
        Box::new(move |values| {
            for value in values {
                counter.see(*value);
            }
        })
    });
    let mut reference = Slices::new(storage, observers.collect());
    let emit = move |messages| emit_slices(messages, |values| reference.next_slice(values));
    Running::new(Received::All, emit)
}

fn boxed(mut counter: Counter) -> Boxed {
    Box::new(move |_| counter.count_value())
}
