//! Cases of the parser of the NATS protocol.

use std::hint::black_box;

use fanline_engine::Parsed;
use fanline_engine::parse::{ParseLimits, parse};

use super::{Case, NO_ALLOCATION, Work, case, in_batches};
use crate::report::metric::Metric;
use crate::report::target::Limit;

const NONE: &[Limit] = &[NO_ALLOCATION];
const FAST: &[Limit] = &[Limit::at_least(Metric::Rate, 25e6), NO_ALLOCATION];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("parse PING", "verbs", NONE, || frames(b"PING\r\n")),
    case("parse PUB 16 B", "verbs", FAST, || frames(b"PUB bench.orders.new 16\r\n0123456789abcdef\r\n")),
    case("parse PUB 16 B with reply", "verbs", NONE, || {
        frames(b"PUB bench.orders.new _INBOX.aB3dE6gH9.1234 16\r\n0123456789abcdef\r\n")
    }),
    case("parse HPUB 16 B and 22 B of headers", "verbs", NONE, || {
        frames(b"HPUB bench.orders.new 22 38\r\nNATS/1.0\r\nKey: abc\r\n\r\n0123456789abcdef\r\n")
    }),
    case("parse HPUB 16 B with reply", "verbs", NONE, || {
        frames(b"HPUB bench.orders.new _INBOX.aB3dE6gH9.1234 22 38\r\nNATS/1.0\r\nKey: abc\r\n\r\n0123456789abcdef\r\n")
    }),
    case("parse SUB and UNSUB", "verbs", NONE, || frames(b"SUB bench.orders.* 1234\r\nUNSUB 1234\r\n")),
    case("parse PUB 128 B, payload in two reads", "verbs", NONE, split_payload),
];

/// Number of bytes of the input, about as many as one read returns.
const INPUT_BYTES: usize = 64 * 1024;

fn limits() -> ParseLimits {
    ParseLimits {
        control_line_bytes_max: 4096,
        payload_bytes_max: 1024 * 1024,
        headers: true,
    }
}

/// Parses a buffer that is full of copies of `frame`.
fn frames(frame: &[u8]) -> Box<Work> {
    let input = frame.repeat(INPUT_BYTES / frame.len());
    Box::new(move |operations| {
        let limits = black_box(limits());
        let mut done = 0;
        while done < operations {
            let input = black_box(&input[..]);
            let mut at = 0;
            while at < input.len() {
                match parse(&input[at..], limits) {
                    Parsed::Verb(verb, taken) => {
                        black_box(&verb);
                        at += taken;
                    }
                    other => panic!("a benchmark's own bytes gave {other:?}"),
                }
                done += 1;
            }
        }
        done
    })
}

/// Parses a message whose payload arrives in two parts, so the first attempt finds it incomplete.
fn split_payload() -> Box<Work> {
    let mut input = b"PUB bench.orders.new 128\r\n".to_vec();
    let first = input.len() + 64;
    input.extend([b'x'; 128]);
    input.extend(b"\r\n");
    let limits = black_box(limits());
    in_batches(1, move || {
        let input = black_box(&input[..]);
        let partial = parse(&input[..first], limits);
        assert!(matches!(partial, Parsed::Partial { frame_bytes } if frame_bytes == input.len()));
        let whole = parse(input, limits);
        assert!(matches!(black_box(&whole), Parsed::Verb(..)));
    })
}
