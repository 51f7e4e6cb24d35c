//! Aligned tables and lists of details.

use std::io::{BufWriter, Write, stdout};

use crate::failure::Failure;
use crate::terminal::{Colour, stdout_is_colourful};

/// Space between two columns.
const GAP: &str = "  ";

/// A table with headings.
pub(crate) struct Table {
    headings: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl Table {
    /// Creates a table. A heading that begins with `>` is for numbers, which are aligned to the right.
    pub(crate) fn new<const N: usize>(headings: [&'static str; N]) -> Self {
        let headings = headings.map(|heading| match heading.strip_prefix('>') {
            Some(heading) => (heading, Align::Right),
            None => (heading, Align::Left),
        });
        Table {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
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
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| width(cell)).max().unwrap_or(0);
                widest.max(width(self.headings[column].0))
            })
            .collect();
        let line = |cells: &[&str]| -> String {
            let cells = cells.iter().zip(&self.headings).zip(&widths);
            let padded = cells.map(|((cell, (_, align)), width)| pad(cell, *width, *align));
            padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        };
        let headings: Vec<&str> = self.headings.iter().map(|(heading, _)| *heading).collect();
        let all_widths = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            line(&cells)
        });
        [line(&headings), "─".repeat(all_widths)]
            .into_iter()
            .chain(rows)
            .collect()
    }
}

/// Returns the width in characters, which suffices for names and numbers.
fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, to: usize, align: Align) -> String {
    let room = " ".repeat(to.saturating_sub(width(text)));
    match align {
        Align::Left => format!("{text}{room}"),
        Align::Right => format!("{room}{text}"),
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
            Line::Value(name, _) => width(name),
        });
        let widest = names.max().unwrap_or(0);
        for line in &self.lines {
            match line {
                Line::Section(heading) => {
                    writeln!(out, "\n{}\n", Colour::Yellow.paint(heading, colourful))?;
                }
                Line::Value(name, value) => {
                    writeln!(out, "  {}: {value}", pad(name, widest, Align::Right))?;
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
