//! Notes on other libraries that are faster than Fanline in the grid.

use super::grid::{Calls, Form, System};
use super::outcome::{Cell, Load, Report};
use crate::report::behind::{Better, line};
use crate::report::metric::thousands;

/// Returns a line for each cell and each faster library.
pub(super) fn lines(report: &Report) -> Vec<String> {
    report.cells.iter().flat_map(of_cell).collect()
}

/// Returns the systems with which a form is compared. The exclusive form is compared with systems for one
/// thread, and the shared form with systems for several threads. RxJava's plain subject is in both lists: it
/// is made for one emitting thread, but programs use it for both.
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
        load.flavor.title(),
        form.label(),
        thousands(load.messages.into()),
        load.subscribers
    )
}
