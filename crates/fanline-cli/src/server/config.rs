//! `fanline config`: checks and prints configurations.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use fanline_server::config::{self, Loaded};
use serde_json::Value;

use crate::failure::Failure;
use crate::server::compat;
use crate::server::serve::ServeArgs;

/// Commands for configurations.
#[derive(Subcommand, Debug)]
pub(crate) enum ConfigCommand {
    /// Check a configuration file
    #[command(after_help = "\
Example:
  fanline config check /etc/fanline.conf

Exit codes: 0 valid, 1 invalid.")]
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print the effective settings, with secrets masked
    #[command(after_help = "\
Examples:
  fanline config show                     settings of `fanline serve`
  fanline config show fanline.conf        settings of `fanline -c fanline.conf`
  fanline config show fanline.conf --json")]
    Show {
        /// Configuration file
        file: Option<PathBuf>,
        /// Configuration file, as an option like in other commands
        #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the reference of all options as Markdown
    Reference,
}

impl ConfigCommand {
    pub(crate) fn run(self) -> ExitCode {
        let outcome = match self {
            ConfigCommand::Check { file } => {
                return match config::load(&file) {
                    Ok(loaded) => report(&loaded),
                    Err(error) => Failure::Error(error.to_string()).report("fanline"),
                };
            }
            ConfigCommand::Show { file, config, json } => {
                let loaded = match file.or(config) {
                    Some(file) => compat::effective(&file),
                    None => ServeArgs::default().loaded().map_err(|e| e.to_string()),
                };
                loaded
                    .map(|loaded| show(&loaded, json))
                    .map_err(Failure::Error)
            }
            ConfigCommand::Reference => Ok(config::reference()),
        };
        let written = outcome.and_then(|text| {
            let mut stdout = std::io::stdout();
            Ok(stdout.write_all(text.as_bytes())?)
        });
        match written {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report("fanline"),
        }
    }
}

/// Reports that a file is valid, with its warnings.
pub(crate) fn report(loaded: &Loaded) -> ExitCode {
    if let Err(error) = loaded.check_files() {
        return Failure::Error(error.to_string()).report("fanline");
    }
    for warning in loaded.warnings() {
        eprintln!("warning: {warning}");
    }
    if let Some(origin) = &loaded.options.origin {
        println!("{} is valid ({})", origin.path.display(), origin.digest);
    }
    ExitCode::SUCCESS
}

fn show(loaded: &Loaded, json: bool) -> String {
    let settings = loaded.settings();
    if json {
        let fields = settings
            .into_iter()
            .map(|setting| (setting.key.to_owned(), setting.value));
        let fields: serde_json::Map<String, Value> = fields.collect();
        return format!("{:#}\n", Value::Object(fields));
    }
    let width = settings.iter().map(|s| s.key.len()).max().unwrap_or(0);
    let mut text = String::new();
    for setting in settings {
        let value = match setting.value {
            Value::Null => "-".into(),
            value => value.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:width$}  {value}", setting.key);
    }
    text
}
