//! Applies a configuration to a draft, key by key through the table of options.

use super::draft::Draft;
use super::error::Fault;
use super::read::Given;
use super::table::{self, About, Entry, Inside, Standing};
use super::value::{self, Map, Node, Value};

/// Applies a configuration. Returns all errors.
pub(super) fn apply(draft: &mut Draft, map: &Map) -> Vec<Fault> {
    let mut walk = Walk {
        draft,
        faults: Vec::new(),
    };
    walk.settings(&table::top().collect::<Vec<_>>(), map);
    walk.faults
}

/// Whether a block is ignored as a whole, so its options need no warnings of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ignored {
    Yes,
    No,
}

struct Walk<'a> {
    draft: &'a mut Draft,
    faults: Vec<Fault>,
}

impl Walk<'_> {
    /// Applies the settings at the top level, or in a block whose options are separate settings (a section).
    fn settings(&mut self, entries: &[&'static Entry<Draft>], map: &Map) {
        let abouts: Vec<&About> = entries.iter().map(|entry| &entry.about).collect();
        self.check_spellings(&abouts, map);
        for written in map.entries() {
            match table::find(abouts.iter().copied(), &written.key) {
                Some(at) => self.setting(entries[at], &Given::of(written)),
                None => self.unknown(&abouts, written),
            }
        }
    }

    fn setting(&mut self, entry: &'static Entry<Draft>, given: &Given<'_>) {
        let about = &entry.about;
        if !matches!(about.standing, Standing::Works) {
            return self.without_effect(about, given);
        }
        let before = self.faults.len();
        self.check(about, given, Ignored::No);
        // One error for the block's contents is enough.
        if self.faults.len() > before {
            return;
        }
        match (
            entry.read(self.draft, given),
            about.inside,
            &given.node.value,
        ) {
            (Err(fault), _, _) => self.faults.push(fault),
            (Ok(()), Inside::Section(entries), Value::Map(map)) => {
                self.settings(&entries.iter().collect::<Vec<_>>(), map);
            }
            _ => {}
        }
    }

    /// Warns of an option without effect, or rejects it.
    fn without_effect(&mut self, option: &'static About, given: &Given<'_>) {
        match option.standing {
            Standing::Works | Standing::Ignored => {}
            Standing::Warned(sentence) => self.ignore(option, given, sentence),
            // The value turns the unsupported option off.
            Standing::Refused(_) if is_off(&given.node.value) => {}
            Standing::Refused(sentence) => {
                self.check_inside(option, given.node, Ignored::Yes);
                self.faults.push(Fault {
                    place: Some(given.place.clone()),
                    reason: format!("{}: {sentence}", given.key),
                });
            }
        }
    }

    /// Ignores an option with a warning. A value of the wrong kind is rejected, as in nats-server.
    fn ignore(&mut self, option: &'static About, given: &Given<'_>, sentence: &str) {
        if let Err(fault) = given.is_of(option.kind) {
            return self.faults.push(fault);
        }
        self.check_inside(option, given.node, Ignored::Yes);
        if !is_off(&given.node.value) {
            let key = given.key;
            self.draft.warn(given.place, format!("{key}: {sentence}"));
        }
    }

    /// Checks the options within an option for unknown and deprecated names. Applies nothing.
    fn check(&mut self, option: &'static About, given: &Given<'_>, ignored: Ignored) {
        if option.needs_unit && ignored == Ignored::No {
            self.draft.note_number(given);
        }
        self.check_inside(option, given.node, ignored);
    }

    fn check_inside(&mut self, option: &'static About, node: &Node, ignored: Ignored) {
        let Inside::Block(options) = option.inside else {
            return;
        };
        let options = options();
        match &node.value {
            Value::Map(map) => self.check_block(option, &options, map, ignored),
            Value::List(nodes) => {
                for node in nodes {
                    if let Value::Map(map) = &node.value {
                        self.check_block(option, &options, map, ignored);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_block(
        &mut self,
        block: &'static About,
        options: &[&'static About],
        map: &Map,
        ignored: Ignored,
    ) {
        self.check_spellings(options, map);
        for written in map.entries() {
            let Some(at) = table::find(options.iter().copied(), &written.key) else {
                self.unknown(options, written);
                continue;
            };
            let (option, given) = (options[at], Given::of(written));
            if ignored == Ignored::No {
                let warning = option
                    .warning
                    .and_then(|warning| warning(&given, block.is_dialer));
                if let Some(reason) = warning {
                    self.draft.warn(given.place, reason);
                }
                self.without_effect(option, &given);
            }
            if matches!(option.standing, Standing::Works | Standing::Ignored) {
                self.check(option, &given, ignored);
            }
        }
    }

    /// Rejects a block or list that occurs under two of its names. nats-server uses one of the two at random,
    /// or mixes them.
    fn check_spellings(&mut self, options: &[&'static About], map: &Map) {
        let mut seen: Vec<(&'static str, &str)> = Vec::new();
        for entry in map.entries() {
            let Some(at) = table::find(options.iter().copied(), &entry.key) else {
                continue;
            };
            let name = options[at].name;
            let is_scalar = !matches!(entry.node.value, Value::Map(_) | Value::List(_));
            if name == "*" || is_scalar {
                continue;
            }
            match seen.iter().find(|(known, _)| *known == name) {
                Some((_, first)) => self.faults.push(Fault {
                    place: Some(entry.place.clone()),
                    reason: format!(
                        "{:?} and {first:?} are the same option; write it once",
                        entry.key
                    ),
                }),
                None => seen.push((name, &entry.key)),
            }
        }
    }

    /// Rejects an option that the block does not have, unless it defines a variable.
    fn unknown(&mut self, options: &[&'static About], written: &value::Entry) {
        if written.is_variable {
            return;
        }
        let key = &written.key;
        let advice = table::advice(options, key);
        let advice = advice.map_or_else(String::new, |text| format!("; {text}"));
        self.faults.push(Fault {
            place: Some(written.place.clone()),
            reason: format!("unknown field {key:?}{advice}"),
        });
    }
}

/// Returns whether this value would turn an option off, whatever the option is.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => !is_on,
        Value::Integer(number) => *number == 0,
        Value::Text(text) => text.is_empty(),
        Value::List(nodes) => nodes.is_empty(),
        _ => false,
    }
}
