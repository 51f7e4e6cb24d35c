//! The parameters of a request.

use super::answer::Refusal;
use crate::client::url::percent_decode;

/// Parameters in their order in the request.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the text after `?`. Pairs with an invalid encoding are left out.
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        Query(pairs.collect())
    }

    /// Wraps parameters from another source.
    pub(super) fn of(pairs: Vec<(String, String)>) -> Self {
        Query(pairs)
    }

    /// Replaces a parameter.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(given, _)| given != name);
        self.0.push((name.into(), value.into()));
    }

    /// Returns the first value of a parameter. A missing parameter is an empty text.
    pub(super) fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the value of a boolean parameter; false if it is missing.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.text(name) {
            "" | "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
            other => Err(bad("boolean", name, other)),
        }
    }

    /// Returns the value of an offset or limit; 0 if it is missing or negative.
    pub(super) fn count(&self, name: &str) -> Result<usize, Refusal> {
        match self.text(name) {
            "" => Ok(0),
            text => match text.parse::<i64>() {
                Ok(number) => Ok(usize::try_from(number).unwrap_or(0)),
                Err(_) => Err(bad("int", name, text)),
            },
        }
    }

    /// Returns an id, if it is present and not 0.
    pub(super) fn id(&self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.text(name) {
            "" => Ok(None),
            text => match text.parse::<u64>() {
                Ok(id) => Ok(Some(id).filter(|id| *id != 0)),
                Err(_) => Err(bad("uint64", name, text)),
            },
        }
    }
}

/// The words of the parameter `find`, which only Fanline has. The search ignores case.
#[derive(Debug)]
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn of(query: &Query) -> Self {
        let words = query.text("find").split_whitespace();
        Words(words.map(str::to_lowercase).collect())
    }

    /// Returns whether there are no words, so that texts need not be collected.
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether each word occurs in at least one of the texts.
    pub(super) fn are_in(&self, texts: &[&str]) -> bool {
        let text = texts.join("\n").to_lowercase();
        self.0.iter().all(|word| text.contains(word))
    }
}

fn bad(kind: &str, name: &str, given: &str) -> Refusal {
    // nats-server's error text names Go's parser. The text is the same here, because users search for it.
    let reader = match kind {
        "boolean" => "ParseBool",
        "int" => "Atoi",
        _ => "ParseUint",
    };
    Refusal::BadRequest(format!(
        "Error decoding {kind} for '{name}': strconv.{reader}: parsing {given:?}: invalid syntax"
    ))
}

/// Decodes a form's value: `%41` is `A`, and `+` is a space. Returns `None` if an escape is invalid, or if
/// the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let (bytes, is_valid) = percent_decode(&text.replace('+', " "));
    String::from_utf8(bytes).ok().filter(|_| is_valid)
}

/// Returns one page of a list. A page beyond the end is empty.
pub(super) fn page<T>(mut all: Vec<T>, offset: usize, limit: usize) -> Vec<T> {
    all.drain(..offset.min(all.len()));
    all.truncate(limit);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_forms_and_takes_the_first_value() {
        let query = Query::parse("a=1&b=x%20y+z&a=2&c&d=%zz&e=%4&=&f=%E2%82%AC&g=%FF&&h=a=b");
        for (name, value) in [
            ("a", "1"),
            ("b", "x y z"),
            ("c", ""),
            ("d", ""),
            ("e", ""),
            ("f", "€"),
            ("g", ""),
            ("h", "a=b"),
            ("none", ""),
        ] {
            assert_eq!(query.text(name), value, "{name}");
        }
    }

    #[test]
    fn values_are_checked() {
        let query = Query::parse("yes=1&no=False&odd=maybe&n=7&minus=-3&zero=0&half=0.5");
        assert_eq!(query.flag("yes"), Ok(true));
        assert_eq!(query.flag("no"), Ok(false));
        assert_eq!(query.flag("none"), Ok(false));
        assert!(query.flag("odd").is_err());
        assert_eq!(query.count("n"), Ok(7));
        assert_eq!(query.count("minus"), Ok(0));
        assert!(query.count("half").is_err());
        assert_eq!(query.id("n"), Ok(Some(7)));
        assert_eq!(query.id("zero"), Ok(None));
        assert!(query.id("minus").is_err());
    }

    #[test]
    fn words_are_found_in_any_order_and_case() {
        for (find, is_found) in [
            ("", true),
            ("+", true),
            ("Sensor", true),
            ("10.0.0.1+KITCHEN", true),
            ("kitchen10", false),
            ("sensor+garden", false),
            ("%C3%84", true),
        ] {
            let words = Words::of(&Query::parse(&format!("find={find}")));
            let texts = ["sensor in the kitchen", "10.0.0.1", "ä"];
            assert_eq!(words.are_in(&texts), is_found, "{find}");
        }
    }

    #[test]
    fn pages() {
        for (offset, limit, expected) in [
            (0, 10, &[1, 2, 3][..]),
            (1, 1, &[2]),
            (2, 5, &[3]),
            (3, 5, &[]),
            (usize::MAX, usize::MAX, &[]),
        ] {
            assert_eq!(page(vec![1, 2, 3], offset, limit), expected);
        }
    }
}
