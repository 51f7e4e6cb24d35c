//! The table of options: one entry contains everything about an option, in a block or at the top level.
//!
//! A [`Block`] is a type with a table of its options. One reader ([`read`]) passes each key of a block to its
//! entry, and rejects keys without one. The same table shows the effective block ([`show`]), documents it, and
//! lists its known names.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value as Json;

use super::draft::Draft;
use super::options;
use super::read::{Given, Read};

/// A type with the options of a block.
pub(super) trait Block: Sized + 'static {
    /// The block's options, in the order of the documentation.
    const OPTIONS: &'static [Entry<Self>];
}

/// An option of a block of type `T`.
pub(super) struct Entry<T: 'static> {
    pub(super) about: About,
    value: Field<T>,
}

/// Properties of an option that do not depend on its block's type.
pub(super) struct About {
    /// The option's name in its block; `*` is any name.
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    /// Command-line flags that override the option.
    pub(super) flags: &'static str,
    pub(super) kind: Kind,
    /// The value if the option is not set.
    pub(super) default: &'static str,
    /// The permitted values.
    pub(super) limit: &'static str,
    /// Whether a reload may change the value.
    pub(super) reloads: bool,
    /// Whether the value is masked.
    pub(super) is_secret: bool,
    pub(super) standing: Standing,
    /// Another block with the same options, to which the documentation refers.
    pub(super) like: Option<&'static str>,
    pub(super) help: &'static str,
    /// Whether the option is a setting of its own, not a part of its block's value.
    pub(super) is_apart: bool,
    /// Whether a duration without a unit is deprecated.
    pub(super) needs_unit: bool,
    /// Whether the block configures TLS of connections that this server opens.
    pub(super) is_dialer: bool,
    /// A warning about values that have no effect, or not their full effect.
    pub(super) warning: Option<Warning>,
    pub(super) inside: Inside,
    /// The option's name in the effective settings; `None` if another option shows its value.
    shown_as: Option<&'static str>,
}

/// Reads an option's value into its block.
type Reader<T> = fn(&mut T, &Given<'_>) -> Read<()>;
/// Returns the warning about a value, if any. The second argument is [`About::is_dialer`] of the block.
pub(super) type Warning = fn(&Given<'_>, bool) -> Option<String>;

/// How an option's value is read and shown.
enum Field<T> {
    Flag(fn(&mut T) -> &mut bool),
    Text(fn(&mut T) -> &mut Option<String>),
    Texts(fn(&mut T) -> &mut Vec<String>),
    Path(fn(&mut T) -> &mut Option<PathBuf>),
    Duration(fn(&mut T) -> &mut Duration),
    MaybeDuration(fn(&mut T) -> &mut Option<Duration>),
    Other {
        read: Reader<T>,
        show: fn(&T) -> Json,
    },
    /// The value has no effect, but must be of its kind.
    Checked,
    /// The value has no effect.
    Ignored,
}

/// The options within an option.
#[derive(Clone, Copy)]
pub(super) enum Inside {
    Nothing,
    /// The options of a [`Block`], which the reader of this option reads.
    Block(fn() -> Vec<&'static About>),
    /// Separate settings. Each is read, shown, and reloaded alone.
    Section(&'static [Entry<Draft>]),
}

/// How far an option is supported.
#[derive(Clone, Copy)]
pub(super) enum Standing {
    Works,
    /// The option is accepted without effect.
    Ignored,
    /// The option is accepted without effect, with a warning at the start.
    Warned(&'static str),
    /// The configuration is rejected.
    Refused(&'static str),
}

/// The notation of a value.
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

impl<T> Entry<T> {
    /// Returns an option with its own reader and writer.
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        read: Reader<T>,
        show: fn(&T) -> Json,
    ) -> Self {
        Self::of(name, kind, Field::Other { read, show })
    }

    /// Returns an option whose value another option shows.
    pub(super) const fn unshown(name: &'static str, kind: Kind, read: Reader<T>) -> Self {
        Self::new(name, kind, read, |_| Json::Null).shown_elsewhere()
    }

    /// Returns a boolean option.
    pub(super) const fn flag(name: &'static str, place: fn(&mut T) -> &mut bool) -> Self {
        Self::of(name, Kind::Bool, Field::Flag(place))
    }

    /// Returns a text option. An empty text counts as missing.
    pub(super) const fn text(name: &'static str, place: fn(&mut T) -> &mut Option<String>) -> Self {
        Self::of(name, Kind::Text, Field::Text(place))
    }

    /// Returns an option with one or more texts.
    pub(super) const fn texts(name: &'static str, place: fn(&mut T) -> &mut Vec<String>) -> Self {
        Self::of(name, Kind::Texts, Field::Texts(place))
    }

    /// Returns a path option. An empty path counts as missing.
    pub(super) const fn path(
        name: &'static str,
        place: fn(&mut T) -> &mut Option<PathBuf>,
    ) -> Self {
        Self::of(name, Kind::Path, Field::Path(place))
    }

    /// Returns a duration option.
    pub(super) const fn duration(name: &'static str, place: fn(&mut T) -> &mut Duration) -> Self {
        Self::of(name, Kind::Duration, Field::Duration(place))
    }

    /// Returns a duration option without a default.
    pub(super) const fn maybe_duration(
        name: &'static str,
        place: fn(&mut T) -> &mut Option<Duration>,
    ) -> Self {
        Self::of(name, Kind::Duration, Field::MaybeDuration(place))
    }

    /// Returns an option without effect that accepts any value.
    pub(super) const fn ignored(name: &'static str, kind: Kind) -> Self {
        Self::of(name, kind, Field::Ignored).standing(Standing::Ignored)
    }

    /// Returns an option without effect that accepts values of its kind.
    pub(super) const fn checked(name: &'static str, kind: Kind) -> Self {
        Self::of(name, kind, Field::Checked).standing(Standing::Ignored)
    }

    /// Returns an option that only causes a warning.
    pub(super) const fn warned(name: &'static str, kind: Kind, sentence: &'static str) -> Self {
        Self::of(name, kind, Field::Ignored).standing(Standing::Warned(sentence))
    }

    /// Returns an option that is rejected.
    pub(super) const fn refused(name: &'static str, kind: Kind, sentence: &'static str) -> Self {
        Self::of(name, kind, Field::Ignored).standing(Standing::Refused(sentence))
    }

    const fn of(name: &'static str, kind: Kind, value: Field<T>) -> Self {
        Entry {
            about: About {
                name,
                aliases: &[],
                flags: "",
                kind,
                default: "",
                limit: "",
                reloads: false,
                is_secret: false,
                standing: Standing::Works,
                like: None,
                help: "",
                is_apart: false,
                needs_unit: false,
                is_dialer: false,
                warning: None,
                inside: Inside::Nothing,
                shown_as: Some(name),
            },
            value,
        }
    }

    const fn standing(mut self, standing: Standing) -> Self {
        self.about.standing = standing;
        self
    }

    pub(super) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.about.aliases = aliases;
        self
    }

    pub(super) const fn flags(mut self, flags: &'static str) -> Self {
        self.about.flags = flags;
        self
    }

    pub(super) const fn default(mut self, default: &'static str) -> Self {
        self.about.default = default;
        self
    }

    pub(super) const fn limit(mut self, limit: &'static str) -> Self {
        self.about.limit = limit;
        self
    }

    pub(super) const fn reloads(mut self) -> Self {
        self.about.reloads = true;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.about.is_secret = true;
        self
    }

    pub(super) const fn like(mut self, block: &'static str) -> Self {
        self.about.like = Some(block);
        self
    }

    pub(super) const fn help(mut self, help: &'static str) -> Self {
        self.about.help = help;
        self
    }

    pub(super) const fn apart(mut self) -> Self {
        self.about.is_apart = true;
        self
    }

    pub(super) const fn needs_unit(mut self) -> Self {
        self.about.needs_unit = true;
        self
    }

    pub(super) const fn dialer(mut self) -> Self {
        self.about.is_dialer = true;
        self
    }

    pub(super) const fn warns(mut self, warning: Warning) -> Self {
        self.about.warning = Some(warning);
        self
    }

    pub(super) const fn block<B: Block>(mut self) -> Self {
        self.about.inside = Inside::Block(abouts::<B>);
        self
    }

    pub(super) const fn section(mut self, options: &'static [Entry<Draft>]) -> Self {
        self.about.inside = Inside::Section(options);
        self
    }

    pub(super) const fn shown_as(mut self, name: &'static str) -> Self {
        self.about.shown_as = Some(name);
        self
    }

    pub(super) const fn shown_elsewhere(mut self) -> Self {
        self.about.shown_as = None;
        self
    }

    /// Reads a value into the block.
    pub(super) fn read(&self, block: &mut T, given: &Given<'_>) -> Read<()> {
        match self.value {
            Field::Flag(place) => *place(block) = given.boolean()?,
            Field::Text(place) => *place(block) = given.some_text()?,
            Field::Texts(place) => *place(block) = given.texts()?,
            Field::Path(place) => *place(block) = given.path()?,
            Field::Duration(place) => *place(block) = given.duration()?,
            Field::MaybeDuration(place) => *place(block) = Some(given.duration()?),
            Field::Other { read, .. } => read(block, given)?,
            Field::Checked => given.is_of(self.about.kind)?,
            Field::Ignored => {}
        }
        Ok(())
    }

    /// Returns the effective value.
    pub(super) fn show(&self, block: &mut T) -> Json {
        match self.value {
            Field::Flag(place) => (*place(block)).into(),
            Field::Text(place) => place(block).clone().into(),
            Field::Texts(place) => place(block).clone().into(),
            Field::Path(place) => options::text_or_null(place(block).as_deref()),
            Field::Duration(place) => options::duration_text(*place(block)),
            Field::MaybeDuration(place) => place(block).map(options::duration_text).into(),
            Field::Other { show, .. } => show(block),
            Field::Checked | Field::Ignored => Json::Null,
        }
    }
}

impl About {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns whether this is a name or alias of the option. The case is ignored.
    fn is_named(&self, name: &str) -> bool {
        self.names().any(|known| known.eq_ignore_ascii_case(name))
    }
}

fn abouts<B: Block>() -> Vec<&'static About> {
    B::OPTIONS.iter().map(|entry| &entry.about).collect()
}

/// Returns the index of the option with this name.
pub(super) fn find<'a>(
    options: impl Iterator<Item = &'a About> + Clone,
    name: &str,
) -> Option<usize> {
    let named = options.clone().position(|option| option.is_named(name));
    named.or_else(|| options.clone().position(|option| option.name == "*"))
}

/// Reads a block. `block` has the defaults.
pub(super) fn read<B: Block>(mut block: B, given: &Given<'_>) -> Read<B> {
    for field in given.fields()? {
        read_option(&mut block, &field)?;
    }
    Ok(block)
}

/// Reads an option of a block through its entry. Rejects an option without an entry.
pub(super) fn read_option<B: Block>(block: &mut B, given: &Given<'_>) -> Read<()> {
    let options = B::OPTIONS.iter().map(|entry| &entry.about);
    match find(options, given.key) {
        Some(at) => B::OPTIONS[at].read(block, given),
        None if given.is_variable => Ok(()),
        None => Err(given.fault(format!("unknown field {:?}", given.key))),
    }
}

/// Returns a block as JSON, secrets included.
pub(super) fn show<B: Block>(mut block: B) -> Json {
    let options = B::OPTIONS.iter();
    let works = options.filter(|entry| matches!(entry.about.standing, Standing::Works));
    let shown = works.filter_map(|entry| {
        let name = entry.about.shown_as?;
        Some((name.to_owned(), entry.show(&mut block)))
    });
    Json::Object(shown.collect())
}

/// Sets a value if it could be read.
pub(super) fn set<V>(place: &mut V, value: Read<V>) -> Read<()> {
    *place = value?;
    Ok(())
}

/// An option with its full name.
pub(super) struct Node {
    /// The names of the enclosing blocks and the option, joined by dots.
    pub(super) key: String,
    pub(super) about: &'static About,
    /// The option's entry, if the option is a separate setting outside of any [`Block`].
    pub(super) entry: Option<&'static Entry<Draft>>,
    /// The inner options that are documented with this option.
    pub(super) within: Vec<Node>,
}

impl Node {
    fn new(block: &str, about: &'static About, entry: Option<&'static Entry<Draft>>) -> Self {
        let key = match block {
            "" => about.name.to_owned(),
            block => format!("{block}.{}", about.name),
        };
        let within = match about.inside {
            _ if about.like.is_some() => Vec::new(),
            Inside::Nothing => Vec::new(),
            Inside::Block(abouts) => {
                let abouts = abouts().into_iter();
                abouts.map(|about| Node::new(&key, about, None)).collect()
            }
            Inside::Section(entries) => section(&key, entries.iter()),
        };
        Node {
            key,
            about,
            entry,
            within,
        }
    }

    /// Returns whether the option is a separate setting.
    pub(super) fn is_setting(&self) -> bool {
        let is_shown = self.entry.is_some() || self.about.is_apart;
        is_shown && matches!(self.about.standing, Standing::Works)
    }

    /// Returns the option's name in the effective settings.
    pub(super) fn shown_as(&self) -> &'static str {
        self.about.shown_as.unwrap_or(self.about.name)
    }
}

fn section(block: &str, entries: impl Iterator<Item = &'static Entry<Draft>>) -> Vec<Node> {
    let nodes = entries.map(|entry| Node::new(block, &entry.about, Some(entry)));
    nodes.collect()
}

/// Returns the options outside of all blocks, in the order of the documentation.
pub(super) fn top() -> impl Iterator<Item = &'static Entry<Draft>> {
    options::ALL.iter().copied().flatten()
}

/// The options outside of all blocks, with their inner options.
pub(super) static TREE: LazyLock<Vec<Node>> = LazyLock::new(|| section("", top()));

/// Calls `seen` with each option and the name of its block. A block precedes its options.
pub(super) fn visit<'a>(
    block: &'a str,
    nodes: &'a [Node],
    seen: &mut impl FnMut(&'a str, &'a Node),
) {
    for node in nodes {
        seen(block, node);
        visit(&node.key, &node.within, seen);
    }
}

/// Returns a suggestion for an unknown name.
pub(super) fn advice(options: &[&'static About], name: &str) -> Option<String> {
    /// Longest name for which a suggestion is computed.
    const NAME_CHARS_MAX: usize = 64;
    if name.len() > NAME_CHARS_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let nearest = options
        .iter()
        .flat_map(|option| option.names())
        .map(|known| (distance(&name, known), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, known)| *distance <= known.len().min(name.len()).div_ceil(3));
    if let Some((_, known)) = nearest {
        return Some(format!("did you mean \"{known}\"?"));
    }
    let mut elsewhere = None;
    visit("", &TREE, &mut |block, node| {
        if elsewhere.is_none() && node.about.names().any(|known| known == name) {
            elsewhere = Some(block);
        }
    });
    match elsewhere? {
        "" => Some("it belongs at the top, outside of all blocks".into()),
        block => Some(format!(
            "it belongs in {}",
            block.replace(".*", "").replace('.', " { ") + " { }"
        )),
    }
}

/// Returns the edit distance: the number of characters to replace, insert, or delete.
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
