//! Subjects of the servers of a cluster and of their streams.

use std::{iter, str};

use crate::auth::JETSTREAM;
use crate::jetstream::streams::OWN_PREFIX;

/// Start of the subjects of requests to one server, in the system account. The server's id follows.
const SERVER_PREFIX: &str = "$SYS.JETSTREAM.";

/// Start of the markers of streams, in their accounts. The server's id and the name of the stream follow. No message
/// has such a subject.
const OWNER_PREFIX: &str = "$JS.OWNER.";

/// Queue group of the servers with JetStream that answer requests for those without.
const DELEGATES: &[u8] = b"_js_";

/// Requests that name a stream, after the prefix of the API. `{}` is the name.
const STREAM_REQUESTS: [&str; 7] = [
    "STREAM.*.{}",
    "STREAM.*.*.{}",
    "CONSUMER.*.{}",
    "CONSUMER.*.{}.>",
    "CONSUMER.*.*.{}.>",
    "DIRECT.GET.{}",
    "DIRECT.GET.{}.>",
];

/// Returns the filters that a stream announces to the other servers of the cluster: its requests, and then its
/// marker. `prefixes` are those of the API.
pub(in crate::jetstream) fn stream_filters(
    server_id: &str,
    stream: &str,
    prefixes: &[&str],
) -> Vec<String> {
    let of_prefix = |prefix| {
        let requests = STREAM_REQUESTS.iter();
        requests.map(move |request| format!("{prefix}{}", request.replace("{}", stream)))
    };
    let mut filters: Vec<String> = prefixes.iter().flat_map(of_prefix).collect();
    filters.push(format!("{OWNER_PREFIX}{server_id}.{stream}"));
    filters
}

/// Returns whether a filter is the one of all requests to JetStream. In a cluster, a server receives them from its
/// own clients only, so it does not announce this filter to the other servers.
pub(crate) fn is_all_requests(filter: &[u8], domain: Option<&str>) -> bool {
    let all = |prefix: &[u8]| filter.strip_prefix(prefix) == Some(b"API.>");
    all(b"$JS.")
        || domain.is_some_and(|domain| {
            let rest = filter.strip_prefix(b"$JS.");
            let rest = rest.and_then(|rest| rest.strip_prefix(domain.as_bytes()));
            rest == Some(b".API.>")
        })
}

/// Returns whether only the JetStream service may announce a filter to other servers: it tells them of the server's
/// JetStream, or of a stream.
pub fn is_of_service(filter: &[u8]) -> bool {
    [SERVER_PREFIX, OWNER_PREFIX]
        .iter()
        .any(|prefix| filter.starts_with(prefix.as_bytes()))
}

/// Returns the id of the service that announces a filter, if it is such a filter.
pub fn service_of(filter: &[u8]) -> Option<&str> {
    let filter = str::from_utf8(filter).ok()?;
    server_of(filter).or_else(|| owner_of(filter).map(|(id, _)| id))
}

/// Returns whether a queue group of a filter consists of the servers that answer requests for those without
/// JetStream. Only the JetStream service may announce it to other servers.
pub(crate) fn is_for_delegates(filter: &[u8], queue: &[u8]) -> bool {
    queue == DELEGATES && filter.starts_with(OWN_PREFIX)
}

/// Returns the filters of the requests that a server answers for those without JetStream, and their queue group.
pub(super) fn delegated(domain: Option<&str>) -> impl Iterator<Item = (String, &'static [u8])> {
    let of_domain = domain.map(|domain| format!("$JS.{domain}."));
    let prefixes = iter::once("$JS.".to_owned()).chain(of_domain);
    let of_prefix = |prefix: String| {
        JETSTREAM
            .iter()
            .filter_map(move |filter| Some(format!("{prefix}{}", filter.strip_prefix("$JS.")?)))
    };
    prefixes
        .flat_map(of_prefix)
        .map(|filter| (filter, DELEGATES))
}

/// Returns the filter of requests to a server.
pub fn requests_of_server(id: &str) -> String {
    format!("{SERVER_PREFIX}{id}.>")
}

/// Returns the server whose requests a filter matches.
pub(super) fn server_of(filter: &str) -> Option<&str> {
    filter.strip_prefix(SERVER_PREFIX)?.strip_suffix(".>")
}

/// Returns the server and the stream of a marker.
pub(super) fn owner_of(filter: &str) -> Option<(&str, &str)> {
    filter.strip_prefix(OWNER_PREFIX)?.split_once('.')
}

/// Returns the part of a subject after the server's id.
pub(super) fn request_path<'a>(subject: &'a [u8], id: &str) -> Option<&'a [u8]> {
    let rest = subject.strip_prefix(SERVER_PREFIX.as_bytes())?;
    rest.strip_prefix(id.as_bytes())?.strip_prefix(b".")
}

/// Returns the subject of questions to a server.
pub(super) fn questions_to(id: &str) -> String {
    format!("{SERVER_PREFIX}{id}.ASK")
}

/// Returns the subject of the answer of `from` to a question of the server `id`.
pub(super) fn answers_to(id: &str, number: u64, from: &str) -> String {
    format!("{SERVER_PREFIX}{id}.ANSWER.{number}.{from}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::api;
    use crate::subject::Filter;

    #[test]
    fn filters_match_every_request_that_names_the_stream() {
        let filters = stream_filters("N1", "S", &["$JS.API.", "$JS.d.API."]);
        let matches = |subject: &str| {
            let matching = |filter: &String| {
                Filter::parse(filter.as_bytes()).is_ok_and(|it| it.matches(subject.as_bytes()))
            };
            filters.iter().any(matching)
        };
        for path in api::paths() {
            let path = path
                .replacen('*', "S", 1)
                .replace('*', "c")
                .replace('>', "x.y");
            for prefix in ["$JS.API.", "$JS.d.API."] {
                let names_stream = api::stream_named(&path) == Some("S");
                assert_eq!(matches(&format!("{prefix}{path}")), names_stream, "{path}");
            }
        }
        for subject in [
            "$JS.API.STREAM.INFO.T",
            "$JS.API.INFO",
            "$JS.API.DIRECT.GET.T.S",
        ] {
            assert!(!matches(subject), "{subject}");
        }
    }

    #[test]
    fn markers_are_written_and_read() {
        let marker = stream_filters("N1", "S", &[]).pop().unwrap();
        assert_eq!(owner_of(&marker), Some(("N1", "S")));
        let filter = requests_of_server("N1");
        assert_eq!(server_of(&filter), Some("N1"));
        assert!(is_of_service(marker.as_bytes()) && is_of_service(filter.as_bytes()));
        assert_eq!(
            request_path(b"$SYS.JETSTREAM.N1.ASK", "N1"),
            Some(&b"ASK"[..])
        );
        assert_eq!(request_path(b"$SYS.JETSTREAM.N12.ASK", "N1"), None);
        for (filter, expected) in [
            ("$JS.API.>", true),
            ("$JS.d.API.>", true),
            ("$JS.e.API.>", false),
            ("$JS.API.INFO", false),
        ] {
            assert_eq!(
                is_all_requests(filter.as_bytes(), Some("d")),
                expected,
                "{filter}"
            );
        }
    }
}
