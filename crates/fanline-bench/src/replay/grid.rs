//! The measured grid, which consists of flavors, forms, sizes, and compared systems.

use clap::ValueEnum;

use super::audience::Audience;
use super::running::Running;
use super::{hand_written, library, rivals};
use crate::report::Kind;
use crate::subjects::{EXCLUSIVE, LOCAL, SHARED};

/// Numbers of messages of one repetition, as in RxPerfTests.
pub(super) const MESSAGES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Numbers of subscriptions, as in RxPerfTests.
pub(super) const SUBSCRIBERS: [usize; 5] = [1, 2, 4, 8, 16];

pub(super) const SLICE: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Flavor {
    /// Retains nothing
    Subject,
    /// Retains the current value
    Behavior,
    /// Replays all values
    All,
    /// Replays the last value
    One,
    /// Replays the last five values
    Many,
    /// Replays the last five seconds
    Within,
    /// Replays the last five values of the last five seconds
    ManyWithin,
    /// Emits the last value on completion
    Async,
}

impl Flavor {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Behavior => "behavior",
            Self::All => "replay all",
            Self::One => "replay one",
            Self::Many => "replay many(5)",
            Self::Within => "replay within 5 s",
            Self::ManyWithin => "replay many_within(5, 5 s)",
            Self::Async => "async",
        }
    }

    /// Returns whether the flavor stores a log. A log may cost one allocation per 1,024 values.
    pub(super) fn keeps_a_log(self) -> bool {
        matches!(self, Self::All | Self::Within)
    }

    /// Returns the name on the command line. The load in `rivals/rxjava` that corresponds to this flavor has the
    /// same name.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The calls with which messages are emitted: one call per message, or one call per slice of 64 messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Calls {
    Next,
    NextSlice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The exclusive producer that `fanline::subject` and similar functions return.
    Exclusive,
    /// The handle that can be cloned: `Subject`, `ReplaySubject`, and similar types.
    Shared,
}

impl Form {
    pub(super) const BOTH: [Self; 2] = [Self::Exclusive, Self::Shared];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }

    pub(super) fn fanline(self) -> &'static str {
        match self {
            Self::Exclusive => EXCLUSIVE,
            Self::Shared => SHARED,
        }
    }

    pub(super) fn reference(self) -> &'static str {
        match self {
            Self::Exclusive => "reference loop, exclusive",
            Self::Shared => "reference loop, shared",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) flavor: Flavor,
    pub(super) calls: Calls,
    pub(super) messages: u32,
    pub(super) subscribers: usize,
}

impl Load {
    pub(super) fn name(self) -> String {
        let calls = match self.calls {
            Calls::Next => "each",
            Calls::NextSlice => "slices",
        };
        let flavor = self.flavor.name();
        format!("{flavor}-{calls}-{}-{}", self.messages, self.subscribers)
    }

    /// Returns whether each message is one call of a subject that retains nothing.
    pub(super) fn is_plain(self) -> bool {
        (self.flavor, self.calls) == (Flavor::Subject, Calls::Next)
    }
}

pub(super) struct System {
    pub(super) label: &'static str,
    pub(super) kind: Kind,
    pub(super) work: Work,
}

/// The way in which a system is measured. The functions return `None` if the system does not support the load.
#[derive(Clone, Copy)]
pub(super) enum Work {
    Here(fn(Load, &Audience) -> Option<Running>),
    /// Returns the name of the load in `rivals/rxjava`. It supports only one call per message.
    RxJava(fn(Flavor) -> Option<String>),
}

const fn here(
    label: &'static str,
    kind: Kind,
    prepare: fn(Load, &Audience) -> Option<Running>,
) -> System {
    System {
        label,
        kind,
        work: Work::Here(prepare),
    }
}

const fn rxjava(label: &'static str, load: fn(Flavor) -> Option<String>) -> System {
    System {
        label,
        kind: Kind::Rival,
        work: Work::RxJava(load),
    }
}

use Form::{Exclusive, Shared};

/// Fanline and its reference loop, with observers of one known type.
pub(super) const ONE_TYPE: &str = "Fanline, observers of one type";
pub(super) const REFERENCE_ONE_TYPE: &str = "reference loop, observers of one type";
pub(super) const RXJAVA: &str = "RxJava";
/// RxJava's subject for several emitting threads.
pub(super) const RXJAVA_SERIALIZED: &str = "RxJava, toSerialized";
/// RxJava with observers of three classes, as in most programs.
pub(super) const RXJAVA_THREE_CLASSES: &str = "RxJava, three observer classes";
pub(super) const RXRUST_LOCAL: &str = "rxRust, Local";
pub(super) const RXRUST_SHARED: &str = "rxRust, Shared";
pub(super) const TOKIO: &str = "tokio broadcast, bursts of 256";

/// Every system, in the order of reports.
#[rustfmt::skip]
pub(super) const SYSTEMS: &[System] = &[
    here(EXCLUSIVE, Kind::Own, |load, audience| library::subject(Exclusive, load, audience)),
    here("reference loop, exclusive", Kind::Reference, |load, audience| hand_written::subject(Exclusive, load, audience)),
    here(SHARED, Kind::Own, |load, audience| library::subject(Shared, load, audience)),
    here("reference loop, shared", Kind::Reference, |load, audience| hand_written::subject(Shared, load, audience)),
    here(ONE_TYPE, Kind::Own, library::one_type),
    here(REFERENCE_ONE_TYPE, Kind::Reference, hand_written::one_type),
    here(LOCAL, Kind::Own, library::local),
    rxjava(RXJAVA, |flavor| Some(flavor.name())),
    rxjava(RXJAVA_SERIALIZED, |flavor| (flavor == Flavor::Subject).then(|| "subject-serialized".to_owned())),
    rxjava(RXJAVA_THREE_CLASSES, |flavor| (flavor == Flavor::Subject).then(|| "subject-three-classes".to_owned())),
    here(RXRUST_LOCAL, Kind::Rival, rivals::rxrust_local),
    here(RXRUST_SHARED, Kind::Rival, rivals::rxrust_shared),
    here(TOKIO, Kind::Rival, rivals::tokio_broadcast),
];
