//! Rules for the names of buckets and keys.

use crate::jetstream::JetStreamError;

/// Checks the name of a bucket, which consists of letters, digits, `_`, and `-`.
pub(in crate::jetstream) fn check_bucket(name: &str) -> Result<(), JetStreamError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !name.is_empty() && name.bytes().all(is_allowed) {
        true => Ok(()),
        false => Err(JetStreamError::invalid_name(
            "bucket",
            name,
            "letters, digits, _ and - are allowed",
        )),
    }
}

/// Checks a key, which consists of letters, digits, and `-/_=.`. A dot cannot be the first or the last
/// character, or follow another dot.
pub(super) fn check_key(name: &str) -> Result<(), JetStreamError> {
    check_tokens(name, is_key_byte)
}

/// Checks a filter of keys. A token may be `*`, and the last token `>`.
pub(super) fn check_filter(name: &str) -> Result<(), JetStreamError> {
    check_tokens(name, |byte| {
        is_key_byte(byte) || matches!(byte, b'*' | b'>')
    })
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'_' | b'=')
}

fn check_tokens(name: &str, is_allowed: impl Fn(u8) -> bool) -> Result<(), JetStreamError> {
    if name.split('.').any(str::is_empty) {
        return Err(JetStreamError::invalid_name(
            "key",
            name,
            "a part of it is empty",
        ));
    }
    match name.bytes().all(|byte| byte == b'.' || is_allowed(byte)) {
        true => Ok(()),
        false => Err(JetStreamError::invalid_name(
            "key",
            name,
            "letters, digits and -/_=. are allowed",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_key_and_filter_names() {
        for (name, bucket, key, filter) in [
            ("prices", true, true, true),
            ("a_b-C9", true, true, true),
            ("a.b/c=d", false, true, true),
            ("a.*.c", false, false, true),
            (">", false, false, true),
            ("a b", false, false, false),
            ("", false, false, false),
            (".a", false, false, false),
            ("a.", false, false, false),
            ("a..b", false, false, false),
            ("käse", false, false, false),
        ] {
            assert_eq!(check_bucket(name).is_ok(), bucket, "bucket {name:?}");
            assert_eq!(check_key(name).is_ok(), key, "key {name:?}");
            assert_eq!(check_filter(name).is_ok(), filter, "filter {name:?}");
        }
    }
}
