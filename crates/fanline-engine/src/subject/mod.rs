//! The grammar of subjects and of subject filters.
//!
//! Both are tokens separated by `.`. No token is empty or contains white space. In a filter, the token `*`
//! matches exactly one token, and `>` as the last token matches one or more.

pub mod transform;
pub(crate) mod trie;

/// The reason why a subject filter is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A token is empty: two dots in a row, a dot at an end, or an empty filter.
    #[error("a token is empty")]
    EmptyToken,
    /// The filter contains a space, tab, CR, or LF.
    #[error("white space inside a token")]
    WhiteSpace,
    /// `>` is not the last token.
    #[error("`>` must be the last token")]
    TokensAfterFull,
}

/// A valid subject filter.
///
/// ```
/// use fanline_engine::Filter;
///
/// let filter = Filter::parse(b"orders.*.created").unwrap();
/// assert!(filter.matches(b"orders.eu.created"));
/// assert!(!filter.matches(b"orders.created"));
/// assert!(Filter::parse(b"orders..created").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a>(&'a [u8]);

impl<'a> Filter<'a> {
    /// Checks the grammar of a subject filter.
    ///
    /// # Errors
    ///
    /// Returns the first violation of the grammar.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FilterError> {
        // Nearly all filters pass these checks of all bytes, which are faster than those of single tokens.
        let is_special = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | b'>');
        let has_special = bytes.iter().fold(false, |found, b| found | is_special(b));
        if !(has_special || bytes.is_empty() || trie::has_empty_token(bytes)) {
            return Ok(Filter(bytes));
        }
        let mut ended = false;
        for token in bytes.split(|b| *b == b'.') {
            if ended {
                return Err(FilterError::TokensAfterFull);
            }
            if token.is_empty() {
                return Err(FilterError::EmptyToken);
            }
            if token
                .iter()
                .any(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
            {
                return Err(FilterError::WhiteSpace);
            }
            ended = token == b">";
        }
        Ok(Filter(bytes))
    }

    /// Wraps bytes that were checked before.
    pub(crate) fn parsed(bytes: &'a [u8]) -> Self {
        debug_assert!(Filter::parse(bytes).is_ok());
        Filter(bytes)
    }

    /// Returns the filter's bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns whether the filter has no wildcard, so that it matches a single subject.
    pub fn is_literal(&self) -> bool {
        !self.0.split(|b| *b == b'.').any(|t| t == b"*" || t == b">")
    }

    /// Returns whether the filter matches a subject, comparing token by token. [`Trie`](crate::Trie) matches
    /// many filters at once.
    pub fn matches(&self, subject: &[u8]) -> bool {
        let mut wanted = self.0.split(|b| *b == b'.');
        let mut given = subject.split(|b| *b == b'.');
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                (_, Some(b"")) => return false,
                (Some(b">"), Some(_)) => return given.all(|t| !t.is_empty()),
                (Some(b"*"), Some(_)) => {}
                (Some(w), Some(g)) if w == g => {}
                _ => return false,
            }
        }
    }
}

/// Returns whether a pedantic client may publish to a subject: the subject must be a filter without
/// wildcards.
pub fn is_literal_subject(subject: &[u8]) -> bool {
    Filter::parse(subject).is_ok_and(|f| f.is_literal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in [
            "a", "a.b", "*", ">", "a.*.b", "a.>", "fo*", "a>b.c", "é.ü", "*.*", "*.>",
        ] {
            assert!(Filter::parse(good.as_bytes()).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", FilterError::EmptyToken),
            (".", FilterError::EmptyToken),
            ("a.", FilterError::EmptyToken),
            (".a", FilterError::EmptyToken),
            ("a..b", FilterError::EmptyToken),
            ("a.>.b", FilterError::TokensAfterFull),
            (">.>", FilterError::TokensAfterFull),
            ("a b", FilterError::WhiteSpace),
            ("a\r", FilterError::WhiteSpace),
        ] {
            assert_eq!(Filter::parse(bad.as_bytes()), Err(why), "{bad}");
        }
    }

    #[test]
    fn matching() {
        for (filter, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
            (">", "a..b", false),
            ("*", "", false),
            ("fo*", "foo", false),
            ("fo*", "fo*", true),
            ("a.*", "a.*", true),
            ("a.*.c", "a.b.c", true),
        ] {
            let parsed = Filter::parse(filter.as_bytes()).unwrap();
            assert_eq!(
                parsed.matches(subject.as_bytes()),
                expected,
                "{filter} {subject}"
            );
        }
    }
}
