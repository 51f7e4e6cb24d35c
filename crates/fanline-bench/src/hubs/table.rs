//! The results as text. The tables are the same for a terminal and in Markdown.

use std::fmt::Write;

use comfy_table::{Table, TableStyle, presets};

use super::load::{Cell, Load, Part, System};
use super::measure::{Report, Row};
use super::others::SLOW_WORK;
use super::targets::{self, LAW_BUFFERS, count, delivery, law};
use crate::report;
use crate::report::behind::{self, Better};
use crate::report::metric::{Metric, spread, three_digits};
use crate::report::table::new_table;

/// Returns the report for a terminal.
pub(super) fn terminal(report: &Report) -> String {
    page(report, presets::UTF8_FULL_CONDENSED, "")
}

/// Returns the report as a page.
pub(super) fn markdown(report: &Report) -> String {
    let text = page(report, presets::ASCII_MARKDOWN, "## ");
    format!("# Hubs: Fanline beside its rivals\n\n{text}")
}

/// Returns the targets as text.
pub(super) fn list(report: &Report) -> String {
    let lines = targets::lines(report).into_iter();
    let mut text = String::new();
    for line in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:74}{:12}{}", line.what, line.target(), line.cells);
    }
    text
}

fn page(report: &Report, style: TableStyle, heading: &str) -> String {
    let mut tables = vec![("Targets".to_owned(), targets(report, style))];
    for (threads, buffer) in grids(report) {
        let title = format!(
            "Broadcast, {threads} thread(s), buffer {buffer}: elements/s (deliveries/s) by consumers"
        );
        tables.push((title, lockstep(report, threads, buffer, style)));
    }
    tables.push((
        "What a delivery costs on one thread, ns, by consumers".to_owned(),
        cost(report, style),
    ));
    for part in [
        Part::JoinLeave,
        Part::Memory,
        Part::Allocations,
        Part::Slow,
        Part::Latency,
        Part::Merge,
        Part::Partition,
    ] {
        tables.push((title(part), of_part(report, part, style)));
    }
    let mut text = String::new();
    for (title, table) in tables.iter().filter(|(_, table)| !table.is_empty()) {
        let _ = writeln!(text, "{heading}{title}\n\n{table}\n");
    }
    for note in notes(report) {
        let sign = if heading.is_empty() { "" } else { "- " };
        let _ = writeln!(text, "{sign}{note}");
    }
    text
}

fn targets(report: &Report, style: TableStyle) -> Table {
    let header = ["what", "of consumers", "measured", "target", "verdict"];
    let mut table = new_table(style, header.map(str::to_owned).to_vec(), header.len());
    for line in targets::lines(report) {
        table.add_row(vec![
            line.what.clone(),
            line.cells.clone(),
            line.measured(),
            line.target(),
            line.verdict().label().to_owned(),
        ]);
    }
    table
}

fn cells(report: &Report) -> impl Iterator<Item = (Cell, &Row)> {
    let rows = report.rows.iter();
    rows.filter_map(|row| match row.load {
        Load::Lockstep(cell) => Some((cell, row)),
        _ => None,
    })
}

/// Returns the combinations of threads and buffers.
fn grids(report: &Report) -> Vec<(usize, usize)> {
    let mut grids: Vec<_> = cells(report)
        .map(|(cell, _)| (cell.threads, cell.buffer))
        .collect();
    grids.sort_unstable();
    grids.dedup();
    grids
}

fn lockstep(report: &Report, threads: usize, buffer: usize, style: TableStyle) -> Table {
    let columns = cells(report)
        .filter(|(cell, _)| (cell.threads, cell.buffer) == (threads, buffer))
        .collect::<Vec<_>>();
    let mut header = vec!["system".to_owned()];
    header.extend(columns.iter().map(|(cell, _)| count(cell.consumers)));
    let mut table = new_table(style, header, 1);
    let rows = columns.iter().map(|(_, row)| *row);
    for system in systems(rows) {
        let rates = columns.iter().map(|(cell, row)| {
            let elements = row.value(system)?;
            let deliveries = elements * cell.consumers as f64;
            let (elements, deliveries) = (
                Metric::Rate.format(elements),
                Metric::Rate.format(deliveries),
            );
            Some(format!("{elements} ({deliveries})"))
        });
        table.add_row(line(system.name(), rates));
        if system.is_rival() {
            let ratios = columns.iter().map(|(_, row)| {
                let ratio = row.ratio(System::Stream, system)?;
                Some(format!("{}×", three_digits(ratio)))
            });
            table.add_row(line("    the hub's stream is", ratios));
        }
    }
    table
}

/// Returns the systems that have a result in at least one row.
fn systems<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<System> {
    let mut systems: Vec<System> = rows
        .flat_map(|row| row.results.iter().map(|result| result.system))
        .collect();
    systems.sort_unstable();
    systems.dedup();
    systems
}

fn line(title: &str, results: impl Iterator<Item = Option<String>>) -> Vec<String> {
    let mut line = vec![title.to_owned()];
    line.extend(results.map(Option::unwrap_or_default));
    line
}

fn cost(report: &Report, style: TableStyle) -> Table {
    let mut consumers = Vec::new();
    for row in &report.rows {
        if let Load::Law(cell) | Load::Lockstep(cell) = row.load
            && cell.threads == 1
        {
            consumers.push(cell.consumers);
        }
    }
    consumers.sort_unstable();
    consumers.dedup();
    let mut header = ["buffer", "at most", "system"].map(str::to_owned).to_vec();
    header.extend(consumers.iter().map(|consumers| count(*consumers)));
    let mut table = new_table(style, header, 0);
    for buffer in LAW_BUFFERS {
        for system in [System::Stream, System::Floor] {
            let results = consumers.iter().map(|consumers| {
                let cell = Cell {
                    threads: 1,
                    buffer,
                    consumers: *consumers,
                };
                delivery(report, cell, system).map(three_digits)
            });
            let results: Vec<Option<String>> = results.collect();
            if results.iter().any(Option::is_some) {
                let mut row = match system {
                    System::Floor => vec![String::new(); 2],
                    _ => vec![buffer.to_string(), three_digits(law(buffer))],
                };
                row.extend(line(system.name(), results.into_iter()));
                table.add_row(row);
            }
        }
    }
    table
}

fn title(part: Part) -> String {
    let title = match part {
        Part::JoinLeave => "A consumer comes and goes: ns a pair, by consumers present",
        Part::Memory => "Memory for each consumer, its handle included, bytes",
        Part::Allocations => "Allocations for each element, by consumers",
        Part::Slow => {
            let micros = SLOW_WORK.as_micros();
            return format!(
                "One consumer that works {micros} µs on each element: elements/s, by fast ones beside it"
            );
        }
        Part::Latency => "From before a send to the last receive, µs, by consumers",
        Part::Merge => "Merge hub: elements/s, by producers",
        Part::Partition => "Partition hub, in turn: elements/s, by consumers",
        Part::Lockstep | Part::Law => "",
    };
    title.to_owned()
}

/// Returns a table of one part. It has a line for each number of threads and system, and a column for each
/// number of peers.
fn of_part(report: &Report, part: Part, style: TableStyle) -> Table {
    let rows = report.rows.iter().filter(|row| row.load.part() == part);
    let rows = rows.collect::<Vec<_>>();
    let (mut threads, mut columns): (Vec<usize>, Vec<usize>) =
        rows.iter().map(|row| place(row.load)).unzip();
    for places in [&mut threads, &mut columns] {
        places.sort_unstable();
        places.dedup();
    }
    let mut header = vec!["system".to_owned()];
    header.extend(columns.iter().map(|column| count(*column)));
    let mut table = new_table(style, header, 1);
    for threads in threads {
        for system in systems(rows.iter().copied()) {
            let results = columns.iter().map(|column| {
                let is_here = |row: &&&Row| place(row.load) == (threads, *column);
                let row = rows.iter().find(is_here)?;
                Some(write(row.load, row.value(system)?))
            });
            let title = match threads {
                0 => system.name().to_owned(),
                threads => format!("{threads} thread(s), {}", system.name()),
            };
            table.add_row(line(&title, results));
        }
    }
    table
}

/// Returns the number of threads (0 if the load does not vary it) and the number of peers.
fn place(load: Load) -> (usize, usize) {
    match load {
        Load::Lockstep(cell) | Load::Law(cell) => (cell.threads, cell.consumers),
        Load::JoinLeave { present } => (0, present),
        Load::Memory { consumers } | Load::Allocations { consumers } => (0, consumers),
        Load::Slow { threads, fast } => (threads, fast),
        Load::Merge { threads, producers } => (threads, producers),
        Load::Latency { threads, consumers } | Load::Partition { threads, consumers } => {
            (threads, consumers)
        }
    }
}

fn write(load: Load, value: f64) -> String {
    match load {
        Load::Allocations { .. } if value == 0.0 => "0".to_owned(),
        Load::Allocations { .. } => format!("{value:.5}"),
        Load::JoinLeave { .. } | Load::Memory { .. } | Load::Latency { .. } => three_digits(value),
        _ => Metric::Rate.format(value),
    }
}

fn notes(report: &Report) -> Vec<String> {
    let (machine, plan) = (&report.machine, &report.plan);
    let verdicts = targets::lines(report).into_iter();
    let mut notes = vec![
        format!(
            "Targets: {} (not measured, or not in all cells).",
            report::count(verdicts.map(|line| line.verdict()))
        ),
        format!(
            "Machine: {} cores, {}, Linux {}.",
            machine.cores, machine.cpu, machine.kernel
        ),
        format!(
            "Medians of {} rounds; each round runs every system of a cell once, in alternating \
             order, after two runs to warm up. A run has {} elements, fewer if a system would take \
             more than {} ms (in the cost law at least 30 µs per consumer), and is timed from \
             before the hub is created until the last consumer has ended. Every consumer checks every element, value and order.",
            plan.rounds, plan.elements, plan.run_millis
        ),
        "One thread is tokio's current-thread runtime, two are its multi-thread runtime with two \
         workers. (feed): consumers are woken when the buffer is full; (send each): for each element."
            .to_owned(),
    ];
    if !report.rivals.is_empty() {
        notes.push(format!("Rivals: {}.", report.rivals.join("; ")));
        notes.push(
            "tokio's broadcast overwrites old values, so the sender waits after each full buffer until all \
             consumers have read it. Pekko has its dispatcher's threads in every cell, one of which sends; \
             each of its consumers is a stream of one stage; it is not run with more than 2,000 consumers, since \
             each run would take minutes."
                .to_owned(),
        );
    }
    if !report.crashes.is_empty() {
        let count = report.crashes.len();
        let first = &report.crashes[0];
        notes.push(format!(
            "JVMs that crashed and were restarted: {count} ({first})."
        ));
    }
    notes.push(
        "The floor is written by hand for one thread (src/hubs/floor.rs, with its omissions): the \
         cost of the runtime to wake and poll tasks, and one read per delivery."
            .to_owned(),
    );
    notes.push(
        "Merge and partition: 256 buffered elements per producer or consumer; tokio's mpsc has \
         one bound of the same sum for all producers, or one channel per consumer."
            .to_owned(),
    );
    let results = report.rows.iter().flat_map(|row| &row.results);
    notes.extend(spread(results.map(|result| result.value)));
    notes.push(format!("Command: `{}`", report.command));
    notes.extend(report.rows.iter().flat_map(behind_rivals));
    notes
}

/// Returns a line for each other system whose result is better than that of Fanline's hub. If the load has
/// several of Fanline's APIs, the comparison uses the result of the first one.
fn behind_rivals(row: &Row) -> Vec<String> {
    let Some(own) = row.load.systems(0).first().copied() else {
        return Vec::new();
    };
    let better = match row.load.elements_min() {
        Some(_) => Better::More,
        None => Better::Less,
    };
    let systems = row.results.iter().map(|result| result.system);
    let rivals = systems.filter(|system| system.is_rival());
    let lines = rivals.filter_map(|rival| {
        let ratio = row.ratio(own, rival)?;
        behind::line(rival.name(), &what(row.load), ratio, better)
    });
    lines.collect()
}

/// Returns a load as text.
fn what(load: Load) -> String {
    if let Load::Lockstep(_) | Load::Law(_) = load {
        return load.describe();
    }
    let (threads, others) = place(load);
    let threads = match threads {
        0 => String::new(),
        threads => format!("{threads} thread(s), "),
    };
    format!("{}: {threads}{}", title(load.part()), count(others))
}
