//! Output of messages.

use std::io::{self, BufWriter, Stdout, Write, stdout};

use clap::Args;
use fanline_client::Message;

use crate::terminal::{Colour, stdout_is_colourful};

/// Options for the output of messages.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print payloads only, each with a line end
    #[arg(long)]
    raw: bool,
    /// Print subjects and headers without payloads
    #[arg(long, conflicts_with = "raw")]
    headers_only: bool,
    /// Print the time of arrival
    #[arg(long, conflicts_with = "raw")]
    timestamps: bool,
}

/// A printer of messages that writes them in batches.
pub(crate) struct Printer {
    args: OutputArgs,
    out: BufWriter<Stdout>,
    colourful: bool,
    printed: u64,
}

impl Printer {
    pub(crate) fn new(args: OutputArgs) -> Self {
        let out = BufWriter::with_capacity(64 * 1024, stdout());
        Printer {
            args,
            out,
            colourful: stdout_is_colourful(),
            printed: 0,
        }
    }

    /// Returns the number of printed messages.
    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    /// Prints one message. It is visible after [`flush`](Printer::flush).
    pub(crate) fn print(&mut self, message: &Message) -> io::Result<()> {
        self.printed += 1;
        if !self.args.raw {
            self.print_head(message)?;
        }
        if !self.args.headers_only {
            self.out.write_all(message.payload())?;
            self.out.write_all(b"\n")?;
            if !self.args.raw {
                self.out.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn print_head(&mut self, message: &Message) -> io::Result<()> {
        let paint = |colour: Colour, text: &str| colour.paint(text, self.colourful);
        write!(self.out, "[#{}]", self.printed)?;
        if self.args.timestamps {
            let now = jiff::Zoned::now().strftime("%H:%M:%S%.6f").to_string();
            write!(self.out, " {}", paint(Colour::Dim, &now))?;
        }
        write!(
            self.out,
            " Received on \"{}\"",
            paint(Colour::Cyan, message.subject())
        )?;
        if let Some(reply) = message.reply() {
            write!(self.out, " with reply \"{}\"", paint(Colour::Dim, reply))?;
        }
        writeln!(self.out)?;
        if let Some(status) = message.status() {
            writeln!(self.out, "{}: {status}", paint(Colour::Yellow, "Status"))?;
        }
        let mut has_headers = message.status().is_some();
        for (name, value) in message
            .headers()
            .into_iter()
            .flat_map(|headers| headers.iter())
        {
            writeln!(self.out, "{}: {value}", paint(Colour::Green, name))?;
            has_headers = true;
        }
        if has_headers {
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// Flushes the output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
