//! Bodies of requests: a filter of servers, and options.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::query::Query;
use super::endpoints::Page;

/// A filter that selects servers. All fields that are not empty must match.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    server_name: String,
    cluster: String,
    host: String,
    domain: String,
    tags: Vec<String>,
    exact_match: bool,
}

/// The server's properties that filters refer to.
pub(super) struct ServerIdentity<'a> {
    pub(super) name: &'a str,
    pub(super) host: &'a str,
    pub(super) cluster: &'a str,
    pub(super) domain: Option<&'a str>,
    pub(super) tags: &'a [String],
}

/// The body of a request.
#[derive(Debug, Default)]
pub(super) struct Body(Map<String, Value>);

impl Body {
    /// Parses a body. An empty body is an empty object.
    ///
    /// # Errors
    ///
    /// Fails if the body is not a JSON object. The error is a text for the requester.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.trim_ascii().is_empty() {
            return Ok(Body::default());
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Body(fields)),
            Ok(Value::Null) => Ok(Body::default()),
            Ok(_) => Err("expected an object".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) fn field(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// Returns whether the filter includes this server. An invalid filter includes no server.
    pub(super) fn is_for(&self, server: &ServerIdentity<'_>) -> bool {
        let Ok(filter) = Filter::deserialize(Value::Object(self.0.clone())) else {
            return false;
        };
        let fits = |wanted: &str, is: &str| {
            wanted.is_empty() || wanted == is || !filter.exact_match && is.contains(wanted)
        };
        let has = |tag: &String| {
            server
                .tags
                .iter()
                .any(|known| known.eq_ignore_ascii_case(tag))
        };
        fits(&filter.server_name, server.name)
            && fits(&filter.host, server.host)
            && fits(&filter.cluster, server.cluster)
            && (filter.domain.is_empty() || server.domain == Some(&filter.domain))
            && filter.tags.iter().all(has)
    }

    /// Returns the options as an HTTP query.
    pub(super) fn query(&self, page: &Page) -> Query {
        let pairs = page.options.iter().filter_map(|(name, parameter)| {
            let value = match (self.field(name), *name) {
                (Value::Null, _) => return None,
                // The state is a number in JSON, and a word in a query.
                (Value::Number(state), "state") => match state.as_u64() {
                    Some(0) => "open".into(),
                    Some(1) => "closed".into(),
                    Some(2) => "all".into(),
                    _ => state.to_string(),
                },
                (Value::String(text), _) => text.clone(),
                (other, _) => other.to_string(),
            };
            match (*parameter, value.as_str()) {
                ("subs_detail", "true") => Some(("subs".to_owned(), "detail".to_owned())),
                ("subs_detail", _) => None,
                _ => Some(((*parameter).to_owned(), value)),
            }
        });
        let mut pairs: Vec<(String, String)> = pairs.collect();
        // The first value of a name applies. `detail` is moved to the front, so that `subs=detail` takes
        // precedence over another value of `subs`.
        pairs.sort_by_key(|(_, value)| value != "detail");
        Query::of(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitoring::system::endpoints::{self, Operation};

    #[test]
    fn only_servers_in_the_filter_answer() {
        let server = ServerIdentity {
            name: "east-1",
            host: "0.0.0.0",
            cluster: "c-1",
            domain: Some("hub"),
            tags: &["ssd".to_owned()],
        };
        for (body, is_meant) in [
            ("", true),
            ("{}", true),
            (r#"{"server_name":"east"}"#, true),
            (r#"{"server_name":"east","exact_match":true}"#, false),
            (r#"{"server_name":"east-1","exact_match":true}"#, true),
            (r#"{"server_name":"west"}"#, false),
            (r#"{"cluster":"c"}"#, true),
            (r#"{"cluster":"c","exact_match":true}"#, false),
            (r#"{"cluster":"d"}"#, false),
            (r#"{"domain":"hub","tags":["SSD"]}"#, true),
            (r#"{"domain":"h"}"#, false),
            (r#"{"tags":["ssd","gpu"]}"#, false),
            (r#"{"tags":5}"#, false),
        ] {
            let parsed = Body::parse(body.as_bytes()).expect("an object");
            assert_eq!(parsed.is_for(&server), is_meant, "{body}");
        }
        assert!(Body::parse(b"not json").is_err());
        assert!(Body::parse(b"[]").is_err());
    }

    #[test]
    fn options_become_parameters() {
        let query = |name: &str, body: &str| {
            let mut all = endpoints::of_all();
            let (_, operation) = all.find(|(known, _)| *known == name).expect("known");
            let Operation::Page(page) = operation else {
                panic!("{name} has no options");
            };
            Body::parse(body.as_bytes()).expect("an object").query(page)
        };
        let body = r#"{"sort":"idle","subscriptions":true,"subscriptions_detail":true,
            "state":1,"limit":5,"unknown":1,"cid":null}"#;
        let connz = query("CONNZ", body);
        for (name, value) in [
            ("sort", "idle"),
            ("subs", "detail"),
            ("state", "closed"),
            ("limit", "5"),
            ("unknown", ""),
            ("cid", ""),
        ] {
            assert_eq!(connz.text(name), value, "{name}");
        }
        let jsz = query("JSZ", r#"{"account":"A","consumer":true}"#);
        assert_eq!((jsz.text("acc"), jsz.text("consumers")), ("A", "true"));
    }
}
