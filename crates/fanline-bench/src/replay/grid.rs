//! What is measured: flavours, forms, sizes, and the systems that stand beside each other.

use clap::ValueEnum;
use serde::Serialize;

/// Messages of one repetition, as RxPerfTests has them.
pub(super) const MESSAGES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Subscriptions, as RxPerfTests has them.
pub(super) const SUBSCRIBERS: [usize; 5] = [1, 2, 4, 8, 16];

/// Values in one call of `next_slice`.
pub(super) const SLICE: usize = 64;

/// Which subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Flavour {
    /// Keeps nothing
    Subject,
    /// Keeps the current value
    Behavior,
    /// Replays everything
    All,
    /// Replays the last value
    One,
    /// Replays the last five
    Many,
    /// Replays the last five seconds
    Within,
    /// Replays the last five of the last five seconds
    ManyWithin,
    /// Gives the last value when it completes
    Async,
}

impl Flavour {
    /// As reports print it.
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

    /// Whether what it keeps is a log, of which each 1,024 values may cost an allocation.
    pub(super) fn keeps_a_log(self) -> bool {
        matches!(self, Self::All | Self::Within)
    }

    /// The load of RxJava that is compared; `rivals/rxjava` has the same names.
    pub(super) fn rxjava_load(self) -> &'static str {
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

/// One call per message, or per slice of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Calls {
    Next,
    NextSlice,
}

/// Whether a producer is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Form {
    /// The producer that `fanline::subject` and its like give.
    Exclusive,
    /// The handle that can be cloned: `Subject`, `ReplaySubject` and their like.
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

/// What is measured under one and the same load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum System {
    Fanline(Form),
    /// What is written by hand for just this load.
    Limit(Form),
    /// Fanline with observers of one known type.
    FanlineOneType,
    /// The same by hand.
    LimitOneType,
    /// Fanline for one thread.
    FanlineLocal,
    RxJava,
    /// What RxJava offers where several threads may emit.
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
        Self::Limit(Form::Exclusive),
        Self::Fanline(Form::Shared),
        Self::Limit(Form::Shared),
        Self::FanlineOneType,
        Self::LimitOneType,
        Self::FanlineLocal,
        Self::RxJava,
        Self::RxJavaSerialized,
        Self::RxJavaThreeClasses,
        Self::RxRustLocal,
        Self::RxRustShared,
        Self::TokioBroadcast,
    ];

    /// As reports print it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Fanline(Form::Exclusive) => "Fanline, exclusive",
            Self::Fanline(Form::Shared) => "Fanline, shared",
            Self::Limit(Form::Exclusive) => "limit, exclusive",
            Self::Limit(Form::Shared) => "limit, shared",
            Self::FanlineOneType => "Fanline, observers of one type",
            Self::LimitOneType => "limit, observers of one type",
            Self::FanlineLocal => "Fanline, LocalSubject",
            Self::RxJava => "RxJava",
            Self::RxJavaSerialized => "RxJava, toSerialized",
            Self::RxJavaThreeClasses => "RxJava, three observer classes",
            Self::RxRustLocal => "rxRust, Local",
            Self::RxRustShared => "rxRust, Shared",
            Self::TokioBroadcast => "tokio broadcast, bursts of 256",
        }
    }

    /// The limit that this is compared with.
    pub(super) fn limit(self) -> Option<Self> {
        match self {
            Self::Fanline(form) => Some(Self::Limit(form)),
            Self::FanlineOneType => Some(Self::LimitOneType),
            _ => None,
        }
    }

    /// The load that a JVM runs for it, if that is where it runs and `flavour` has it.
    pub(super) fn rxjava_load(self, flavour: Flavour) -> Option<&'static str> {
        match (self, flavour) {
            (Self::RxJava, flavour) => Some(flavour.rxjava_load()),
            (Self::RxJavaSerialized, Flavour::Subject) => Some("subject-serialized"),
            (Self::RxJavaThreeClasses, Flavour::Subject) => Some("subject-three-classes"),
            _ => None,
        }
    }
}
