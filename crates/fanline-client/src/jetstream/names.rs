//! Subjects of the API, which contain the names of streams and consumers.

use super::JetStreamError;

/// The kinds of the names that follow an endpoint.
const NAMED: [&str; 2] = ["stream", "consumer"];

/// Returns the subject of an endpoint for a stream, or for a stream and its consumer. A name that consists of
/// several tokens is an error, because no server would reply to the request.
///
/// # Errors
///
/// [`JetStreamError::InvalidName`].
pub(super) fn endpoint<const NAMES: usize>(
    verb: &str,
    names: [&str; NAMES],
) -> Result<String, JetStreamError> {
    let mut subject = verb.to_owned();
    for (what, name) in NAMED.into_iter().zip(names) {
        check(what, name)?;
        subject.push('.');
        subject.push_str(name);
    }
    Ok(subject)
}

/// Checks that every server accepts a name for a stream or consumer.
fn check(what: &'static str, name: &str) -> Result<(), JetStreamError> {
    let is_wrong = |c: char| matches!(c, '.' | '*' | '>' | '/' | '\\') || c.is_whitespace();
    let reason = match name {
        "" => "it is empty",
        name if name.contains(is_wrong) => "no spaces and none of . * > / \\ are allowed",
        _ => return Ok(()),
    };
    Err(JetStreamError::invalid_name(what, name, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens() {
        let check = |stream: &str, consumer: &str, expected: &str| {
            let found = endpoint("V", [stream, consumer]);
            let found = found.unwrap_or_else(|error| error.to_string());
            assert_eq!(found, expected);
        };
        check("S", "c-1", "V.S.c-1");
        check("Größe", "c", "V.Größe.c");
        check("", "c", "invalid stream \"\": it is empty");
        for name in ["a.b", "a*", ">", "a b", "a\t", "a/b"] {
            let why = "no spaces and none of . * > / \\ are allowed";
            check(name, "c", &format!("invalid stream {name:?}: {why}"));
            check("S", name, &format!("invalid consumer {name:?}: {why}"));
        }
        assert_eq!(endpoint("V", ["S"]).unwrap(), "V.S");
    }
}
