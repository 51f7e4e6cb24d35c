//! A cache of translated names.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::topic::{NameError, subject_to_topic, topic_to_subject};

/// Largest number of cached translations in each direction. A new one replaces an old one.
const NAMES_MAX: usize = 4096;
/// Longest name in bytes whose translation is cached. With [`NAMES_MAX`], it limits the cache to about 3 MiB
/// in each direction. A longer name is translated each time.
const NAME_BYTES_MAX: usize = 256;

/// A cache of translations between topic names and subjects. A hit allocates nothing.
///
/// The hash of a name determines its only slot, so no order of use is recorded.
#[derive(Default)]
pub struct Names {
    subjects: Table<Vec<u8>>,
    topics: Table<String>,
    hash_builder: DefaultHashBuilder,
}

/// The slots of one direction. They are allocated when the first name arrives.
#[derive(Default)]
struct Table<T> {
    places: Vec<Place<T>>,
    /// Reused buffer for names that are too long for the cache.
    long: T,
}

/// A slot of the cache. An empty name marks an empty slot.
#[derive(Clone, Default)]
struct Place<T> {
    name: Vec<u8>,
    translated: T,
}

impl Names {
    /// Returns the subject of a topic name.
    ///
    /// # Errors
    ///
    /// Returns why the name has no subject.
    #[inline]
    pub fn subject(&mut self, topic: &str) -> Result<&[u8], NameError> {
        let at = place_of(&self.hash_builder, topic.as_bytes());
        let translate = |subject: &mut Vec<u8>| {
            subject.clear();
            topic_to_subject(topic, subject)
        };
        let subject = self.subjects.get(at, topic.as_bytes(), translate)?;
        Ok(subject)
    }

    /// Returns the topic name of a subject.
    ///
    /// # Errors
    ///
    /// Returns why the subject has no topic name.
    #[inline]
    pub fn topic(&mut self, subject: &[u8]) -> Result<&str, NameError> {
        let at = place_of(&self.hash_builder, subject);
        let translate = |topic: &mut String| {
            topic.clear();
            subject_to_topic(subject, topic)
        };
        let topic = self.topics.get(at, subject, translate)?;
        Ok(topic)
    }
}

fn place_of(hash_builder: &DefaultHashBuilder, name: &[u8]) -> usize {
    let hash = hash_builder.hash_one(name) % (NAMES_MAX as u64);
    usize::try_from(hash).unwrap_or(0)
}

impl<T: Clone + Default> Table<T> {
    #[inline]
    fn get(
        &mut self,
        at: usize,
        name: &[u8],
        translate: impl FnOnce(&mut T) -> Result<(), NameError>,
    ) -> Result<&T, NameError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            translate(&mut self.long)?;
            return Ok(&self.long);
        }
        if self.places.is_empty() {
            self.places.resize_with(NAMES_MAX, Place::default);
        }
        let place = &mut self.places[at];
        if place.name != name {
            // If the translation fails, the slot must be empty.
            place.name.clear();
            translate(&mut place.translated)?;
            place.name.extend_from_slice(name);
        }
        Ok(&place.translated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_names_equal_translations() {
        let mut names = Names::default();
        for round in 0..3 {
            for i in 0..2 * NAMES_MAX {
                let topic = format!("a/{i}/b.c");
                let subject = format!("a.{i}.b//c");
                assert_eq!(names.subject(&topic), Ok(subject.as_bytes()), "{round}");
                assert_eq!(names.topic(subject.as_bytes()), Ok(topic.as_str()));
            }
            assert_eq!(names.subject("a b"), Err(NameError::Character));
            assert_eq!(names.subject("a b"), Err(NameError::Character));
            let long = "x".repeat(NAME_BYTES_MAX + 1);
            assert_eq!(names.subject(&long), Ok(long.as_bytes()));
        }
        assert_eq!(names.subject(""), Err(NameError::Empty));
    }
}
