//! Parses the JSON of requests as nats-server does.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::jetstream::error::ApiError;

/// Treatment of an unknown field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// The request is refused, so that users notice misspelled fields.
    #[default]
    Strict,
    /// The field is ignored.
    Lenient,
}

/// Parses a value. A `null` field counts as absent. If a field occurs several times, the last one counts.
///
/// # Errors
/// `10025` if the text is not JSON or a field has the wrong type. With [`Strictness::Strict`], also if a
/// field is unknown.
pub fn decode<T: DeserializeOwned>(json: &[u8], strictness: Strictness) -> Result<T, ApiError> {
    from_value(parse(json)?, strictness)
}

/// Parses a value from an object that has an additional Boolean field, named `flag`.
///
/// # Errors
/// Those of [`decode`].
pub fn decode_with_flag<T: DeserializeOwned>(
    json: &[u8],
    flag: &str,
    strictness: Strictness,
) -> Result<(T, bool), ApiError> {
    let mut value = parse(json)?;
    let flag = value.as_object_mut().and_then(|fields| fields.remove(flag));
    let flag: Option<bool> = from_value(flag.unwrap_or_default(), strictness)?;
    Ok((from_value(value, strictness)?, flag.unwrap_or_default()))
}

fn parse(json: &[u8]) -> Result<Value, ApiError> {
    let mut value: Value = serde_json::from_slice(json).map_err(ApiError::invalid_json)?;
    // serde would also accept an array of the fields' values.
    if !value.is_object() {
        return Err(ApiError::invalid_json("an object is expected"));
    }
    drop_nulls(&mut value);
    Ok(value)
}

fn from_value<T: DeserializeOwned>(value: Value, strictness: Strictness) -> Result<T, ApiError> {
    let mut unknown = None;
    let decoded = serde_ignored::deserialize(value, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    })
    .map_err(ApiError::invalid_json)?;
    match unknown {
        Some(path) if strictness == Strictness::Strict => {
            let field = path.rsplit('.').next().unwrap_or_default();
            Err(ApiError::invalid_json(format_args!(
                "json: unknown field {field:?}"
            )))
        }
        _ => Ok(decoded),
    }
}

/// Parses an object, or `null` as `None`. Refuses an array of the fields' values, which serde would accept.
pub(super) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_none<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Option<T>, D::Error> {
            inner.deserialize_map(self)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    deserializer.deserialize_option(Object(PhantomData))
}

/// Parses an object, or `null` as the default. Refuses arrays as [`optional_object`] does.
pub(super) fn object_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    optional_object(deserializer).map(Option::unwrap_or_default)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        #[serde(default)]
        word: String,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        #[serde(default)]
        number: i64,
        inner: Option<Inner>,
    }

    fn check(json: &str, strictness: Strictness, expected: Result<i64, &str>) {
        let found = decode::<Outer>(json.as_bytes(), strictness);
        match (&found, expected) {
            (Ok(outer), Ok(number)) => assert_eq!(outer.number, number, "{json}"),
            (Err(error), Err(text)) => {
                assert_eq!(error.err_code, 10025, "{json}");
                assert!(error.description.contains(text), "{json}: {error}");
            }
            _ => panic!("{json}: {found:?}"),
        }
    }

    #[test]
    fn requests() {
        use Strictness::{Lenient, Strict};
        check(r#"{"number":3}"#, Strict, Ok(3));
        check(r#"{"number":null,"inner":null}"#, Strict, Ok(0));
        check(r#"{"number":1,"number":2}"#, Strict, Ok(2));
        check(r#"{"nunber":3}"#, Strict, Err(r#"unknown field "nunber""#));
        check(r#"{"number":3,"nunber":4}"#, Lenient, Ok(3));
        check(
            r#"{"inner":{"wort":1}}"#,
            Strict,
            Err(r#"unknown field "wort""#),
        );
        check(r#"{"inner":{"word":1}}"#, Lenient, Err("invalid type"));
        check(r#"{"number":"3"}"#, Strict, Err("invalid type"));
        check("[3]", Strict, Err("object"));
        check("{", Strict, Err("EOF"));
        check("", Lenient, Err("EOF"));
        let json = br#"{"number":3,"loud":true}"#;
        let (outer, flag) = decode_with_flag::<Outer>(json, "loud", Strict).unwrap();
        assert_eq!((outer.number, flag), (3, true));
        assert!(decode_with_flag::<Outer>(json, "shrill", Strict).is_err());
    }
}
