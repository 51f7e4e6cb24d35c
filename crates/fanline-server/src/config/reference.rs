//! The reference page, written from the table of options.

use std::fmt::Write as _;

use super::table::{self, Entry, Standing};

/// What stands above the options.
const HEAD: &str = include_str!("reference.md");

/// The content of `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    let mut blocks = Vec::new();
    for entry in table::all() {
        if !blocks.contains(&entry.block()) {
            blocks.push(entry.block());
        }
    }
    // Those outside of all blocks come first.
    blocks.sort_by_key(|block| !block.is_empty());
    for block in blocks {
        let title = match block {
            "" => "Options outside of blocks".into(),
            block => format!("`{}`", shown(block)),
        };
        // Writing to a String does not fail.
        let _ = write!(page, "\n## {title}\n\n{TABLE_HEAD}");
        for entry in table::all().filter(|entry| entry.block() == block) {
            page += &row(entry);
        }
    }
    page
}

/// A path of options, with a word where people put a name of their own.
fn shown(path: &str) -> String {
    path.replace('*', "NAME")
}

const TABLE_HEAD: &str = "\
| option | kind | default | limit | flag | reload | what it is |
| --- | --- | --- | --- | --- | --- | --- |
";

fn row(entry: &Entry) -> String {
    let mut names = format!("`{}`", entry.name());
    for alias in entry.aliases {
        let _ = write!(names, ", `{alias}`");
    }
    let mut help = match entry.standing {
        Standing::Works { .. } | Standing::Within => entry.help.to_owned(),
        Standing::Warned(sentence) => format!("{} **A warning only**: {sentence}.", entry.help),
        Standing::Refused(sentence) => format!("{} **Refused**: {sentence}.", entry.help),
    };
    if let Some(like) = entry.like {
        let like = shown(like);
        // Anchors of headings are in lower case and have no dots.
        let anchor = like.to_lowercase().replace('.', "");
        let _ = write!(help, " As [`{like}`](#{anchor}).");
    }
    let flags: Vec<String> = entry
        .flags
        .split(", ")
        .filter(|flag| !flag.is_empty())
        .map(|flag| format!("`{flag}`"))
        .collect();
    let reloads = match entry.standing {
        Standing::Works { .. } if entry.reloads => "yes",
        Standing::Works { .. } => "no",
        _ => "",
    };
    format!(
        "| {names} | {} | {} | {} | {} | {reloads} | {} |\n",
        entry.kind.word(),
        entry.default,
        entry.limit,
        flags.join(", "),
        help.trim_start(),
    )
}
