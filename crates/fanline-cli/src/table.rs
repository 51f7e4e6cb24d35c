//! Aligned tables and lists of details.

use std::io::{BufWriter, Write, stdout};

use comfy_table::{CellAlignment, LineStyle, TableStyle};

use crate::failure::Failure;
use crate::terminal::{Colour, stdout_is_colourful};

/// Only a line below the headings.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));
/// Space between two columns, in cells of a terminal.
const GAP: u16 = 2;

/// A table with headings.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// Creates a table. A heading that begins with `>` is for numbers, which are aligned to the right.
    pub(crate) fn new<const N: usize>(headings: [&'static str; N]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(STYLE);
        table.set_header(headings.map(|heading| heading.strip_prefix('>').unwrap_or(heading)));
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if at + 1 < N { GAP } else { 0 }));
            if headings[at].starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Table(table)
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.add_row(cells);
    }

    pub(crate) fn print(&self) -> Result<(), Failure> {
        let colourful = stdout_is_colourful();
        let mut out = BufWriter::new(stdout().lock());
        for (nth, line) in self.lines().iter().enumerate() {
            match nth {
                0 | 1 => writeln!(out, "{}", Colour::Dim.paint(line, colourful))?,
                _ => writeln!(out, "{line}")?,
            }
        }
        out.flush()?;
        Ok(())
    }

    /// Returns the headings, a line below them, and the rows.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.lines();
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

/// A list of names and values, in sections.
pub(crate) struct Details {
    title: String,
    lines: Vec<Line>,
}

enum Line {
    Section(&'static str),
    Value(String, String),
}

impl Details {
    pub(crate) fn new(title: String) -> Self {
        Details {
            title,
            lines: Vec::new(),
        }
    }

    pub(crate) fn section(&mut self, heading: &'static str) {
        self.lines.push(Line::Section(heading));
    }

    pub(crate) fn value(&mut self, name: &str, value: impl ToString) {
        self.lines
            .push(Line::Value(name.to_owned(), value.to_string()));
    }

    /// Adds a value if it is set.
    pub(crate) fn value_if(&mut self, name: &str, value: impl ToString, is_set: bool) {
        if is_set {
            self.value(name, value);
        }
    }

    pub(crate) fn print(&self) -> Result<(), Failure> {
        let colourful = stdout_is_colourful();
        let mut out = BufWriter::new(stdout().lock());
        writeln!(out, "{}", Colour::Cyan.paint(&self.title, colourful))?;
        let names = self.lines.iter().map(|line| match line {
            Line::Section(_) => 0,
            Line::Value(name, _) => name.chars().count(),
        });
        let widest = names.max().unwrap_or(0);
        for line in &self.lines {
            match line {
                Line::Section(heading) => {
                    writeln!(out, "\n{}\n", Colour::Yellow.paint(heading, colourful))?;
                }
                Line::Value(name, value) => {
                    writeln!(out, "  {name:>widest$}: {value}")?;
                }
            }
        }
        out.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["Name", ">Messages"]);
        table.row(["ORDERS".into(), "1,024".into()]);
        table.row(["käse".into(), "7".into()]);
        let lines = [
            "Name    Messages",
            "────────────────",
            "ORDERS     1,024",
            "käse           7",
        ];
        assert_eq!(table.lines(), lines);
    }
}
