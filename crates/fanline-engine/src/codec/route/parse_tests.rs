use proptest::prelude::*;

use super::*;

/// A message in owned form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meant {
    origin: String,
    account: String,
    subject: String,
    reply: String,
    groups: Vec<String>,
    header_bytes: usize,
    body: String,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the meaning of a parsed message.
fn meaning(input: &[u8], message: &RouteMessage<'_>) -> Meant {
    let groups = message.groups.split(|b| matches!(b, b' ' | b'\t'));
    Meant {
        origin: text(message.origin),
        account: text(message.account),
        subject: text(message.publish.subject),
        reply: text(message.publish.reply),
        groups: groups.filter(|name| !name.is_empty()).map(text).collect(),
        header_bytes: message.publish.header_bytes,
        body: text(&input[message.publish.body.clone()]),
    }
}

/// Parses a message, and checks that nothing is left.
fn parsed(input: &str, is_dedicated: bool) -> Meant {
    match parse_route(input.as_bytes(), is_dedicated) {
        RouteParsed::Verb(RouteVerb::Message(message), taken) => {
            assert_eq!(taken, input.len(), "{input:?}");
            meaning(input.as_bytes(), &message)
        }
        other => panic!("{input:?} is no message: {other:?}"),
    }
}

#[test]
fn messages_in_every_form() {
    const HEADERS: &str = "NATS/1.0\r\n\r\n";
    for (args, reply, groups) in [
        ("a", "", &[][..]),
        ("a r", "r", &[]),
        ("a +", "+", &[]),
        ("a |", "|", &[]),
        ("a + r", "r", &[]),
        ("a + r q1 q2", "r", &["q1", "q2"]),
        ("a | q", "", &["q"]),
        ("a | q1 q2", "", &["q1", "q2"]),
        ("a\t+  r \tq", "r", &["q"]),
    ] {
        for is_dedicated in [false, true] {
            let account = if is_dedicated { "" } else { "A" };
            let given = if is_dedicated { "" } else { "A " };
            let plain = Meant {
                account: account.into(),
                subject: "a".into(),
                reply: reply.into(),
                groups: groups.iter().map(ToString::to_string).collect(),
                body: "hi\r\n".into(),
                ..Meant::default()
            };
            let with_headers = Meant {
                header_bytes: HEADERS.len(),
                body: format!("{HEADERS}hi\r\n"),
                ..plain.clone()
            };
            let from_leaf = |meant: &Meant| Meant {
                origin: "edge".into(),
                ..meant.clone()
            };
            for (line, expected) in [
                (format!("RMSG {given}{args} 2\r\nhi\r\n"), plain.clone()),
                (format!("rmsg {given}{args} 2\nhi\r\n"), plain.clone()),
                (
                    format!("HMSG {given}{args} 12 14\r\n{HEADERS}hi\r\n"),
                    with_headers.clone(),
                ),
                (
                    format!("LMSG edge {given}{args} 0 2\r\nhi\r\n"),
                    from_leaf(&plain),
                ),
                (
                    format!("LMSG edge {given}{args} 12 14\r\n{HEADERS}hi\r\n"),
                    from_leaf(&with_headers),
                ),
            ] {
                assert_eq!(parsed(&line, is_dedicated), expected, "{line:?}");
            }
        }
    }
}

#[test]
fn usual_messages_are_forwarded_unchanged() {
    for (input, args) in [
        ("RMSG A a 2\r\nhi\r\n", "2\r\n"),
        ("RMSG A a r 2\r\nhi\r\n", "r 2\r\n"),
        ("HMSG A a r 12 12\r\nNATS/1.0\r\n\r\n\r\n", "r 12 12\r\n"),
    ] {
        let RouteParsed::Verb(RouteVerb::Message(message), _) =
            parse_route(input.as_bytes(), false)
        else {
            panic!("{input:?} is no message");
        };
        assert_eq!(&input[message.publish.args], args);
    }
}

#[test]
fn interest_in_every_form() {
    let plain = RouteInterest {
        origin: b"",
        account: b"A",
        filter: b"a.>",
        queue: b"",
        weight: 1,
    };
    let group = RouteInterest {
        queue: b"q",
        weight: 3,
        ..plain
    };
    let gone = |interest: RouteInterest<'static>| RouteInterest {
        weight: 0,
        ..interest
    };
    let of_leaf = |interest: RouteInterest<'static>| RouteInterest {
        origin: b"edge",
        ..interest
    };
    for (line, expected) in [
        ("RS+ A a.>", RouteVerb::Subscribe(plain)),
        ("rs+ A a.> q 3", RouteVerb::Subscribe(group)),
        ("RS+ A a.> q 0", RouteVerb::Subscribe(gone(group))),
        ("RS- A a.>", RouteVerb::Unsubscribe(gone(plain))),
        ("RS- A a.> q", RouteVerb::Unsubscribe(gone(group))),
        ("LS+ edge A a.>", RouteVerb::Subscribe(of_leaf(plain))),
        ("LS+ edge A a.> q 3", RouteVerb::Subscribe(of_leaf(group))),
        (
            "LS- edge A a.>",
            RouteVerb::Unsubscribe(of_leaf(gone(plain))),
        ),
        (
            "LS- edge A a.> q",
            RouteVerb::Unsubscribe(of_leaf(gone(group))),
        ),
        (
            "A+ A",
            RouteVerb::Account {
                account: b"A",
                is_wanted: true,
            },
        ),
        (
            "A- A",
            RouteVerb::Account {
                account: b"A",
                is_wanted: false,
            },
        ),
        ("PING", RouteVerb::Ping),
        ("pong", RouteVerb::Pong),
        ("+OK", RouteVerb::Ok),
        ("-ERR 'no'", RouteVerb::Error(b"no")),
        ("INFO {\"a\":1} ", RouteVerb::Info(b"{\"a\":1}")),
        ("CONNECT {}", RouteVerb::Connect(b"{}")),
    ] {
        let input = format!("{line}\r\n");
        let parsed = parse_route(input.as_bytes(), false);
        assert_eq!(parsed, RouteParsed::Verb(expected, input.len()), "{line}");
    }
    let dedicated = RouteInterest {
        account: b"",
        ..group
    };
    assert_eq!(
        parse_route(b"RS+ a.> q 3\r\n", true),
        RouteParsed::Verb(RouteVerb::Subscribe(dedicated), 13)
    );
}

/// Lines whose verb is in lower case do not take the fast path.
#[test]
fn interest_in_usual_form_has_the_meaning_of_other_forms() {
    for args in [
        "A a.b", "A", "A ", " A a", "A  a", "A a ", "A a\t", "A\ta", "A\tb c", "A a q", "A a q 2",
        "", " ", "A a\rb",
    ] {
        for (usual, other) in [("RS+", "rs+"), ("RS-", "rs-")] {
            for end in ["\r\n", "\n", "", "\r"] {
                for is_dedicated in [false, true] {
                    let input = |verb: &str| format!("{verb} {args}{end}");
                    let (usual, other) = (input(usual), input(other));
                    assert_eq!(
                        parse_route(usual.as_bytes(), is_dedicated),
                        parse_route(other.as_bytes(), is_dedicated),
                        "{usual:?} {is_dedicated}"
                    );
                }
            }
        }
    }
}

#[test]
fn invalid_lines_are_refused_and_partial_ones_wait() {
    for (input, fault) in [
        ("GET / HTTP/1.1\r\n", UNKNOWN),
        ("\u{16}\u{3}\u{1}", UNKNOWN),
        ("SUB a 1\r\n", UNKNOWN),
        ("PUB a 1\r\n", UNKNOWN),
        ("RS+\r\n", MALFORMED),
        ("RS+ A\r\n", MALFORMED),
        ("RS+ A a q\r\n", MALFORMED),
        ("RS+ A a q x\r\n", MALFORMED),
        ("RS+ A a q -1\r\n", MALFORMED),
        ("RS+ A a q 1 2\r\n", MALFORMED),
        ("RS- A a q 1\r\n", MALFORMED),
        ("LS+ edge A\r\n", MALFORMED),
        ("RMSG A 2\r\n", MALFORMED),
        ("RMSG A a x\r\n", MALFORMED),
        ("RMSG A a -2\r\n", MALFORMED),
        ("RMSG A a b c 2\r\nhi\r\n", MALFORMED),
        ("RMSG A a ++ r q 2\r\nhi\r\n", MALFORMED),
        ("HMSG A a 9 2\r\nhi\r\n", MALFORMED),
        ("LMSG edge A a 2\r\nhi\r\n", MALFORMED),
        ("RMSG A a 2\r\nhi!!", UNKNOWN),
        ("RMSG A a 67108865\r\n", TOO_LARGE),
        ("RMSG A a 99999999999999999999\r\n", TOO_LARGE),
    ] {
        let parsed = parse_route(input.as_bytes(), false);
        assert_eq!(parsed, RouteParsed::Wrong(fault), "{input:?}");
    }
    for (input, frame_bytes) in [
        ("RMS", 0),
        ("RMSG A", 0),
        ("RMSG A a 2\r\nhi", 16),
        ("INFO {", 0),
        ("", 0),
    ] {
        let parsed = parse_route(input.as_bytes(), false);
        assert_eq!(parsed, RouteParsed::Partial { frame_bytes }, "{input:?}");
    }
    let endless = [&b"RS+ "[..], &vec![b'a'; ROUTE_LINE_BYTES_MAX]].concat();
    assert_eq!(parse_route(&endless, false), RouteParsed::Wrong(TOO_LONG));
}

/// Parses a message's line as the reference describes it: splits the arguments, and decides by their number.
fn naive(line: &str, is_dedicated: bool) -> Option<Meant> {
    let mut args: Vec<&str> = line.split_ascii_whitespace().collect();
    let verb = args.remove(0).to_ascii_uppercase();
    let total: usize = args.pop()?.parse().ok()?;
    let header_bytes = match &*verb {
        "RMSG" => 0,
        _ => args.pop()?.parse().ok()?,
    };
    let mut front = args.into_iter();
    let origin = if verb == "LMSG" { front.next()? } else { "" };
    let account = if is_dedicated { "" } else { front.next()? };
    let subject = front.next()?;
    let rest: Vec<&str> = front.collect();
    let (reply, groups) = match &*rest {
        [] => ("", &[][..]),
        [reply] => (*reply, &[][..]),
        ["+", reply, groups @ ..] => (*reply, groups),
        ["|", groups @ ..] => ("", groups),
        _ => return None,
    };
    (header_bytes <= total).then(|| Meant {
        origin: origin.into(),
        account: account.into(),
        subject: subject.into(),
        reply: reply.into(),
        groups: groups.iter().map(ToString::to_string).collect(),
        header_bytes,
        body: format!("{}\r\n", "x".repeat(total)),
    })
}

proptest! {
    #[test]
    fn messages_mean_what_a_naive_parser_reads(
        verb in prop::sample::select(vec!["RMSG", "HMSG", "LMSG", "hmsg", "Lmsg"]),
        args in prop::collection::vec(
            prop::sample::select(vec!["A", "a.b", "_INBOX.1", "+", "|", "q", "0", "2", "12", "x"]),
            0..8,
        ),
        blank in prop::sample::select(vec![" ", "  ", "\t"]),
        is_dedicated: bool,
    ) {
        let mut line = verb.to_owned();
        for arg in &args {
            line += blank;
            line += arg;
        }
        let expected = naive(&line, is_dedicated);
        let body = expected.as_ref().map_or("", |meant| &*meant.body);
        let input = format!("{line}\r\n{body}");
        match (parse_route(input.as_bytes(), is_dedicated), expected) {
            (RouteParsed::Verb(RouteVerb::Message(message), taken), Some(expected)) => {
                prop_assert_eq!(taken, input.len());
                prop_assert_eq!(meaning(input.as_bytes(), &message), expected);
            }
            (RouteParsed::Wrong(fault), None) => prop_assert_eq!(fault, MALFORMED),
            (parsed, expected) => prop_assert!(false, "{:?} for {:?}", parsed, expected),
        }
    }

    #[test]
    fn written_lines_are_parsed_back(
        account in "[A-Z]{0,3}",
        subject in "[a-z]{1,8}(\\.[a-z]{1,3}){0,2}",
        reply in "([a-z]{1,8}|\\+|\\||)",
        groups in prop::collection::vec("[a-z]{1,4}", 0..4),
        header_bytes in 0usize..20,
        more_bytes in 0usize..20,
        weight in 0u32..5,
    ) {
        let is_dedicated = account.is_empty();
        let total = header_bytes + more_bytes;
        let mut line = Vec::new();
        let names = groups.iter().fold(String::new(), |names, name| names + name + " ");
        super::super::write_head(
            &mut line,
            account.as_bytes(),
            subject.as_bytes(),
            reply.as_bytes(),
            names.as_bytes(),
            header_bytes,
            total,
        );
        let body = format!("{}\r\n", "x".repeat(total));
        let input = text(&line) + &body;
        let expected = Meant {
            origin: String::new(),
            account: account.clone(),
            subject: subject.clone(),
            reply,
            groups,
            header_bytes,
            body,
        };
        prop_assert_eq!(parsed(&input, is_dedicated), expected);
        let mut line = Vec::new();
        let queue = if weight == 1 { "" } else { "q" };
        let parts = [&account, &subject, queue].map(str::as_bytes);
        super::super::write_interest(&mut line, b"", parts[0], (parts[1], parts[2]), weight);
        let interest = RouteInterest {
            origin: b"",
            account: parts[0],
            filter: parts[1],
            queue: parts[2],
            weight,
        };
        let verb = match weight {
            0 => RouteVerb::Unsubscribe(interest),
            _ => RouteVerb::Subscribe(interest),
        };
        let parsed = parse_route(&line, is_dedicated);
        prop_assert_eq!(parsed, RouteParsed::Verb(verb, line.len()));
    }
}

#[test]
fn messages_that_were_passed_on_repeat_their_first_group() {
    for (groups, times, expected) in [
        ("q ", 0, "q "),
        ("q ", 1, "q q "),
        ("q ", 3, "q q q q "),
        ("q1 q2 ", 2, "q1 q2 q1 q1 "),
        ("q q1 ", 1, "q q1 q "),
    ] {
        let written = super::super::passed_on(groups.as_bytes(), times);
        assert_eq!(String::from_utf8_lossy(&written), expected);
        let split = split_passed_on(written.trim_ascii());
        assert_eq!(split, (groups.trim_end().as_bytes(), times));
    }
    assert_eq!(split_passed_on(b""), (&b""[..], 0));
    assert_eq!(split_passed_on(b"q1 q2"), (&b"q1 q2"[..], 0));
    let many = "q ".repeat(1000);
    assert_eq!(split_passed_on(many.trim_ascii_end().as_bytes()).0, b"q");
}
