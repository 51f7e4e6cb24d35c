//! `fanline stream gaps`: lists deleted sequences.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::show;
use crate::table::Table;

/// List the gaps between a stream's first and last message.
#[derive(Args, Debug)]
pub(crate) struct GapsArgs {
    /// Name of the stream
    stream: String,
    /// Ignored, for scripts of the nats CLI: this command never prompts
    #[arg(short, long, hide = true)]
    force: bool,
    /// Ignored, for scripts of the nats CLI: this command shows no progress
    #[arg(long, hide = true)]
    no_progress: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl GapsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let gaps = ranges(&jetstream.stream_deleted(&self.stream).await?);
        if self.json.json {
            return print_json(&gaps);
        }
        if gaps.is_empty() {
            eprintln!("Stream {} has no gaps", self.stream);
            return Ok(());
        }
        let mut table = Table::new([">First", ">Last", ">Messages"]);
        for [first, last] in gaps {
            table.row([
                show::count(first),
                show::count(last),
                show::count(last - first + 1),
            ]);
        }
        table.print()
    }
}

/// Merges consecutive sequences into ranges of first and last.
fn ranges(sequences: &[u64]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for sequence in sequences {
        match ranges.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(*sequence) => *last = *sequence,
            _ => ranges.push([*sequence, *sequence]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_sequences_are_one_gap() {
        assert!(ranges(&[]).is_empty());
        assert_eq!(ranges(&[2, 3, 4, 7, 9, 10]), [[2, 4], [7, 7], [9, 10]]);
    }
}
