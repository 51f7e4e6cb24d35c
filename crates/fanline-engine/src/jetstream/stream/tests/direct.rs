use super::Bench;

fn bench() -> Bench {
    let mut bench = Bench::new(r#""subjects":["r.>"],"allow_direct":true"#);
    for text in [
        "r.a xxx",
        "r.a |H: v| xxx",
        "r.q x",
        "r.o x",
        "r.a |H: v| yyy",
    ] {
        bench.publish(text);
    }
    bench
}

/// Sends a request, and returns the answers as `sequence@pending,last payload`, or as the status line.
fn get(bench: &mut Bench, subject: &str, body: &str) -> String {
    let (now, port) = (bench.now, &mut bench.port);
    bench
        .stream
        .direct_get(subject.as_bytes(), body.as_bytes(), b"r", now, port);
    let answers = bench.port.take_published().into_iter().map(|line| {
        let value = |name: &str| {
            let at = line.find(&format!("{name}: "))?;
            line[at..]
                .split_once(": ")?
                .1
                .split('|')
                .next()
                .map(str::to_owned)
        };
        let pending = value("Nats-Num-Pending").unwrap_or_default();
        let last = value("Nats-Last-Sequence").unwrap_or_default();
        match value("Nats-Sequence") {
            Some(sequence) => {
                let payload = line.rsplit_once("|| ").unwrap().1;
                let place = if pending.is_empty() {
                    String::new()
                } else {
                    format!("@{pending},{last}")
                };
                format!("{sequence}{place} {payload}")
            }
            None if line.contains(" 204 ") => {
                let up_to = value("Nats-UpTo-Sequence").map(|up_to| format!(",{up_to}"));
                format!("end@{pending},{last}{}", up_to.unwrap_or_default())
            }
            None => line
                .trim_start_matches("r ")
                .trim_start_matches("NATS/1.0 ")
                .trim_end_matches('|')
                .to_owned(),
        }
    });
    answers.collect::<Vec<_>>().join(" / ")
}

const NOT_FOUND: &str = "404 Message Not Found";

/// Requests: the end of the subject, the body, and the expected answers.
const REQUESTS: &[(&str, &str, &str)] = &[
    ("", r#"{"seq":1}"#, "1 xxx"),
    ("", r#"{"seq":99}"#, NOT_FOUND),
    ("", r#"{"last_by_subj":"r.a"}"#, "5 yyy"),
    ("", r#"{"last_by_subj":"r.zz"}"#, NOT_FOUND),
    ("", "", "408 Empty Request"),
    ("", "{", "408 Malformed Request"),
    ("", r#"{"foo":1}"#, "408 Empty Request"),
    ("r.a", "", "5 yyy"),
    ("r.zz", "", NOT_FOUND),
    ("r.a", "{}", "5 yyy"),
    ("r.a", "{", "408 Malformed Request"),
    ("r.a", r#"{"batch":2}"#, "408 Bad Request"),
    ("r.a", r#"{"last_by_subj":"r.q"}"#, "408 Bad Request"),
    ("r.a", r#"{"seq":1}"#, "408 Bad Request"),
    ("", r#"{"seq":1,"last_by_subj":"r.a"}"#, "408 Bad Request"),
    ("", r#"{"next_by_subj":"r.*"}"#, "1 xxx"),
    ("", r#"{"next_by_subj":"r.*","seq":2}"#, "2 xxx"),
    ("", r#"{"seq":0}"#, "408 Empty Request"),
    ("", r#"{"batch":2}"#, "408 Empty Request"),
    (
        "",
        r#"{"seq":1,"batch":2}"#,
        "1@4,0 xxx / 2@3,1 xxx / end@3,2",
    ),
    (
        "",
        r#"{"seq":1,"batch":2,"next_by_subj":"r.a"}"#,
        "1@2,0 xxx / 2@1,1 xxx / end@1,2",
    ),
    ("", r#"{"seq":50,"batch":2}"#, NOT_FOUND),
    (
        "",
        r#"{"batch":3,"next_by_subj":"r.zz","seq":1}"#,
        NOT_FOUND,
    ),
    ("", r#"{"seq":1,"batch":-1}"#, "end@5,0"),
    ("", r#"{"last_by_subj":"r.a","batch":2}"#, "408 Bad Request"),
    (
        "",
        r#"{"multi_last":["r.>"]}"#,
        "3@2,0 x / 4@1,3 x / 5@0,4 yyy / end@0,5,5",
    ),
    (
        "",
        r#"{"multi_last":["r.a","r.q"]}"#,
        "3@1,0 x / 5@0,3 yyy / end@0,5,5",
    ),
    (
        "",
        r#"{"multi_last":["r.q","r.*","r.a","r.a","r..a"]}"#,
        "3@2,0 x / 4@1,3 x / 5@0,4 yyy / end@0,5,5",
    ),
    ("", r#"{"multi_last":["r.zz"]}"#, "404 No Results"),
    ("", r#"{"multi_last":["r..a"]}"#, "404 No Results"),
    ("", r#"{"multi_last":[""]}"#, "404 No Results"),
    (
        "",
        r#"{"multi_last":["r.>"],"batch":1}"#,
        "3@2,0 x / end@2,3,5",
    ),
    (
        "",
        r#"{"multi_last":["r.>"],"up_to_seq":3}"#,
        "2@1,0 xxx / 3@0,2 x / end@0,3,3",
    ),
    (
        "",
        r#"{"multi_last":["r.>"],"up_to_time":"2020-01-01T00:00:00Z"}"#,
        "404 No Results",
    ),
    (
        "",
        r#"{"multi_last":["r.>"],"up_to_seq":3,"up_to_time":"2030-01-01T00:00:00Z"}"#,
        "408 Bad Request",
    ),
    (
        "",
        r#"{"multi_last":["r.>"],"last_by_subj":"x"}"#,
        "408 Bad Request",
    ),
    (
        "",
        r#"{"multi_last":["r.>"],"max_bytes":1}"#,
        "3@2,0 x / end@2,3,5",
    ),
    ("", r#"{"start_time":"2020-01-01T00:00:00Z"}"#, "1 xxx"),
    ("", r#"{"start_time":"2030-01-01T00:00:00Z"}"#, NOT_FOUND),
    (
        "",
        r#"{"start_time":"2020-01-01T00:00:00Z","batch":2}"#,
        "1@4,0 xxx / 2@3,1 xxx / end@3,2",
    ),
    (
        "",
        r#"{"seq":2,"start_time":"2020-01-01T00:00:00Z"}"#,
        "408 Bad Request",
    ),
    ("", r#"{"seq":2,"no_hdr":true}"#, "xxx"),
];

#[test]
fn direct_gets_match_nats_server() {
    let mut bench = bench();
    for (subject, body, expected) in REQUESTS {
        assert_eq!(
            get(&mut bench, subject, body),
            *expected,
            "{subject} {body}"
        );
    }
}

/// Regression: each of many filters matched every subject, and the server listed all matches before it
/// counted them. A request of 100 KB used 100 MB of memory.
#[test]
fn multi_last_with_many_filters_is_bounded() {
    let mut bench = Bench::new(r#""subjects":["r.>"],"allow_direct":true"#);
    for n in 0..1_024 {
        bench.publish(&format!("r.{n} x"));
    }
    let filters = vec![r#""r.*""#; 20_000].join(",");
    let body = format!(r#"{{"multi_last":[{filters}]}}"#);
    let answers = get(&mut bench, "", &body);
    assert_eq!(answers.split(" / ").count(), 1_024 + 1);
    bench.publish("r.more x");
    assert_eq!(get(&mut bench, "", &body), "413 Too Many Results");
}

#[test]
fn direct_get_headers_are_in_order() {
    let mut bench = bench();
    bench.stream.direct_get(
        b"",
        br#"{"seq":2,"batch":1}"#,
        b"r",
        bench.now,
        &mut bench.port,
    );
    assert_eq!(
        bench.port.take_published()[0],
        "r NATS/1.0|H: v|Nats-Stream: S|Nats-Subject: r.a|Nats-Sequence: 2|\
         Nats-Time-Stamp: 2026-11-21T22:33:09.64Z|Nats-Num-Pending: 3|Nats-Last-Sequence: 0|| xxx"
    );
}
