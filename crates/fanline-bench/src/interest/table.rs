//! The figures as text: the same lines on a terminal and in Markdown.

use comfy_table::{Table, TableStyle, presets};

use super::Arguments;
use super::policy::{Changed, FanOut, Policy, Told};
use crate::report::metric::{thousands, three_digits};
use crate::report::table::new_table;

const POLICIES: usize = Policy::ALL.len();

/// Bits of a link of 1 Gbit/s, for one that carries nothing else.
const LINK_BITS_PER_SECOND: f64 = 1e9;

/// All that was counted.
pub(super) struct Figures<'a> {
    pub(super) arguments: &'a Arguments,
    /// Different subjects that anybody wants.
    pub(super) distinct: usize,
    pub(super) told: [Told; POLICIES],
    pub(super) changed: [Changed; POLICIES],
    pub(super) fan_out: [FanOut; POLICIES],
}

impl Figures<'_> {
    /// For people at a terminal.
    pub(super) fn terminal(&self) -> String {
        self.tables(presets::UTF8_FULL_CONDENSED)
    }

    /// As part of a page.
    pub(super) fn markdown(&self) -> String {
        self.tables(presets::ASCII_MARKDOWN)
    }

    fn tables(&self, style: TableStyle) -> String {
        let arguments = self.arguments;
        let (announced, lasting) = (self.announced(style), self.lasting(style));
        format!(
            "{} leafs in {} regions, {} different subjects that somebody wants, seed {}.\n\n\
             {announced}\n\n{lasting}\n",
            thousands(u64::from(arguments.leafs)),
            arguments.regions,
            thousands(self.distinct as u64),
            arguments.seed,
        )
    }

    fn announced(&self, style: TableStyle) -> Table {
        let header = [
            "what leafs are told",
            "lines up",
            "lines down",
            "in all",
            "heaviest link",
            "takes at 1 Gbit/s",
            "filters at a hub",
            "filters at a leaf",
        ];
        let mut table = new_table(style, header.map(str::to_owned).to_vec(), 1);
        for (policy, told) in Policy::ALL.into_iter().zip(&self.told) {
            let seconds = told.heaviest.bytes as f64 * 8.0 / LINK_BITS_PER_SECOND;
            table.add_row([
                policy.label().to_owned(),
                thousands(told.up.count),
                thousands(told.down.count),
                mebibytes(told.up.bytes + told.down.bytes),
                mebibytes(told.heaviest.bytes),
                format!("{} s", three_digits(seconds)),
                thousands(told.hub_filters as u64),
                thousands(told.leaf_filters as u64),
            ]);
        }
        table
    }

    fn lasting(&self, style: TableStyle) -> Table {
        let header = [
            "what leafs are told",
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
