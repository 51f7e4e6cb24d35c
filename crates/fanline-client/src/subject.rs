//! Checks of subjects, filters, and queue names. They reject everything that could end a line or a word of
//! the protocol.

use super::error::ClientError;

/// Checks a subject to publish to: it has no empty token, no whitespace, and no wildcard.
pub fn check_subject(subject: &str) -> Result<(), ClientError> {
    check(subject, |token, _| match token {
        "*" | ">" => Err("wildcards are for subscriptions, not for publishing"),
        _ => Ok(()),
    })
}

/// Checks a filter to subscribe to. It is a subject that may have `*` as any token, and `>` as the last.
pub fn check_filter(filter: &str) -> Result<(), ClientError> {
    check(filter, |token, is_last| match token {
        ">" if !is_last => Err("\">\" may only be the last token"),
        _ => Ok(()),
    })
}

/// Checks a queue group's name.
pub(super) fn check_queue(queue: &str) -> Result<(), ClientError> {
    let reason = if queue.is_empty() {
        "a queue name cannot be empty"
    } else if queue.bytes().any(is_whitespace) {
        "a queue name cannot contain whitespace"
    } else {
        return Ok(());
    };
    Err(ClientError::InvalidSubject {
        subject: queue.to_owned(),
        reason,
    })
}

fn check(
    subject: &str,
    token_is_fine: impl Fn(&str, bool) -> Result<(), &'static str>,
) -> Result<(), ClientError> {
    let refuse = |reason| {
        Err(ClientError::InvalidSubject {
            subject: subject.to_owned(),
            reason,
        })
    };
    if subject.is_empty() {
        return refuse("it is empty");
    }
    if subject.bytes().any(is_whitespace) {
        return refuse("it contains whitespace");
    }
    let mut tokens = subject.split('.').peekable();
    while let Some(token) = tokens.next() {
        if token.is_empty() {
            return refuse("a token between two dots is empty");
        }
        if let Err(reason) = token_is_fine(token, tokens.peek().is_none()) {
            return refuse(reason);
        }
    }
    Ok(())
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_subjects_and_filters_are_rejected() {
        for (text, subject_is_fine, filter_is_fine) in [
            ("a", true, true),
            ("orders.eu.new", true, true),
            ("prix.é", true, true),
            ("fo*.b>r", true, true),
            ("a.*.b", false, true),
            ("a.>", false, true),
            (">", false, true),
            ("a.>.b", false, false),
            ("", false, false),
            (".a", false, false),
            ("a.", false, false),
            ("a..b", false, false),
            ("a b", false, false),
            ("a\r\nPUB b 0\r\n", false, false),
            ("a\tb", false, false),
        ] {
            assert_eq!(
                check_subject(text).is_ok(),
                subject_is_fine,
                "subject {text:?}"
            );
            assert_eq!(
                check_filter(text).is_ok(),
                filter_is_fine,
                "filter {text:?}"
            );
        }
        assert!(check_queue("workers").is_ok());
        assert!(check_queue("two words").is_err());
        assert!(check_queue("").is_err());
    }
}
