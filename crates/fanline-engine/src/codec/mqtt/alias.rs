//! Topic aliases (3.3.2.3.4), which are valid until their connection ends.

use hashbrown::HashMap;

use super::reason::{Reason, Wrong};

/// Aliases that the client has set for topics of its messages.
#[derive(Debug, Default)]
pub(super) struct AliasesIn {
    /// Topic of each alias, at the index alias - 1; empty if the alias is not set.
    topics: Vec<Box<str>>,
    max: u16,
}

impl AliasesIn {
    /// Creates an empty set. `max` is the Topic Alias Maximum in CONNACK.
    pub(super) fn new(max: u16) -> Self {
        AliasesIn {
            topics: Vec::new(),
            max,
        }
    }

    fn place(&self, alias: u16) -> Result<usize, Wrong> {
        // MQTT-3.3.2-8 and -9.
        match alias {
            1.. if alias <= self.max => Ok(usize::from(alias) - 1),
            _ => {
                let why = "a topic alias is larger than was granted";
                Err(Wrong::because(Reason::TOPIC_ALIAS_INVALID, why))
            }
        }
    }

    /// Sets the topic of an alias.
    pub(super) fn set(&mut self, alias: u16, topic: &str) -> Result<(), Wrong> {
        let at = self.place(alias)?;
        if self.topics.len() <= at {
            self.topics.resize_with(at + 1, Box::default);
        }
        if &*self.topics[at] != topic {
            self.topics[at] = topic.into();
        }
        Ok(())
    }

    /// Returns the topic of an alias.
    pub(super) fn get(&self, alias: u16) -> Result<&str, Wrong> {
        let at = self.place(alias)?;
        match self.topics.get(at) {
            Some(topic) if !topic.is_empty() => Ok(topic),
            _ => Err(Wrong::protocol("a topic alias was not set")),
        }
    }
}

/// Aliases that the server sets for the client. The topics that are sent first get the aliases.
#[derive(Debug, Default)]
pub(super) struct AliasesOut {
    aliases: HashMap<Box<str>, u16>,
    max: u16,
}

impl AliasesOut {
    pub(super) fn new(max: u16) -> Self {
        AliasesOut {
            aliases: HashMap::new(),
            max,
        }
    }

    /// Returns the alias of a topic, and whether the packet must set it, because it is new. Returns `None` if
    /// all aliases are used by other topics.
    pub(super) fn of(&mut self, topic: &str) -> Option<(u16, bool)> {
        if self.max == 0 {
            return None;
        }
        if let Some(alias) = self.aliases.get(topic) {
            return Some((*alias, false));
        }
        let next = u16::try_from(self.aliases.len()).ok()?.checked_add(1)?;
        if next > self.max {
            return None;
        }
        self.aliases.insert(topic.into(), next);
        Some((next, true))
    }

    /// Removes a new alias, because the packet that sets it was not sent.
    pub(super) fn forget(&mut self, topic: &str) {
        // New aliases continue the numbering, so only the latest one can be removed.
        let newest = u16::try_from(self.aliases.len()).ok();
        if self.aliases.get(topic).copied() == newest {
            self.aliases.remove(topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_client() {
        let mut aliases = AliasesIn::new(2);
        assert!(aliases.get(1).is_err(), "not set");
        assert_eq!(aliases.set(2, "a/b"), Ok(()));
        assert!(aliases.get(1).is_err(), "not set yet");
        assert_eq!(aliases.get(2), Ok("a/b"));
        assert_eq!(aliases.set(2, "c"), Ok(()));
        assert_eq!(aliases.get(2), Ok("c"));
        for wrong in [0, 3, u16::MAX] {
            let refused = aliases.set(wrong, "d").map_err(|w| w.reason);
            assert_eq!(refused, Err(Reason::TOPIC_ALIAS_INVALID));
        }
    }

    #[test]
    fn for_the_client() {
        let mut aliases = AliasesOut::new(2);
        assert_eq!(aliases.of("a"), Some((1, true)));
        assert_eq!(aliases.of("b"), Some((2, true)));
        assert_eq!(aliases.of("a"), Some((1, false)));
        assert_eq!(aliases.of("c"), None);
        aliases.forget("b");
        assert_eq!(aliases.of("c"), Some((2, true)));
        assert_eq!(AliasesOut::new(0).of("a"), None);
    }
}
