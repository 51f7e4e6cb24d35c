//! The grammar of topic names and filters (4.7), and their conversion to subjects.
//!
//! The table is in `docs/formats/mqtt.md`.

use super::{TEXT_BYTES_MAX, Version};

/// The reason why a name is invalid, or has no equivalent in the other protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty (MQTT-4.7.3-1).
    #[error("a topic must not be empty")]
    Empty,
    /// A wildcard is misplaced (MQTT-4.7.1-1 and -2, MQTT-3.3.2-2).
    #[error("+ must be a whole level of a filter, and # its last level")]
    Wildcard,
    /// The name contains white space, a control character that subjects cannot contain, or bytes that are not
    /// UTF-8.
    #[error("a topic must not contain white space, control characters, or invalid UTF-8")]
    Character,
    /// The name is longer than 65,535 bytes (MQTT-4.7.3-3).
    #[error("a topic must have at most 65,535 bytes")]
    TooLong,
    /// The group of a shared subscription is invalid (MQTT-4.8.2-1 and -2).
    #[error("a shared filter must be $share/<group>/<filter>, with a group without wildcards")]
    ShareName,
}

/// A filter, split into the parts of `$share/<group>/<filter>` (4.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared<'a> {
    /// Group of a shared subscription; empty for another subscription.
    pub group: &'a str,
    /// The filter without `$share/<group>/`.
    pub filter: &'a str,
}

/// Splits a filter from its group. In 3.1.1, no filter has a group.
///
/// # Errors
///
/// If the filter begins with `$share/`, but has no valid group or no filter after it.
pub fn split_shared(filter: &str, version: Version) -> Result<Shared<'_>, NameError> {
    let shared = match version {
        Version::V4 => None,
        Version::V5 => filter.strip_prefix("$share/"),
    };
    let Some(shared) = shared else {
        let group = "";
        return Ok(Shared { group, filter });
    };
    let Some((group, filter)) = shared.split_once('/') else {
        return Err(NameError::ShareName);
    };
    let is_wrong = |b: u8| matches!(b, b'+' | b'#' | b'*' | b'>') || has_no_subject(b);
    if group.is_empty() || group.bytes().any(is_wrong) || filter.is_empty() {
        return Err(NameError::ShareName);
    }
    Ok(Shared { group, filter })
}

/// Checks the grammar of a filter without `$share`.
///
/// # Errors
///
/// Returns the first violation of the grammar.
pub fn check_filter(filter: &str) -> Result<(), NameError> {
    if filter.is_empty() {
        return Err(NameError::Empty);
    }
    if filter.len() > TEXT_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    let mut is_over = false;
    for level in filter.split('/') {
        // MQTT-4.7.1-1: `#` must be the last level.
        if is_over {
            return Err(NameError::Wildcard);
        }
        is_over = level == "#";
        let is_whole = matches!(level, "#" | "+");
        if !is_whole && level.bytes().any(|b| matches!(b, b'#' | b'+')) {
            return Err(NameError::Wildcard);
        }
    }
    Ok(())
}

/// Returns whether a topic must not contain this byte: either subjects cannot contain it, or nats-server
/// refuses it in a topic.
fn has_no_subject(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0C | 0x7F | 0)
}

/// Returns whether a topic name can be converted to a subject.
pub(super) fn has_subject(topic: &str) -> bool {
    let is_wrong = |b: u8| matches!(b, b'+' | b'#') || has_no_subject(b);
    (1..=TEXT_BYTES_MAX).contains(&topic.len()) && !topic.bytes().any(is_wrong)
}

/// Appends the subject of a topic name.
///
/// # Errors
///
/// Returns why the name has no subject. The bytes appended until then are meaningless.
pub fn topic_to_subject(topic: &str, subject: &mut Vec<u8>) -> Result<(), NameError> {
    if topic.is_empty() {
        return Err(NameError::Empty);
    }
    if topic.len() > TEXT_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    if topic.bytes().any(|b| matches!(b, b'+' | b'#')) {
        return Err(NameError::Wildcard);
    }
    levels_to_tokens(topic, subject)
}

/// Appends the subject of a filter without `$share`.
///
/// # Errors
///
/// Returns why the filter has no subject. The bytes appended until then are meaningless.
pub fn filter_to_subject(filter: &str, subject: &mut Vec<u8>) -> Result<(), NameError> {
    check_filter(filter)?;
    levels_to_tokens(filter, subject)
}

/// Removes the suffix `.>` from a subject; returns `None` if the subject has no such suffix. A subscription
/// to `a/#` also needs the subject `a`, because `a/#` matches `a` (4.7.1.2), but `a.>` does not.
pub fn parent_subject(subject: &[u8]) -> Option<&[u8]> {
    subject.strip_suffix(b".>")
}

/// Returns whether MQTT excludes a subject from a filter that matches it by the rules of NATS. In MQTT, a
/// filter that begins with a wildcard does not match topics that begin with `$` (MQTT-4.7.2-1). Both
/// arguments are in the form of subjects.
#[inline]
pub fn is_hidden(filter: &[u8], subject: &[u8]) -> bool {
    subject.first() == Some(&b'$') && matches!(filter, b"*" | b">" | [b'*', b'.', ..])
}

fn levels_to_tokens(name: &str, subject: &mut Vec<u8>) -> Result<(), NameError> {
    for (at, level) in name.split('/').enumerate() {
        if at > 0 {
            subject.push(b'.');
        }
        match level {
            "" => subject.push(b'/'),
            "+" => subject.push(b'*'),
            "#" => subject.push(b'>'),
            _ => {
                for byte in level.bytes() {
                    match byte {
                        b'.' => subject.extend_from_slice(b"//"),
                        byte if has_no_subject(byte) => return Err(NameError::Character),
                        byte => subject.push(byte),
                    }
                }
            }
        }
    }
    Ok(())
}

/// Appends the topic name of a subject.
///
/// # Errors
///
/// Returns why the subject has no topic name. The text appended until then is meaningless.
pub fn subject_to_topic(subject: &[u8], topic: &mut String) -> Result<(), NameError> {
    let Ok(subject) = std::str::from_utf8(subject) else {
        return Err(NameError::Character);
    };
    if subject.is_empty() {
        return Err(NameError::Empty);
    }
    let before = topic.len();
    for (at, token) in subject.split('.').enumerate() {
        if at > 0 {
            topic.push('/');
        }
        if token == "/" {
            continue;
        }
        // The token `//` stands for a dot in a level.
        let mut rest = token;
        while let Some((before, after)) = rest.split_once("//") {
            topic.push_str(before);
            topic.push('.');
            rest = after;
        }
        topic.push_str(rest);
    }
    if topic.len() - before > TEXT_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    match topic[before..]
        .bytes()
        .any(|b| matches!(b, b'+' | b'#' | 0))
    {
        true => Err(NameError::Character),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subject_of(topic: &str) -> Result<String, NameError> {
        let mut subject = Vec::new();
        topic_to_subject(topic, &mut subject)?;
        Ok(String::from_utf8(subject).unwrap())
    }

    fn topic_of(subject: &str) -> Result<String, NameError> {
        let mut topic = String::new();
        subject_to_topic(subject.as_bytes(), &mut topic)?;
        Ok(topic)
    }

    #[test]
    fn topics_and_subjects() {
        for (topic, subject) in [
            ("a", "a"),
            ("a/b", "a.b"),
            ("/", "/./"),
            ("//", "/././"),
            ("/a", "/.a"),
            ("a/", "a./"),
            ("a//b", "a./.b"),
            ("a.b/c", "a//b.c"),
            (".", "//"),
            ("..", "////"),
            ("./.", "//.//"),
            ("$SYS/x", "$SYS.x"),
            ("\u{e9}/\u{fc}", "\u{e9}.\u{fc}"),
        ] {
            assert_eq!(subject_of(topic).as_deref(), Ok(subject));
            assert!(has_subject(topic));
            assert_eq!(topic_of(subject).as_deref(), Ok(topic));
        }
        for (topic, expected) in [
            ("", NameError::Empty),
            ("a b", NameError::Character),
            ("a\tb", NameError::Character),
            ("a\r", NameError::Character),
            ("a\u{7f}", NameError::Character),
            ("a/+", NameError::Wildcard),
            ("a#", NameError::Wildcard),
        ] {
            assert_eq!(subject_of(topic), Err(expected), "{topic:?}");
            assert!(!has_subject(topic), "{topic:?}");
        }
        assert_eq!(topic_of("a.+"), Err(NameError::Character));
        assert_eq!(
            subject_to_topic(b"\xff", &mut String::new()),
            Err(NameError::Character)
        );
    }

    #[test]
    fn filters() {
        for (filter, subject) in [
            ("#", ">"),
            ("+", "*"),
            ("a/#", "a.>"),
            ("+/b/#", "*.b.>"),
            ("/+", "/.*"),
            ("a/+/b", "a.*.b"),
        ] {
            let mut written = Vec::new();
            assert_eq!(filter_to_subject(filter, &mut written), Ok(()));
            assert_eq!(written, subject.as_bytes());
        }
        // The examples in 4.7.1.2 and 4.7.1.3.
        for wrong in [
            "sport/tennis#",
            "sport/tennis/#/ranking",
            "sport+",
            "#/a",
            "a/b+c",
        ] {
            assert_eq!(check_filter(wrong), Err(NameError::Wildcard), "{wrong}");
        }
        assert_eq!(check_filter(""), Err(NameError::Empty));
        assert_eq!(parent_subject(b"a.b.>"), Some(&b"a.b"[..]));
        assert_eq!(parent_subject(b">"), None);
    }

    #[test]
    fn names_of_the_server_are_hidden_from_wildcards() {
        for (filter, subject, hidden) in [
            (">", "$SYS.a", true),
            ("*.a", "$SYS.a", true),
            ("*", "$SYS", true),
            ("$SYS.>", "$SYS.a", false),
            ("$SYS.*", "$SYS.a", false),
            (">", "a", false),
            // `*a` is an ordinary level, not a wildcard.
            ("*a.b", "$a.b", false),
        ] {
            let is_hidden = is_hidden(filter.as_bytes(), subject.as_bytes());
            assert_eq!(is_hidden, hidden, "{filter} {subject}");
        }
    }

    #[test]
    fn shared_filters() {
        let split = |filter| split_shared(filter, Version::V5).map(|s| (s.group, s.filter));
        assert_eq!(split("$share/g/a/+"), Ok(("g", "a/+")));
        assert_eq!(split("$share/g//a"), Ok(("g", "/a")));
        assert_eq!(split("$shared/g/a"), Ok(("", "$shared/g/a")));
        for wrong in [
            "$share/g",
            "$share//a",
            "$share/g/",
            "$share/g+/a",
            "$share/a b/a",
        ] {
            assert_eq!(split(wrong), Err(NameError::ShareName), "{wrong}");
        }
        let plain = split_shared("$share/g/a", Version::V4).map(|s| s.filter);
        assert_eq!(plain, Ok("$share/g/a"));
    }

    proptest! {
        #[test]
        fn a_topic_comes_back(topic in "[a-c./$]{1,12}") {
            let subject = subject_of(&topic).unwrap();
            prop_assert!(crate::Filter::parse(subject.as_bytes()).is_ok());
            prop_assert_eq!(topic_of(&subject).unwrap(), topic);
        }
    }
}
