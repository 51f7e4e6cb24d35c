//! The reference page, generated from the table of options.

use std::fmt::Write as _;

use super::table::{Node, Standing, TREE};

/// The text above the options.
const HEAD: &str = include_str!("reference.md");

/// Returns the content of `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    block(&mut page, "Options outside of blocks", &TREE);
    page
}

/// Writes the options of a block, and then the options of its inner blocks.
fn block(page: &mut String, title: &str, nodes: &[Node]) {
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {title}\n\n{TABLE_HEAD}");
    for node in nodes {
        *page += &row(node);
    }
    for node in nodes.iter().filter(|node| !node.within.is_empty()) {
        block(page, &format!("`{}`", shown(&node.key)), &node.within);
    }
}

/// Returns the path of a block, with a placeholder for names that users choose.
fn shown(path: &str) -> String {
    path.replace('*', "NAME")
}

const TABLE_HEAD: &str = "\
| option | type | default | limit | flag | reload | description |
| --- | --- | --- | --- | --- | --- | --- |
";

fn row(node: &Node) -> String {
    let entry = node.about;
    let mut names = format!("`{}`", entry.name);
    for alias in entry.aliases {
        let _ = write!(names, ", `{alias}`");
    }
    let mut help = match entry.standing {
        Standing::Works | Standing::Ignored => entry.help.to_owned(),
        Standing::Warned(sentence) => format!("{} **A warning only**: {sentence}.", entry.help),
        Standing::Refused(sentence) => format!("{} **Refused**: {sentence}.", entry.help),
    };
    if let Some(like) = entry.like {
        let like = shown(like);
        // Anchors of headings are in lower case and have no dots.
        let anchor = like.to_lowercase().replace('.', "");
        let _ = write!(help, " Like [`{like}`](#{anchor}).");
    }
    let flags: Vec<String> = entry
        .flags
        .split(", ")
        .filter(|flag| !flag.is_empty())
        .map(|flag| format!("`{flag}`"))
        .collect();
    let reloads = match (node.is_setting(), entry.reloads) {
        (true, true) => "yes",
        (true, false) => "no",
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
