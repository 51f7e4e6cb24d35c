//! Subject mapping: transforms a subject that matches a filter into another one, which may use the tokens
//! that the wildcards matched.
//!
//! A token of the destination is plain text, `$1` or `{{wildcard(1)}}` for the match of the first `*`, or a
//! function that cuts or hashes such a match. A transform is parsed once and applied without allocation.

use crate::subject::{Filter, FilterError};

/// Largest numeric argument of a function, such as a number of buckets or a length.
const NUMBER_MAX: u32 = 0x7fff_ffff;

/// The reason why a pair of source and destination is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// The source is no valid subject filter.
    #[error("invalid subject")]
    Source(#[from] FilterError),
    /// The destination is no valid subject, or only one side ends in `>`.
    #[error("invalid subject")]
    Destination,
    /// The function in `{{name(…)}}` does not exist.
    #[error("invalid mapping destination: unknown function in {0}")]
    UnknownFunction(String),
    /// The source has no wildcard with this number.
    #[error("invalid mapping destination: wildcard index out of range in {0}: [{1}]")]
    IndexOutOfRange(String, usize),
    /// A function has too few arguments.
    #[error("invalid mapping destination: not enough arguments passed to the function in {0}")]
    NotEnoughArguments(String),
    /// A function has too many arguments.
    #[error("invalid mapping destination: too many arguments passed to the function in {0}")]
    TooManyArguments(String),
    /// An argument is not a number, or out of range.
    #[error(
        "invalid mapping destination: function argument is invalid or in the wrong format in {0}"
    )]
    InvalidArgument(String),
    /// The mapping must be reversible, but its destination omits a wildcard or uses a function.
    #[error("invalid mapping destination: all wildcards must be used, and nothing but wildcards")]
    NotReversible,
}

/// A source filter, and the transformation of the subjects that it matches.
///
/// ```
/// use fanline_engine::subject::transform::Transform;
///
/// let transform = Transform::new("orders.*.*", "by.$2.{{left(1,2)}}").unwrap();
/// let mut made = Vec::new();
/// assert!(transform.apply(b"orders.europe.new", 0, &mut made));
/// assert_eq!(made, b"by.new.eu");
/// assert!(!transform.apply(b"invoices.europe.new", 0, &mut made));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transform {
    source: Box<[u8]>,
    destination: Box<[u8]>,
    /// Position of each `*` among the source's tokens.
    wildcards: Box<[usize]>,
    tokens: Box<[Token]>,
}

/// A token of the destination. A wildcard is represented by the position of its token in the subject.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(Box<[u8]>),
    Wildcard(usize),
    Partition {
        buckets: u32,
        of: Box<[usize]>,
    },
    Random(u32),
    Split {
        of: usize,
        at: Box<[u8]>,
    },
    Cut {
        of: usize,
        length: usize,
        how: Cut,
    },
    /// All tokens that `>` matched, from this position on.
    Rest(usize),
}

/// A way to cut a token at a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    SplitFromLeft,
    SplitFromRight,
    SliceFromLeft,
    SliceFromRight,
    Left,
    Right,
}

impl Transform {
    /// Parses both sides. An empty source means `>`; an empty destination leaves the subject unchanged.
    ///
    /// # Errors
    ///
    /// Returns the error, with the token that caused it.
    pub fn new(source: &str, destination: &str) -> Result<Self, TransformError> {
        let source = if source.is_empty() { ">" } else { source };
        let destination = if destination.is_empty() && source == ">" {
            ">"
        } else {
            destination
        };
        Filter::parse(source.as_bytes())?;
        let wildcards: Box<[usize]> = positions(source, "*").collect();
        let rest = positions(source, ">").next();
        let mut tokens = Vec::new();
        for token in destination.split('.') {
            tokens.push(match token {
                "" | "*" => return Err(TransformError::Destination),
                ">" => Token::Rest(rest.ok_or(TransformError::Destination)?),
                _ => Token::parse(token, &wildcards)?,
            });
        }
        let rests = tokens
            .iter()
            .filter(|t| matches!(t, Token::Rest(_)))
            .count();
        let ends_in_rest = matches!(tokens.last(), Some(Token::Rest(_)));
        if rests != usize::from(rest.is_some()) || (rest.is_some() && !ends_in_rest) {
            return Err(TransformError::Destination);
        }
        Ok(Transform {
            source: source.as_bytes().into(),
            destination: destination.as_bytes().into(),
            wildcards,
            tokens: tokens.into(),
        })
    }

    /// Parses both sides of a reversible transform: the destination uses each wildcard, and no function.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Transform::new), or [`NotReversible`](TransformError::NotReversible).
    pub fn reversible(source: &str, destination: &str) -> Result<Self, TransformError> {
        let transform = Transform::new(source, destination)?;
        let plain = transform
            .tokens
            .iter()
            .all(|t| matches!(t, Token::Literal(_) | Token::Wildcard(_) | Token::Rest(_)));
        let complete = transform
            .wildcards
            .iter()
            .all(|w| transform.tokens.contains(&Token::Wildcard(*w)));
        if plain && complete {
            Ok(transform)
        } else {
            Err(TransformError::NotReversible)
        }
    }

    /// Returns the source filter.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Returns the destination as written.
    pub fn destination(&self) -> &[u8] {
        &self.destination
    }

    /// Returns a filter that matches all transformed subjects. A function becomes `*`, or `>` if it splits a
    /// token.
    pub fn destination_filter(&self) -> Vec<u8> {
        let mut filter = Vec::new();
        for token in &self.tokens {
            if !filter.is_empty() {
                filter.push(b'.');
            }
            match token {
                Token::Literal(text) => filter.extend_from_slice(text),
                Token::Wildcard(_) | Token::Partition { .. } | Token::Random(_) => {
                    filter.push(b'*')
                }
                Token::Cut {
                    how: Cut::Left | Cut::Right,
                    ..
                } => filter.push(b'*'),
                // The number of tokens after a split is unknown, so `>` stands for the rest.
                Token::Split { .. } | Token::Cut { .. } | Token::Rest(_) => {
                    filter.push(b'>');
                    break;
                }
            }
        }
        filter
    }

    /// Returns whether the source matches a subject.
    pub fn matches(&self, subject: &[u8]) -> bool {
        Filter::parse(&self.source).is_ok_and(|source| source.matches(subject))
    }

    /// Replaces the contents of `made` with the transformed subject. Returns false, and leaves `made`
    /// unchanged, if the source does not match. `random` is any number; `{{random(n)}}` uses it.
    pub fn apply(&self, subject: &[u8], random: u32, made: &mut Vec<u8>) -> bool {
        if !self.matches(subject) {
            return false;
        }
        made.clear();
        for (nth, token) in self.tokens.iter().enumerate() {
            if nth > 0 {
                made.push(b'.');
            }
            token.write(subject, random, made);
        }
        true
    }
}

impl Token {
    fn parse(token: &str, wildcards: &[usize]) -> Result<Self, TransformError> {
        if let Some(index) = token.strip_prefix('$').filter(|t| !t.is_empty()) {
            // `$1x` is plain text, because `1x` is not a number.
            return match index.parse::<usize>() {
                Ok(index) => Ok(Token::Wildcard(wildcard(wildcards, index, token)?)),
                Err(_) => Ok(Token::Literal(token.as_bytes().into())),
            };
        }
        let call = token.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
        match call {
            Some(call) => Token::parse_call(call.trim(), token, wildcards),
            None if token.bytes().any(|b| b.is_ascii_whitespace()) => {
                Err(TransformError::Destination)
            }
            None => Ok(Token::Literal(token.as_bytes().into())),
        }
    }

    fn parse_call(call: &str, token: &str, wildcards: &[usize]) -> Result<Self, TransformError> {
        let unknown = || TransformError::UnknownFunction(token.to_owned());
        let (name, arguments) = call
            .strip_suffix(')')
            .and_then(|c| c.split_once('('))
            .ok_or_else(unknown)?;
        let arguments = Arguments {
            token,
            wildcards,
            all: arguments,
        };
        let name = name.trim();
        let cuts = [
            ("splitFromLeft", Cut::SplitFromLeft),
            ("splitFromRight", Cut::SplitFromRight),
            ("sliceFromLeft", Cut::SliceFromLeft),
            ("sliceFromRight", Cut::SliceFromRight),
            ("left", Cut::Left),
            ("right", Cut::Right),
        ];
        if let Some((_, how)) = cuts.iter().find(|(known, _)| is_named(name, known)) {
            let [of, length] = arguments.exactly()?;
            let length = usize::try_from(arguments.number(length)?).unwrap_or(usize::MAX);
            return Ok(Token::Cut {
                of: arguments.wildcard(of)?,
                length,
                how: *how,
            });
        }
        if is_named(name, "wildcard") {
            let [of] = arguments.exactly()?;
            return Ok(Token::Wildcard(arguments.wildcard(of)?));
        }
        if is_named(name, "partition") {
            return arguments.partition();
        }
        if is_named(name, "random") {
            let [below] = arguments.exactly()?;
            return Ok(Token::Random(arguments.number(below)?));
        }
        if is_named(name, "split") {
            let [of, at] = arguments.exactly()?;
            if at.is_empty() || at.bytes().any(|b| matches!(b, b' ' | b'.')) {
                return Err(TransformError::InvalidArgument(token.to_owned()));
            }
            return Ok(Token::Split {
                of: arguments.wildcard(of)?,
                at: at.as_bytes().into(),
            });
        }
        Err(unknown())
    }

    fn write(&self, subject: &[u8], random: u32, made: &mut Vec<u8>) {
        match self {
            Token::Literal(text) => made.extend_from_slice(text),
            Token::Wildcard(of) => made.extend_from_slice(nth(subject, *of)),
            Token::Partition { buckets, of } => {
                let mut hash = Fnv::new();
                match of.is_empty() {
                    true => hash.add(subject),
                    false => of.iter().for_each(|of| hash.add(nth(subject, *of))),
                }
                push_number(hash.0 % buckets, made);
            }
            Token::Random(below) => push_number(random % below, made),
            Token::Split { of, at } => split(nth(subject, *of), at, made),
            Token::Cut { of, length, how } => how.write(nth(subject, *of), *length, made),
            Token::Rest(from) => made.extend_from_slice(rest(subject, *from)),
        }
    }
}

/// The arguments of a function.
struct Arguments<'a> {
    token: &'a str,
    wildcards: &'a [usize],
    all: &'a str,
}

impl<'a> Arguments<'a> {
    fn each(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.all.split(',').map(str::trim)
    }

    fn exactly<const N: usize>(&self) -> Result<[&'a str; N], TransformError> {
        let mut each = self.each();
        let mut taken = [""; N];
        for place in &mut taken {
            *place = each
                .next()
                .filter(|a| !a.is_empty())
                .ok_or_else(|| TransformError::NotEnoughArguments(self.token.to_owned()))?;
        }
        match each.next() {
            Some(_) => Err(TransformError::TooManyArguments(self.token.to_owned())),
            None => Ok(taken),
        }
    }

    /// Parses a number between 1 and `NUMBER_MAX`.
    fn number(&self, argument: &str) -> Result<u32, TransformError> {
        argument
            .parse()
            .ok()
            .filter(|n| (1..=NUMBER_MAX).contains(n))
            .ok_or_else(|| TransformError::InvalidArgument(self.token.to_owned()))
    }

    fn wildcard(&self, argument: &str) -> Result<usize, TransformError> {
        let index = argument
            .parse()
            .map_err(|_| TransformError::InvalidArgument(self.token.to_owned()))?;
        wildcard(self.wildcards, index, self.token)
    }

    fn partition(&self) -> Result<Token, TransformError> {
        let mut each = self.each();
        let buckets = each.next().filter(|a| !a.is_empty());
        let buckets =
            buckets.ok_or_else(|| TransformError::NotEnoughArguments(self.token.to_owned()))?;
        let of: Result<Box<[usize]>, _> = each.map(|argument| self.wildcard(argument)).collect();
        Ok(Token::Partition {
            buckets: self.number(buckets)?,
            of: of?,
        })
    }
}

impl Cut {
    fn write(self, token: &[u8], length: usize, made: &mut Vec<u8>) {
        let within = length < token.len();
        match self {
            Cut::Left => made.extend_from_slice(&token[..length.min(token.len())]),
            Cut::Right => made.extend_from_slice(&token[token.len().saturating_sub(length)..]),
            _ if !within => made.extend_from_slice(token),
            Cut::SplitFromLeft => push_two(token.split_at(length), made),
            Cut::SplitFromRight => push_two(token.split_at(token.len() - length), made),
            Cut::SliceFromLeft => push_parted(token.chunks(length), made),
            Cut::SliceFromRight => {
                let (head, tail) = token.split_at(token.len() % length);
                let head = (!head.is_empty()).then_some(head);
                push_parted(head.into_iter().chain(tail.chunks(length)), made);
            }
        }
    }
}

/// Writes the non-empty pieces between delimiters as tokens.
fn split(token: &[u8], at: &[u8], made: &mut Vec<u8>) {
    let start = made.len();
    let mut rest = token;
    while !rest.is_empty() {
        let end = rest.windows(at.len()).position(|w| w == at);
        let piece = &rest[..end.unwrap_or(rest.len())];
        rest = end.map_or(&[], |end| &rest[end + at.len()..]);
        if !piece.is_empty() {
            if made.len() > start {
                made.push(b'.');
            }
            made.extend_from_slice(piece);
        }
    }
}

fn push_two((a, b): (&[u8], &[u8]), made: &mut Vec<u8>) {
    push_parted([a, b].into_iter(), made);
}

fn push_parted<'a>(pieces: impl Iterator<Item = &'a [u8]>, made: &mut Vec<u8>) {
    for (nth, piece) in pieces.enumerate() {
        if nth > 0 {
            made.push(b'.');
        }
        made.extend_from_slice(piece);
    }
}

fn push_number(number: u32, made: &mut Vec<u8>) {
    let mut text = itoa::Buffer::new();
    made.extend_from_slice(text.format(number).as_bytes());
}

/// The 32-bit FNV-1a hash. Clients that implement it can compute partitions too.
struct Fnv(u32);

impl Fnv {
    fn new() -> Self {
        Fnv(0x811c_9dc5)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

/// Returns whether `given` is the function name `known`. The first letter of each word may have either case.
fn is_named(given: &str, known: &str) -> bool {
    given.len() == known.len()
        && given
            .bytes()
            .zip(known.bytes())
            .enumerate()
            .all(|(at, (g, k))| {
                g == k || ((at == 0 || k.is_ascii_uppercase()) && g.eq_ignore_ascii_case(&k))
            })
}

/// Returns the token position of the source's wildcard number `index`, counted from 1.
fn wildcard(wildcards: &[usize], index: usize, token: &str) -> Result<usize, TransformError> {
    let at = index.checked_sub(1).and_then(|at| wildcards.get(at));
    at.copied()
        .ok_or_else(|| TransformError::IndexOutOfRange(token.to_owned(), index))
}

fn positions<'a>(source: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> + 'a {
    let tokens = source.split('.').enumerate();
    tokens
        .filter(move |(_, token)| *token == wanted)
        .map(|(at, _)| at)
}

fn nth(subject: &[u8], at: usize) -> &[u8] {
    subject.split(|b| *b == b'.').nth(at).unwrap_or_default()
}

fn rest(subject: &[u8], from: usize) -> &[u8] {
    let mut rest = subject;
    for _ in 0..from {
        let dot = rest.iter().position(|b| *b == b'.');
        rest = dot.map_or(&[][..], |dot| &rest[dot + 1..]);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_transformed() {
        for (source, destination, subject, expected) in [
            ("a.b", "c.d", "a.b", "c.d"),
            ("a.*.c", "$1.x", "a.b.c", "b.x"),
            ("*.*", "{{wildcard(2)}}.{{ Wildcard( 1 ) }}", "a.b", "b.a"),
            ("a.>", "b.>", "a.c.d", "b.c.d"),
            ("a.*.>", "$1.x.>", "a.b.c.d", "b.x.c.d"),
            ("", "all.>", "a.b", "all.a.b"),
            ("", "", "a.b", "a.b"),
            ("*", "{{splitFromLeft(1,2)}}", "abcd", "ab.cd"),
            ("*", "{{splitFromLeft(1,4)}}", "abcd", "abcd"),
            ("*", "{{SplitFromRight(1,1)}}", "abcd", "abc.d"),
            ("*", "{{sliceFromLeft(1,3)}}", "abcdefgh", "abc.def.gh"),
            ("*", "{{sliceFromRight(1,3)}}", "abcdefgh", "ab.cde.fgh"),
            ("*", "{{sliceFromRight(1,4)}}", "abcdefgh", "abcd.efgh"),
            ("*", "{{split(1,-)}}.x", "-a--b-c-", "a.b.c.x"),
            ("*", "{{split(1,--)}}", "a-b--c", "a-b.c"),
            ("*", "{{left(1,2)}}.{{right(1,3)}}", "abcd", "ab.bcd"),
            ("*", "{{left(1,9)}}.{{right(1,9)}}", "abcd", "abcd.abcd"),
            ("*", "p.{{random(5)}}", "abcd", "p.2"),
            ("*.*", "{{partition(10,1,2)}}.$1", "foo", ""),
            ("x.*", "$1x.$", "x.a", "$1x.$"),
        ] {
            let transform = Transform::new(source, destination).unwrap();
            let mut made = Vec::new();
            let applied = transform.apply(subject.as_bytes(), 7, &mut made);
            assert_eq!(
                applied,
                !expected.is_empty(),
                "{source} {destination} {subject}"
            );
            assert_eq!(made.escape_ascii().to_string(), expected);
        }
    }

    #[test]
    fn partitions_are_those_that_clients_compute() {
        // The published test values of FNV-1a, 32 bits.
        for (token, hash) in [
            ("", 0x811c_9dc5_u32),
            ("a", 0xe40c_292c),
            ("foobar", 0xbf9c_f968),
        ] {
            let mut fnv = Fnv::new();
            fnv.add(token.as_bytes());
            assert_eq!(fnv.0, hash, "{token}");
        }
        let mut made = Vec::new();
        let whole = Transform::new("x.*", "{{partition(4294967295)}}");
        assert!(matches!(whole, Err(TransformError::InvalidArgument(_))));
        let some = Transform::new("*.*", "{{partition(1000000,1,2)}}").unwrap();
        assert!(some.apply(b"foo.bar", 0, &mut made));
        assert_eq!(made, (0xbf9c_f968_u32 % 1_000_000).to_string().as_bytes());
        let all = Transform::new("foobar", "{{partition(1000000)}}").unwrap();
        assert!(all.apply(b"foobar", 0, &mut made));
        assert_eq!(made, (0xbf9c_f968_u32 % 1_000_000).to_string().as_bytes());
    }

    #[test]
    fn errors_name_the_token() {
        let named = |token: &str| token.to_owned();
        for (source, destination, error) in [
            ("a..b", "c", TransformError::Source(FilterError::EmptyToken)),
            ("a", "b..c", TransformError::Destination),
            ("a.*", "b.*", TransformError::Destination),
            ("a.>", "b", TransformError::Destination),
            ("a", "b.>", TransformError::Destination),
            ("a.>", ">.b", TransformError::Destination),
            ("a", "b c", TransformError::Destination),
            ("a.*", "$2", TransformError::IndexOutOfRange(named("$2"), 2)),
            (
                "a",
                "{{wildcard(1)}}",
                TransformError::IndexOutOfRange(named("{{wildcard(1)}}"), 1),
            ),
            (
                "*",
                "{{wildcard(x)}}",
                TransformError::InvalidArgument(named("{{wildcard(x)}}")),
            ),
            (
                "*",
                "{{wildcard()}}",
                TransformError::NotEnoughArguments(named("{{wildcard()}}")),
            ),
            (
                "*",
                "{{wildcard(1,2)}}",
                TransformError::TooManyArguments(named("{{wildcard(1,2)}}")),
            ),
            (
                "*",
                "{{wild(1)}}",
                TransformError::UnknownFunction(named("{{wild(1)}}")),
            ),
            (
                "*",
                "{{left(1)}}",
                TransformError::NotEnoughArguments(named("{{left(1)}}")),
            ),
            (
                "*",
                "{{partition()}}",
                TransformError::NotEnoughArguments(named("{{partition()}}")),
            ),
            (
                "*",
                "{{partition(0)}}",
                TransformError::InvalidArgument(named("{{partition(0)}}")),
            ),
            (
                "*",
                "{{WILDCARD(1)}}",
                TransformError::UnknownFunction(named("{{WILDCARD(1)}}")),
            ),
        ] {
            assert_eq!(
                Transform::new(source, destination),
                Err(error),
                "{source} {destination}"
            );
        }
        assert!(Transform::reversible("a.*.*", "b.$2.$1").is_ok());
        for (source, destination) in [("a.*.*", "b.$2"), ("a.*", "b.{{left(1,2)}}")] {
            let refused = Transform::reversible(source, destination);
            assert_eq!(refused, Err(TransformError::NotReversible), "{destination}");
        }
    }

    #[test]
    fn destination_filter_matches_transformed_subjects() {
        for (source, destination, filter) in [
            ("a.*", "b.$1", "b.*"),
            ("a.>", "b.>", "b.>"),
            ("a.*", "b.{{partition(3,1)}}.$1", "b.*.*"),
            ("a.*", "b.{{split(1,-)}}.c", "b.>"),
        ] {
            let transform = Transform::new(source, destination).unwrap();
            assert_eq!(transform.destination_filter(), filter.as_bytes());
        }
    }
}
