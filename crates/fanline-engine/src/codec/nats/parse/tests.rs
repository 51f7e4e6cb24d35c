use proptest::prelude::*;

use super::*;

const LIMITS: ParseLimits = ParseLimits {
    control_line_bytes_max: 64,
    payload_bytes_max: 100,
    headers: true,
};

/// The meaning of a verb.
#[derive(Clone, Debug)]
enum Meant {
    Publish {
        subject: String,
        reply: String,
        header_bytes: usize,
        body: Vec<u8>,
    },
    Subscribe {
        filter: String,
        queue: String,
        sid: String,
    },
    Unsubscribe {
        sid: String,
        max: Option<u64>,
    },
    Bare(&'static str),
}

/// A spelling of a verb, which does not affect its meaning.
#[derive(Clone, Debug)]
struct Spelling {
    lower: Vec<bool>,
    blanks: Vec<&'static str>,
    zeros: &'static str,
    trailing: &'static str,
    line_end: &'static str,
}

fn usual() -> Spelling {
    Spelling {
        lower: vec![false],
        blanks: vec![" "],
        zeros: "",
        trailing: "",
        line_end: "\r\n",
    }
}

fn odd() -> impl Strategy<Value = Spelling> {
    let blanks = prop::sample::select(vec![" ", "\t", "  ", " \t "]);
    (
        prop::collection::vec(any::<bool>(), 1..8),
        prop::collection::vec(blanks, 1..5),
        prop::sample::select(vec!["", "0", "000"]),
        prop::sample::select(vec!["", " ", "\t "]),
        prop::sample::select(vec!["\r\n", "\n"]),
    )
        .prop_map(|(lower, blanks, zeros, trailing, line_end)| Spelling {
            lower,
            blanks,
            zeros,
            trailing,
            line_end,
        })
}

fn meant() -> impl Strategy<Value = Meant> {
    let token = "[!-~é]{1,9}";
    let maybe = prop_oneof![Just(String::new()), token.prop_map(String::from)];
    let body = prop::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        (token, maybe.clone(), 0usize..100, body).prop_map(|(subject, reply, headers, body)| {
            Meant::Publish {
                subject,
                reply,
                header_bytes: headers.min(body.len()),
                body,
            }
        }),
        (token, maybe, token).prop_map(|(filter, queue, sid)| Meant::Subscribe {
            filter,
            queue,
            sid
        }),
        (token, prop::option::of(0u64..1_000_000))
            .prop_map(|(sid, max)| Meant::Unsubscribe { sid, max }),
        prop::sample::select(vec!["PING", "PONG", "+OK"]).prop_map(Meant::Bare),
    ]
}

impl Spelling {
    fn line(&self, name: &str, args: &[&str]) -> Vec<u8> {
        let letters = name.chars().enumerate().map(|(i, letter)| {
            let is_lower = self.lower[i % self.lower.len()];
            if is_lower {
                letter.to_ascii_lowercase()
            } else {
                letter
            }
        });
        let mut line: String = letters.collect();
        let given = args.iter().filter(|arg| !arg.is_empty());
        for (i, arg) in given.enumerate() {
            line.push_str(self.blanks[i % self.blanks.len()]);
            line.push_str(arg);
        }
        line.push_str(self.trailing);
        line.push_str(self.line_end);
        line.into_bytes()
    }

    fn number(&self, number: impl std::fmt::Display) -> String {
        format!("{}{number}", self.zeros)
    }

    fn write(&self, meant: &Meant) -> Vec<u8> {
        match meant {
            Meant::Publish {
                subject,
                reply,
                header_bytes,
                body,
            } => {
                let total = self.number(body.len());
                let mut frame = match header_bytes {
                    0 => self.line("PUB", &[subject, reply, &total]),
                    headers => self.line("HPUB", &[subject, reply, &self.number(headers), &total]),
                };
                frame.extend(body);
                frame.extend(b"\r\n");
                frame
            }
            Meant::Subscribe { filter, queue, sid } => self.line("SUB", &[filter, queue, sid]),
            Meant::Unsubscribe { sid, max } => {
                let max = max.map(|max| self.number(max)).unwrap_or_default();
                self.line("UNSUB", &[sid, &max])
            }
            Meant::Bare(name) => self.line(name, &[]),
        }
    }
}

#[track_caller]
fn check(frame: &[u8], meant: &Meant, is_usual: bool) {
    let Parsed::Verb(verb, taken) = parse(frame, LIMITS) else {
        panic!("{:?} of {:?}", parse(frame, LIMITS), frame.escape_ascii());
    };
    match (meant, verb) {
        (
            Meant::Publish {
                subject,
                reply,
                header_bytes,
                body,
            },
            Verb::Publish(publish),
        ) => {
            assert_eq!(publish.subject, subject.as_bytes());
            assert_eq!(publish.reply, reply.as_bytes());
            assert_eq!(publish.header_bytes, *header_bytes);
            assert_eq!(&frame[publish.body.clone()], [&body[..], b"\r\n"].concat());
            assert_eq!(publish.body.end, taken);
            assert!(
                !is_usual || !publish.args.is_empty(),
                "not forwarded unchanged"
            );
        }
        (Meant::Subscribe { filter, queue, sid }, verb) => {
            let (filter, queue, sid) = (filter.as_bytes(), queue.as_bytes(), sid.as_bytes());
            assert_eq!(verb, Verb::Subscribe { filter, queue, sid });
        }
        (Meant::Unsubscribe { sid, max }, verb) => {
            let sid = sid.as_bytes();
            assert_eq!(verb, Verb::Unsubscribe { sid, max: *max });
        }
        (Meant::Bare("PING"), Verb::Ping)
        | (Meant::Bare("PONG"), Verb::Pong)
        | (Meant::Bare("+OK"), Verb::Ok) => {}
        (meant, verb) => panic!("{verb:?} instead of {meant:?}"),
    }
}

proptest! {
    /// A verb has the same meaning in every spelling, and with any following bytes.
    #[test]
    fn verb_is_parsed_in_any_form(meant in meant(), odd in odd(), behind in prop::collection::vec(any::<u8>(), 0..20)) {
        for (spelling, is_usual) in [(usual(), true), (odd, false)] {
            let mut frame = spelling.write(&meant);
            let len = frame.len();
            frame.extend(&behind);
            check(&frame, &meant, is_usual);
            for cut in 0..len {
                prop_assert!(matches!(parse(&frame[..cut], LIMITS), Parsed::Partial { .. }), "cut at {cut}");
            }
        }
    }

    #[test]
    fn find_functions_match_naive_search(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'x')], 0..40)) {
        prop_assert_eq!(find_newline(&bytes), bytes.iter().position(|b| *b == b'\n'));
        prop_assert_eq!(find_blank(&bytes, 0), bytes.iter().position(|b| *b < 0x21));
    }
}

/// Regression, found by the fuzzer: a line of exactly the maximum length was refused if a read ended between
/// its CR and its LF, because the CR was counted as a part of the line.
#[test]
fn line_of_maximum_length_may_be_cut_between_cr_and_lf() {
    let args = format!("{} 1", "x".repeat(62));
    let line = format!("SUB {args}\r\n");
    assert_eq!(parse(&line.as_bytes()[..line.len() - 1], LIMITS), PARTIAL);
    assert!(matches!(parse(line.as_bytes(), LIMITS), Parsed::Verb(..)));
    let line = format!("SUB x{args}\r\n");
    assert_eq!(parse(line.as_bytes(), LIMITS), Parsed::Wrong(TOO_LONG));
}

/// Regression, found by the fuzzer: blanks between a name and its arguments had no limit. A client could make
/// the server buffer any number of them, and parse them again with each byte.
#[test]
fn blanks_before_arguments_are_limited() {
    let blanks = |count: usize| format!("PUB{}", " ".repeat(count));
    assert_eq!(parse(blanks(64).as_bytes(), LIMITS), PARTIAL);
    assert_eq!(
        parse(blanks(1000).as_bytes(), LIMITS),
        Parsed::Wrong(TOO_LONG)
    );
}
