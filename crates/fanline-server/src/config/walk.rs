//! Goes through what a configuration says, and asks the table of options about each key.

use super::draft::Draft;
use super::error::{Fault, Place};
use super::read::Given;
use super::table::{self, Entry, Standing};
use super::value::{Map, Node, Value};

/// Takes over everything that a configuration says, or says all that is wrong with it.
pub(super) fn apply(draft: &mut Draft, map: &Map) -> Vec<Fault> {
    let mut walk = Walk {
        draft,
        faults: Vec::new(),
    };
    walk.block("", map);
    walk.faults
}

/// Whether a block as a whole is ignored, so that its options need no warnings of their own.
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
    /// The options of a block that works.
    fn block(&mut self, block: &str, map: &Map) {
        self.check_spellings(block, map);
        for entry in map.entries() {
            let Some(option) = table::find(block, &entry.key) else {
                if !entry.is_variable {
                    self.unknown(block, &entry.key, &entry.place);
                }
                continue;
            };
            let given = Given {
                key: &entry.key,
                place: &entry.place,
                node: &entry.node,
            };
            self.option(option, &given);
        }
    }

    fn option(&mut self, option: &'static Entry, given: &Given<'_>) {
        match option.standing {
            Standing::Works { apply, .. } => {
                let before = self.faults.len();
                if !has_working(option.inside()) {
                    self.check(option, given.node, Ignored::No);
                }
                // What is in it makes no sense: one fault for that is enough.
                if self.faults.len() > before {
                    return;
                }
                if let Err(fault) = apply(self.draft, given) {
                    self.faults.push(fault);
                } else if let Value::Map(map) = &given.node.value
                    && has_working(option.inside())
                {
                    self.block(option.inside(), map);
                }
            }
            Standing::Within => self.check(option, given.node, Ignored::No),
            Standing::Warned(sentence) => self.ignore(option, given, sentence),
            // It asks for nothing.
            Standing::Refused(_) if is_off(&given.node.value) => {}
            Standing::Refused(sentence) => {
                self.check(option, given.node, Ignored::Yes);
                self.faults.push(Fault {
                    place: Some(given.place.clone()),
                    reason: format!("{}: {sentence}", given.key),
                });
            }
        }
    }

    /// Ignores an option with a warning. A value of the wrong type is refused, as by nats-server.
    fn ignore(&mut self, option: &'static Entry, given: &Given<'_>, sentence: &str) {
        if let Err(fault) = given.is_of(option.kind) {
            return self.faults.push(fault);
        }
        self.check(option, given.node, Ignored::Yes);
        if !is_off(&given.node.value) {
            let key = given.key;
            self.draft.warn(given.place, format!("{key}: {sentence}"));
        }
    }

    /// Looks for keys that nobody knows, without taking anything over.
    fn check(&mut self, option: &Entry, node: &Node, ignored: Ignored) {
        let inside = option.inside();
        if !table::is_block(inside) {
            return;
        }
        match &node.value {
            Value::Map(map) => {
                if inside == "tls" && ignored == Ignored::No {
                    self.draft.warn_of_tls(option, map);
                }
                self.check_keys(inside, map, ignored);
            }
            Value::List(nodes) => {
                for node in nodes {
                    if let Value::Map(map) = &node.value {
                        self.check_keys(inside, map, ignored);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_keys(&mut self, block: &str, map: &Map, ignored: Ignored) {
        self.check_spellings(block, map);
        for entry in map.entries() {
            let Some(option) = table::find(block, &entry.key) else {
                if !entry.is_variable {
                    self.unknown(block, &entry.key, &entry.place);
                }
                continue;
            };
            let given = Given {
                key: &entry.key,
                place: &entry.place,
                node: &entry.node,
            };
            match option.standing {
                Standing::Refused(_) | Standing::Warned(_) if ignored == Ignored::Yes => {}
                Standing::Refused(_) | Standing::Warned(_) => self.option(option, &given),
                _ => self.check(option, &entry.node, ignored),
            }
        }
    }

    /// Refuses a block or a list that is written twice under two names. nats-server takes one of them by chance,
    /// or mixes them.
    fn check_spellings(&mut self, block: &str, map: &Map) {
        let mut seen: Vec<(&'static str, &str)> = Vec::new();
        for entry in map.entries() {
            let Some(option) = table::find(block, &entry.key) else {
                continue;
            };
            let is_scalar = !matches!(entry.node.value, Value::Map(_) | Value::List(_));
            if option.name() == "*" || is_scalar {
                continue;
            }
            match seen.iter().find(|(name, _)| *name == option.name()) {
                Some((_, first)) => self.faults.push(Fault {
                    place: Some(entry.place.clone()),
                    reason: format!(
                        "{:?} and {first:?} are the same option; write it once",
                        entry.key
                    ),
                }),
                None => seen.push((option.name(), &entry.key)),
            }
        }
    }

    fn unknown(&mut self, block: &str, key: &str, place: &Place) {
        let advice = table::advice(block, key).map_or_else(String::new, |text| format!("; {text}"));
        self.faults.push(Fault {
            place: Some(place.clone()),
            reason: format!("unknown field {key:?}{advice}"),
        });
    }
}

/// Whether a value asks for nothing, whatever the option is.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => !is_on,
        Value::Integer(number) => *number == 0,
        Value::Text(text) => text.is_empty(),
        Value::List(nodes) => nodes.is_empty(),
        _ => false,
    }
}

/// Whether options of a block take themselves over.
fn has_working(block: &str) -> bool {
    table::has(block, |entry| {
        matches!(entry.standing, Standing::Works { .. })
    })
}
