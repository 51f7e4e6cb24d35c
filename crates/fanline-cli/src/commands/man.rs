//! `fanline man`: the manual.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::Failure;

/// Print the manual page, or write one for each command into a folder.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline man | man -l -
  fanline man --folder /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write fanline.1, fanline-serve.1 and so on there
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let command = Cli::command();
        match &self.folder {
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                clap_mangen::generate_to(command, folder)?;
            }
            None => {
                let mut page = Vec::new();
                Man::new(command).render(&mut page)?;
                std::io::Write::write_all(&mut std::io::stdout(), &page)?;
            }
        }
        Ok(())
    }
}
