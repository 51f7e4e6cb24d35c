//! `fanline completions`: completion scripts for shells.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::args::Cli;
use crate::failure::Failure;

/// Print a completion script for a shell.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline completions bash > /etc/bash_completion.d/fanline
  fanline completions fish > ~/.config/fish/completions/fanline.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "fanline", &mut script);
        Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?)
    }
}
