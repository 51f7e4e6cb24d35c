//! Names that were translated a moment ago.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::topic::{NameError, subject_to_topic, topic_to_subject};

/// Most translations in each direction. Another one replaces one of these.
const NAMES_MAX: usize = 4096;
/// The longest name whose translation is cached; with [`NAMES_MAX`] it bounds the cache to some 3 MiB in each
/// direction. A longer name is translated each time.
const NAME_BYTES_MAX: usize = 256;

/// A cache of translations between topic names and subjects. A hit allocates nothing.
///
/// Each name has one slot, by its hash, so that the order of use need not be recorded.
#[derive(Default)]
pub struct Names {
    subjects: Table<Vec<u8>>,
    topics: Table<String>,
    hash_builder: DefaultHashBuilder,
}

/// Places, none of which exist before the first name comes.
#[derive(Default)]
struct Table<T> {
    places: Vec<Place<T>>,
    /// Scratch for names that are too long for the cache.
    long: T,
}

/// An empty name is none.
#[derive(Clone, Default)]
struct Place<T> {
    name: Vec<u8>,
    translated: T,
}

impl Names {
    /// The subject of a topic name.
    ///
    /// # Errors
    /// Says why there is none.
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

    /// The topic name of a subject.
    ///
    /// # Errors
    /// Says why there is none.
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
            // Should the translation fail, nothing is found here.
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
