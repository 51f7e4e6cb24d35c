//! Counters: a record's payload is the sum of all increments of its subject.

use serde::Deserialize;

use super::decimal::Decimal;
use super::headers::PublishHeaders;
use crate::jetstream::ApiError;

/// Maximum number of digits of an increment and of a sum.
const DIGITS_MAX: usize = 4096;

/// Payload of a counter.
#[derive(Deserialize)]
struct Value<'a> {
    #[serde(borrow)]
    val: &'a str,
}

/// Returns the increment of a publish.
///
/// # Errors
/// The publish has no increment or has a payload. Or it has conditions that depend on the order of publishes.
/// A sum must not depend on this order.
pub(super) fn increment(headers: &PublishHeaders<'_>, payload: &[u8]) -> Result<Decimal, ApiError> {
    let text = headers.increment.ok_or(ApiError::MESSAGE_INCR_MISSING)?;
    if !payload.is_empty() {
        return Err(ApiError::MESSAGE_INCR_PAYLOAD);
    }
    let conditional = headers.rollup.is_some()
        || headers.expected_stream.is_some()
        || headers.expected_last_sequence.is_some()
        || headers.expected_last_subject_sequence.is_some()
        || headers.expected_last_msg_id.is_some();
    match parse(text) {
        Some(increment) if !conditional => Ok(increment),
        _ => Err(ApiError::MESSAGE_INCR_INVALID),
    }
}

/// Returns the value of a counter from its record.
///
/// # Errors
/// The payload is not that of a counter.
pub(super) fn value(payload: &[u8]) -> Result<Decimal, ApiError> {
    let value: Value<'_> =
        serde_json::from_slice(payload).map_err(|_| ApiError::MESSAGE_COUNTER_BROKEN)?;
    parse(value.val.as_bytes()).ok_or(ApiError::MESSAGE_COUNTER_BROKEN)
}

/// Returns the payload for a value.
///
/// # Errors
/// The value has too many digits.
pub(super) fn payload(value: &Decimal) -> Result<String, ApiError> {
    match value.len() > DIGITS_MAX {
        true => Err(ApiError::MESSAGE_INCR_INVALID),
        false => Ok(format!(r#"{{"val":"{value}"}}"#)),
    }
}

/// Returns whether a header is a valid increment.
pub(super) fn is_number(text: &[u8]) -> bool {
    parse(text).is_some()
}

/// Parses decimal digits with an optional sign and a maximum length. Other forms are refused.
pub(super) fn parse(text: &[u8]) -> Option<Decimal> {
    let sign_bytes = usize::from(text.starts_with(b"-") || text.starts_with(b"+"));
    match text.len() - sign_bytes > DIGITS_MAX {
        true => None,
        false => Decimal::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_are_parsed_and_added() {
        let ask = |text: &'static str| PublishHeaders {
            increment: Some(text.as_bytes()),
            ..PublishHeaders::default()
        };
        for (text, sum) in [
            ("1", "6"),
            ("+5", "10"),
            ("-3", "2"),
            ("-0", "5"),
            ("0", "5"),
            ("100000000000000000000000", "100000000000000000000005"),
        ] {
            let increment = increment(&ask(text), b"").unwrap();
            let sum_found = &value(br#"{"val":"5"}"#).unwrap() + &increment;
            assert_eq!(payload(&sum_found), Ok(format!(r#"{{"val":"{sum}"}}"#)));
        }
        for text in ["x", "1.5", "7 ", "0x10", "1_0", "+", "--1"] {
            assert_eq!(
                increment(&ask(text), b""),
                Err(ApiError::MESSAGE_INCR_INVALID),
                "{text}"
            );
        }
        let none = PublishHeaders::default();
        assert_eq!(increment(&none, b""), Err(ApiError::MESSAGE_INCR_MISSING));
        assert_eq!(
            increment(&ask("1"), b"x"),
            Err(ApiError::MESSAGE_INCR_PAYLOAD)
        );
        let conditional = PublishHeaders {
            rollup: Some(b"sub"),
            ..ask("1")
        };
        assert_eq!(
            increment(&conditional, b""),
            Err(ApiError::MESSAGE_INCR_INVALID)
        );
        assert_eq!(value(b"hello"), Err(ApiError::MESSAGE_COUNTER_BROKEN));
    }

    #[test]
    fn long_increments_and_sums_are_refused() {
        let longest = "9".repeat(DIGITS_MAX);
        let largest = parse(longest.as_bytes()).unwrap();
        assert_eq!(
            payload(&-largest.clone()),
            Ok(format!(r#"{{"val":"-{longest}"}}"#))
        );
        let sum = payload(&(&largest + &parse(b"1").unwrap()));
        assert_eq!(sum, Err(ApiError::MESSAGE_INCR_INVALID));
        assert!(parse("1".repeat(DIGITS_MAX + 1).as_bytes()).is_none());
    }
}
