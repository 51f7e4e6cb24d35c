//! Fanline's subjects behind one trait, because their types differ. `replay` and `footprint` measure them.

use std::convert::Infallible;

use fanline::policy::{Flavor, Policy};
use fanline::{Guard, LocalSubject, Producer, SharedSubject, Source};

use crate::report::versions::built_with;
use crate::rxjava::RxJava;

/// Names of Fanline's forms in reports.
pub(crate) const EXCLUSIVE: &str = "Fanline, exclusive";
pub(crate) const SHARED: &str = "Fanline, shared";
pub(crate) const LOCAL: &str = "Fanline, LocalSubject";

/// A handle that can be cloned, or a pair of a producer and a source.
pub(crate) trait Emits<T>: 'static {
    fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard;
    fn next(&mut self, value: T);
    fn next_slice(&mut self, values: &[T]);
    fn complete(self);
}

impl<T: Clone + Send + Sync + 'static, P: Policy + 'static> Emits<T>
    for (Producer<T, Infallible, P>, Source<T>)
{
    fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard {
        self.1.subscribe(next)
    }

    #[inline(always)]
    fn next(&mut self, value: T) {
        self.0.next(value);
    }

    #[inline(always)]
    fn next_slice(&mut self, values: &[T]) {
        self.0.next_slice(values);
    }

    fn complete(self) {
        self.0.complete();
    }
}

macro_rules! forward {
    () => {
        fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard {
            Self::subscribe(self, next)
        }

        #[inline(always)]
        fn next(&mut self, value: T) {
            Self::next(self, value);
        }

        #[inline(always)]
        fn next_slice(&mut self, values: &[T]) {
            Self::next_slice(self, values);
        }

        fn complete(self) {
            Self::complete(&self);
        }
    };
}

impl<T: Clone + Send + Sync + 'static, P: Flavor> Emits<T> for SharedSubject<T, Infallible, P> {
    forward!();
}

impl<T: Clone + 'static> Emits<T> for LocalSubject<T> {
    forward!();
}

/// Returns the version of the crate or the JVM that provides a system, or an empty text for Fanline.
pub(crate) fn version(system: &str, rxjava: Option<&RxJava>) -> String {
    match (system.split([' ', ',']).next(), rxjava) {
        (Some("rxRust"), _) => built_with(&["rxrust"]),
        (Some("tokio"), _) => built_with(&["tokio"]),
        (_, Some(rxjava)) if system == "RxJava" => rxjava.version.clone(),
        _ => String::new(),
    }
}
