//! The results as text: the same lines for a terminal and in Markdown.

use comfy_table::{Table, TableStyle, presets};

use super::Arguments;
use super::policy::{Changed, Distribution, FanOut, Policy};
use crate::report::metric::{thousands, three_digits};
use crate::report::table::new_table;

const POLICIES: usize = Policy::ALL.len();

/// Bits per second of a link of 1 Gbit/s without other traffic.
const LINK_BITS_PER_SECOND: f64 = 1e9;

/// All counts.
pub(super) struct Measurements<'a> {
    pub(super) arguments: &'a Arguments,
    /// Number of different subjects with interest.
    pub(super) distinct: usize,
    pub(super) distribution: [Distribution; POLICIES],
    pub(super) changed: [Changed; POLICIES],
    pub(super) fan_out: [FanOut; POLICIES],
}

impl Measurements<'_> {
    /// Returns the report for a terminal.
    pub(super) fn terminal(&self) -> String {
        self.tables(presets::UTF8_FULL_CONDENSED)
    }

    /// Returns the report as a section of a page.
    pub(super) fn markdown(&self) -> String {
        self.tables(presets::ASCII_MARKDOWN)
    }

    fn tables(&self, style: TableStyle) -> String {
        let arguments = self.arguments;
        let (announced, lasting) = (self.announced(style), self.lasting(style));
        format!(
            "{} leaf nodes in {} regions, {} different subjects with interest, seed {}.\n\n\
             {announced}\n\n{lasting}\n",
            thousands(u64::from(arguments.leafs)),
            arguments.regions,
            thousands(self.distinct as u64),
            arguments.seed,
        )
    }

    fn announced(&self, style: TableStyle) -> Table {
        let header = [
            "interest sent to leaf nodes",
            "lines up",
            "lines down",
            "in all",
            "heaviest link",
            "takes at 1 Gbit/s",
            "filters at a hub",
            "filters at a leaf",
        ];
        let mut table = new_table(style, header.map(str::to_owned).to_vec(), 1);
        for (policy, distribution) in Policy::ALL.into_iter().zip(&self.distribution) {
            let seconds = distribution.heaviest.bytes as f64 * 8.0 / LINK_BITS_PER_SECOND;
            table.add_row([
                policy.label().to_owned(),
                thousands(distribution.up.count),
                thousands(distribution.down.count),
                mebibytes(distribution.up.bytes + distribution.down.bytes),
                mebibytes(distribution.heaviest.bytes),
                format!("{} s", three_digits(seconds)),
                thousands(distribution.hub_filters as u64),
                thousands(distribution.leaf_filters as u64),
            ]);
        }
        table
    }

    fn lasting(&self, style: TableStyle) -> Table {
        let header = [
            "interest sent to leaf nodes",
            "lines up for a change",
            "lines down",
            "links for a message",
            "of them useless",
            "delivered",
        ];
        let mut table = new_table(style, header.map(str::to_owned).to_vec(), 1);
        let lasting = self.changed.iter().zip(&self.fan_out);
        for (policy, (changed, fan_out)) in Policy::ALL.into_iter().zip(lasting) {
            let each = |sum: u64, of: u32| three_digits(sum as f64 / f64::from(of.max(1)));
            let share = |part: u64, whole: u64| {
                format!(
                    "{} %",
                    three_digits(100.0 * part as f64 / whole.max(1) as f64)
                )
            };
            table.add_row([
                policy.label().to_owned(),
                each(changed.up, self.arguments.changes),
                each(changed.down, self.arguments.changes),
                each(fan_out.crossings, self.arguments.publications),
                share(fan_out.useless, fan_out.crossings),
                share(fan_out.delivered, fan_out.wanted),
            ]);
        }
        table
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", three_digits(bytes as f64 / (1024.0 * 1024.0)))
}
