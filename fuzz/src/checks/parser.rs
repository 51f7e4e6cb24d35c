//! The input is the bytes from a client.

use fanline_engine::parse::{ParseLimits, parse};
use fanline_engine::{Parsed, Publish, Verb};

/// Maximum number of positions at which the input is cut. To cut at every position would take quadratic time.
const CUTS_MAX: usize = 200;

/// Length of the longest name of a verb. The constant below is the length of a line end.
const NAME_BYTES_MAX: usize = 7;
const LINE_END_BYTES_MAX: usize = 2;

const LIMITS: [ParseLimits; 2] = [
    ParseLimits {
        control_line_bytes_max: 4096,
        payload_bytes_max: 1024 * 1024,
        headers: true,
    },
    // Limits that short inputs can reach.
    ParseLimits {
        control_line_bytes_max: 16,
        payload_bytes_max: 12,
        headers: true,
    },
];

/// Checks that the parser returns the same results wherever the input is cut, and that an incomplete frame
/// never exceeds the limits.
pub fn check(data: &[u8]) {
    for limits in LIMITS {
        let mut whole = Outcome::default();
        whole.parse_on(data, limits);
        let step = data.len() / CUTS_MAX + 1;
        for cut in (0..data.len()).step_by(step) {
            let mut parts = Outcome::default();
            parts.parse_on(&data[..cut], limits);
            parts.parse_on(data, limits);
            assert_eq!(parts, whole, "cut at {cut}, {limits:?}");
        }
    }
}

/// The results of a parser so far.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    verbs: Vec<String>,
    consumed: usize,
    fault: Option<String>,
}

impl Outcome {
    /// Continues parsing. `data` is the whole input so far.
    fn parse_on(&mut self, data: &[u8], limits: ParseLimits) {
        while self.fault.is_none() && self.consumed < data.len() {
            let input = &data[self.consumed..];
            match parse(input, limits) {
                Parsed::Verb(verb, taken) => {
                    assert!(taken > 0 && taken <= input.len());
                    if let Verb::Publish(publish) = &verb {
                        check_publish(publish, input, taken, limits);
                    }
                    self.verbs.push(format!("{verb:?}"));
                    self.consumed += taken;
                }
                Parsed::Partial { frame_bytes } => {
                    check_partial(input.len(), frame_bytes, limits);
                    return;
                }
                Parsed::Wrong(fault) => self.fault = Some(format!("{fault:?}")),
            }
        }
    }
}

fn line_bytes_max(limits: ParseLimits) -> usize {
    // Before the arguments there may be as many blanks as the arguments have bytes.
    NAME_BYTES_MAX + 2 * limits.control_line_bytes_max + LINE_END_BYTES_MAX
}

fn check_partial(given: usize, frame_bytes: usize, limits: ParseLimits) {
    if frame_bytes == 0 {
        assert!(
            given <= line_bytes_max(limits),
            "{given} bytes without an end"
        );
    } else {
        let frame_bytes_max =
            line_bytes_max(limits) + limits.payload_bytes_max + LINE_END_BYTES_MAX;
        assert!(
            frame_bytes > given && frame_bytes <= frame_bytes_max,
            "{frame_bytes}"
        );
    }
}

/// Checks that the arguments and the body, which are forwarded unchanged, are valid in a delivery.
fn check_publish(publish: &Publish<'_>, input: &[u8], taken: usize, limits: ParseLimits) {
    assert_eq!(publish.body.end, taken);
    assert!(input[publish.body.clone()].ends_with(b"\r\n"));
    assert!(publish.payload_bytes() <= limits.payload_bytes_max);
    assert!(publish.header_bytes <= publish.payload_bytes());
    let is_token = |bytes: &[u8]| !bytes.iter().any(|b| b" \t\r\n".contains(b));
    assert!(!publish.subject.is_empty() && is_token(publish.subject) && is_token(publish.reply));
    if publish.args.is_empty() {
        return;
    }
    assert_eq!(publish.args.end, publish.body.start);
    let line = input[publish.args.clone()].strip_suffix(b"\r\n");
    let mut args = line.expect("CRLF").split(|b| *b == b' ');
    if !publish.reply.is_empty() {
        assert_eq!(args.next(), Some(publish.reply));
    }
    // Leading zeros of a size are forwarded, as by nats-server.
    let mut size = || std::str::from_utf8(args.next()?).ok()?.parse().ok();
    if publish.header_bytes > 0 {
        assert_eq!(size(), Some(publish.header_bytes));
    }
    assert_eq!(size(), Some(publish.payload_bytes()));
    assert_eq!(args.next(), None);
}
