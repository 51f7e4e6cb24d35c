//! The API's subjects, in which the names of streams and consumers are tokens.

use super::JetStreamError;

/// Of what the names are that follow an endpoint.
const NAMED: [&str; 2] = ["stream", "consumer"];

/// The subject of an endpoint for a stream, or for a stream and its consumer. Nobody would answer to a name of
/// several tokens, and the asker would wait in vain.
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

/// Whether a name can be that of a stream or a consumer, for every server.
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
