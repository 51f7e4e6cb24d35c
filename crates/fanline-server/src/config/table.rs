//! What an option is: one entry says all there is to say of it.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::Loaded;
use super::draft::Draft;
use super::options;
use super::read::{Given, Read};

/// Takes an option's value over.
pub(super) type Apply = fn(&mut Draft, &Given<'_>) -> Read<()>;
/// Tells an option's value in effect.
pub(super) type Show = fn(&Loaded) -> Json;

/// One option of the configuration.
pub(super) struct Entry {
    /// Where it stands: names of blocks, and its own, joined by points. `*` is any name.
    pub(super) key: &'static str,
    /// Other names, of the same block.
    pub(super) aliases: &'static [&'static str],
    /// Flags that override it.
    pub(super) flags: &'static str,
    pub(super) kind: Kind,
    /// What holds when it is not there.
    pub(super) default: &'static str,
    /// What is allowed.
    pub(super) limit: &'static str,
    /// Whether a reload may change it.
    pub(super) reloads: bool,
    /// Whether its value must not be shown.
    pub(super) is_secret: bool,
    pub(super) standing: Standing,
    /// The block that has the same options in it.
    pub(super) like: Option<&'static str>,
    pub(super) help: &'static str,
}

/// What becomes of an option.
#[derive(Clone, Copy)]
pub(super) enum Standing {
    Works {
        apply: Apply,
        show: Show,
    },
    /// Its block reads it.
    Within,
    /// It is said loudly, and nothing else happens: every deployment carries it.
    Warned(&'static str),
    /// The configuration is refused.
    Refused(&'static str),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Integer,
    Size,
    Port,
    Address,
    Duration,
    Text,
    Texts,
    Path,
    Block,
    Blocks,
    Any,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Bool => "boolean",
            Kind::Integer => "number",
            Kind::Size => "size",
            Kind::Port => "port",
            Kind::Address => "`host:port` or port",
            Kind::Duration => "duration",
            Kind::Text => "text",
            Kind::Texts => "text or list of texts",
            Kind::Path => "path",
            Kind::Block => "block",
            Kind::Blocks => "list of blocks",
            Kind::Any => "as in nats-server",
        }
    }
}

/// An option that works.
pub(super) const fn works(key: &'static str, kind: Kind, apply: Apply, show: Show) -> Entry {
    entry(key, kind, Standing::Works { apply, show })
}

/// An option that its block reads, and that has a value of its own to be shown and reloaded.
pub(super) const fn shown(key: &'static str, kind: Kind, show: Show) -> Entry {
    works(key, kind, |_, _| Ok(()), show)
}

/// An option that its block reads.
pub(super) const fn within(key: &'static str, kind: Kind) -> Entry {
    entry(key, kind, Standing::Within)
}

/// A block of which only a warning comes.
#[allow(
    dead_code,
    reason = "for options that may be ignored without making the server less safe"
)]
pub(super) const fn warned(key: &'static str, kind: Kind, sentence: &'static str) -> Entry {
    entry(key, kind, Standing::Warned(sentence))
}

/// An option that stops the start.
pub(super) const fn refused(key: &'static str, kind: Kind, sentence: &'static str) -> Entry {
    entry(key, kind, Standing::Refused(sentence))
}

const fn entry(key: &'static str, kind: Kind, standing: Standing) -> Entry {
    Entry {
        key,
        aliases: &[],
        flags: "",
        kind,
        default: "",
        limit: "",
        reloads: false,
        is_secret: false,
        standing,
        like: None,
        help: "",
    }
}

impl Entry {
    pub(super) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(super) const fn flags(mut self, flags: &'static str) -> Self {
        self.flags = flags;
        self
    }

    pub(super) const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    pub(super) const fn limit(mut self, limit: &'static str) -> Self {
        self.limit = limit;
        self
    }

    pub(super) const fn reloads(mut self) -> Self {
        self.reloads = true;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    pub(super) const fn like(mut self, block: &'static str) -> Self {
        self.like = Some(block);
        self
    }

    pub(super) const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// The block that it stands in; empty outside of all.
    pub(super) fn block(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(block, _)| block)
    }

    /// Its name in that block.
    pub(super) fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, name)| name)
    }

    /// The block in which the options within it are listed.
    pub(super) fn inside(&self) -> &'static str {
        self.like.unwrap_or(self.key)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name()).chain(self.aliases.iter().copied())
    }
}

/// All options, in the order in which they are documented.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    options::ALL.iter().copied().flatten()
}

static BLOCKS: LazyLock<HashMap<&str, Vec<&Entry>>> = LazyLock::new(|| {
    let mut blocks: HashMap<&str, Vec<&Entry>> = HashMap::new();
    for entry in all() {
        blocks.entry(entry.block()).or_default().push(entry);
    }
    blocks
});

fn in_block(block: &str) -> &'static [&'static Entry] {
    BLOCKS.get(block).map_or(&[], Vec::as_slice)
}

/// Whether anything is known of what stands in a block.
pub(super) fn is_block(block: &str) -> bool {
    BLOCKS.contains_key(block)
}

/// Whether a block has such an option.
pub(super) fn has(block: &str, wanted: impl Fn(&Entry) -> bool) -> bool {
    in_block(block).iter().any(|entry| wanted(entry))
}

/// The option of this name in a block; names are the same in upper and lower case.
pub(super) fn find(block: &str, name: &str) -> Option<&'static Entry> {
    let entries = in_block(block);
    let named = entries
        .iter()
        .find(|entry| entry.names().any(|known| known.eq_ignore_ascii_case(name)));
    let any = || entries.iter().find(|entry| entry.name() == "*");
    named.or_else(any).copied()
}

/// What could have been meant by a name that the block does not have.
pub(super) fn advice(block: &str, name: &str) -> Option<String> {
    /// A longer name was not meant to be any of these.
    const NAME_CHARS_MAX: usize = 64;
    if name.len() > NAME_CHARS_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let elsewhere = all().find(|entry| entry.block() != block && entry.names().any(|n| n == name));
    let nearest = in_block(block)
        .iter()
        .flat_map(|entry| entry.names())
        .map(|known| (distance(&name, known), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, known)| *distance <= known.len().min(name.len()).div_ceil(3));
    match (nearest, elsewhere) {
        (Some((_, known)), _) => Some(format!("did you mean \"{known}\"?")),
        (None, Some(entry)) if entry.block().is_empty() => {
            Some("it belongs at the top, outside of all blocks".into())
        }
        (None, Some(entry)) => Some(format!(
            "it belongs into {}",
            entry.block().replace(".*", "").replace('.', " { ") + " { }"
        )),
        (None, None) => None,
    }
}

/// How many letters have to be changed, put in or left out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
