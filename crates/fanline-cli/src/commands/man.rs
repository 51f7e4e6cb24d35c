//! `fanline man`: the manual, as man pages or as one Markdown page.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Arg, Args, Command, CommandFactory, Id};
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
    /// Print all commands as one Markdown page
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

impl ManArgs {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let command = Cli::command();
        match &self.folder {
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                clap_mangen::generate_to(command, folder)?;
            }
            None if self.markdown => std::io::stdout().write_all(reference(command).as_bytes())?,
            None => {
                let mut page = Vec::new();
                Man::new(command).render(&mut page)?;
                std::io::stdout().write_all(&page)?;
            }
        }
        Ok(())
    }
}

/// Returns the reference page of all commands.
fn reference(mut command: Command) -> String {
    command.build();
    let mut page = String::from(
        "# Commands\n\nWritten by `fanline man --markdown`. `fanline help COMMAND` prints the same with examples. Every command \
         that\ntalks to a server takes the options of [`fanline rtt`](#fanline-rtt), which name it.\n",
    );
    let rtt = command.find_subcommand("rtt").cloned().unwrap_or_default();
    let connection: Vec<&Id> = rtt.get_arguments().map(Arg::get_id).collect();
    describe(&command, &connection, &mut page);
    page
}

/// Appends a command and the commands below it. Arguments that choose the server are listed once.
fn describe(command: &Command, connection: &[&Id], page: &mut String) {
    let name = command.get_bin_name().unwrap_or("fanline");
    if !command.has_subcommands() || command.get_arguments().any(|arg| !arg.is_global_set()) {
        let about = command.get_about().map(ToString::to_string);
        // Writing into a string cannot fail.
        let _ = write!(page, "\n## {name}\n\n{}.\n", about.unwrap_or_default());
        let is_listed = |arg: &&Arg| {
            let is_repeated = connection.contains(&arg.get_id()) && command.get_name() != "rtt";
            !(is_repeated || arg.is_hide_set() || arg.get_id() == "help")
        };
        let arguments = command.get_arguments().filter(is_listed);
        let rows: Vec<String> = arguments.map(row).collect();
        if !rows.is_empty() {
            let _ = write!(page, "\n| argument | |\n| --- | --- |\n{}", rows.concat());
        }
    }
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        if below.get_name() != "help" {
            describe(below, connection, page);
        }
    }
}

fn row(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let takes_values = arg.get_action().takes_values();
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let name = match (name.is_empty(), takes_values) {
        (true, _) => format!("<{values}>"),
        (false, true) => format!("{name} <{values}>"),
        (false, false) => name,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.replace('\n', " ").replace('|', "\\|");
    format!("| `{name}` | {help} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_is_current() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/commands.md"
        );
        let written = std::fs::read_to_string(page).unwrap();
        assert!(
            written == reference(Cli::command()),
            "run: fanline man --markdown > docs/reference/commands.md"
        );
    }
}
