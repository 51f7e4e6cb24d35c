//! Where a rival is ahead in the grid.

use super::grid::{Calls, Form, System};
use super::outcome::{Cell, Load, Report};
use crate::report::behind::{Better, line};
use crate::report::metric::thousands;

/// A line for each cell and rival.
pub(super) fn lines(report: &Report) -> Vec<String> {
    report.cells.iter().flat_map(of_cell).collect()
}

/// Whom a form stands beside: one producer alone, or those that several threads may emit into. RxJava's
/// own subjects are for one thread, and are what its users take for either.
fn rivals(form: Form) -> &'static [System] {
    match form {
        Form::Exclusive => &[
            System::RxJava,
            System::RxJavaThreeClasses,
            System::RxRustLocal,
        ],
        Form::Shared => &[
            System::RxJava,
            System::RxJavaSerialized,
            System::RxRustShared,
            System::TokioBroadcast,
        ],
    }
}

fn of_cell(cell: &Cell) -> Vec<String> {
    let mut lines = Vec::new();
    for form in Form::BOTH {
        for rival in rivals(form) {
            let ratio = cell.ratio(System::Fanline(form), *rival);
            lines.extend(ratio.and_then(|ratio| {
                line(rival.label(), &what(cell.load, form), ratio, Better::More)
            }));
        }
    }
    lines
}

fn what(load: Load, form: Form) -> String {
    let slices = match load.calls {
        Calls::Next => "",
        Calls::NextSlice => " in slices",
    };
    format!(
        "{}, {}, {} messages{slices} to {}",
        load.flavour.title(),
        form.label(),
        thousands(load.messages.into()),
        load.subscribers
    )
}
