//! The measured grid, which consists of flavors, forms, sizes, and compared systems.

use clap::ValueEnum;

use crate::report::Kind;

/// Numbers of messages of one repetition, as in RxPerfTests.
pub(super) const MESSAGES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Numbers of subscriptions, as in RxPerfTests.
pub(super) const SUBSCRIBERS: [usize; 5] = [1, 2, 4, 8, 16];

/// Number of values in one call of `next_slice`.
pub(super) const SLICE: usize = 64;

/// A kind of subject.
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
    /// Returns the name in reports.
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
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Behavior => "behavior",
            Self::All => "all",
            Self::One => "one",
            Self::Many => "many",
            Self::Within => "within",
            Self::ManyWithin => "many-within",
            Self::Async => "async",
        }
    }
}

/// The calls with which messages are emitted: one call per message, or one call per slice of 64 messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Calls {
    Next,
    NextSlice,
}

/// The form of the producer: exclusive or shared.
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
}

/// A system that is measured under the same load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum System {
    Fanline(Form),
    /// The reference loop: a hand-written implementation for exactly this load.
    Reference(Form),
    /// Fanline with observers of one known type.
    FanlineOneType,
    /// The reference loop with observers of one known type.
    ReferenceOneType,
    /// Fanline's single-threaded subject.
    FanlineLocal,
    RxJava,
    /// RxJava's subject for several emitting threads.
    RxJavaSerialized,
    /// RxJava with observers of three classes, as in most programs.
    RxJavaThreeClasses,
    RxRustLocal,
    RxRustShared,
    TokioBroadcast,
}

impl System {
    pub(super) const ALL: [Self; 13] = [
        Self::Fanline(Form::Exclusive),
        Self::Reference(Form::Exclusive),
        Self::Fanline(Form::Shared),
        Self::Reference(Form::Shared),
        Self::FanlineOneType,
        Self::ReferenceOneType,
        Self::FanlineLocal,
        Self::RxJava,
        Self::RxJavaSerialized,
        Self::RxJavaThreeClasses,
        Self::RxRustLocal,
        Self::RxRustShared,
        Self::TokioBroadcast,
    ];

    /// Returns the name in reports.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Fanline(Form::Exclusive) => "Fanline, exclusive",
            Self::Fanline(Form::Shared) => "Fanline, shared",
            Self::Reference(Form::Exclusive) => "reference loop, exclusive",
            Self::Reference(Form::Shared) => "reference loop, shared",
            Self::FanlineOneType => "Fanline, observers of one type",
            Self::ReferenceOneType => "reference loop, observers of one type",
            Self::FanlineLocal => "Fanline, LocalSubject",
            Self::RxJava => "RxJava",
            Self::RxJavaSerialized => "RxJava, toSerialized",
            Self::RxJavaThreeClasses => "RxJava, three observer classes",
            Self::RxRustLocal => "rxRust, Local",
            Self::RxRustShared => "rxRust, Shared",
            Self::TokioBroadcast => "tokio broadcast, bursts of 256",
        }
    }

    /// Returns the role in reports.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Fanline(_) | Self::FanlineOneType | Self::FanlineLocal => Kind::Own,
            Self::Reference(_) | Self::ReferenceOneType => Kind::Reference,
            _ => Kind::Rival,
        }
    }

    /// Returns the systems with which this one is compared. The exclusive form is compared with systems for one
    /// thread, and the shared form with systems for several threads. RxJava's plain subject is in both lists: it
    /// is made for one emitting thread, but programs use it for both.
    pub(super) fn rivals(self) -> &'static [Self] {
        match self {
            Self::Fanline(Form::Exclusive) => {
                &[Self::RxJava, Self::RxJavaThreeClasses, Self::RxRustLocal]
            }
            Self::Fanline(Form::Shared) => &[
                Self::RxJava,
                Self::RxJavaSerialized,
                Self::RxRustShared,
                Self::TokioBroadcast,
            ],
            _ => &[],
        }
    }

    /// Returns the reference loop with which the system is compared.
    pub(super) fn reference(self) -> Option<Self> {
        match self {
            Self::Fanline(form) => Some(Self::Reference(form)),
            Self::FanlineOneType => Some(Self::ReferenceOneType),
            _ => None,
        }
    }

    /// Returns the name of the system's load for `flavor` in the JVM. Returns `None` if the system does not
    /// run in a JVM or does not support the flavor.
    pub(super) fn rxjava_load(self, flavor: Flavor) -> Option<&'static str> {
        match (self, flavor) {
            (Self::RxJava, flavor) => Some(flavor.name()),
            (Self::RxJavaSerialized, Flavor::Subject) => Some("subject-serialized"),
            (Self::RxJavaThreeClasses, Flavor::Subject) => Some("subject-three-classes"),
            _ => None,
        }
    }
}
