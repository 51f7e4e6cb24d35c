//! Parts of URLs, shared with the server and the command.

/// A URL, split into slices of its text: `scheme://user_info@location`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// The scheme; `None` if the text has no `://`.
    pub scheme: Option<&'a str>,
    /// Everything before the last `@`, still percent-encoded.
    pub user_info: Option<&'a str>,
    /// Host, port, and path.
    pub location: &'a str,
}

impl<'a> Url<'a> {
    /// Splits a text. Every text has a location, so this never fails.
    pub fn split(text: &'a str) -> Self {
        match text.split_once("://") {
            Some((scheme, rest)) => Url {
                scheme: Some(scheme),
                ..Url::split_without_scheme(rest)
            },
            None => Url::split_without_scheme(text),
        }
    }

    /// Splits a text that has no scheme. A `://` in the text belongs to the user info or the location.
    pub fn split_without_scheme(text: &'a str) -> Self {
        // A password may contain slashes, colons, and an unencoded `@`.
        let (user_info, location) = match text.rsplit_once('@') {
            Some((user_info, location)) => (Some(user_info), location),
            None => (None, text),
        };
        Url {
            scheme: None,
            user_info,
            location,
        }
    }

    /// Splits the location into host with port, and the path, which starts with the first slash.
    pub fn host_and_path(&self) -> (&'a str, &'a str) {
        let path_at = self.location.find('/').unwrap_or(self.location.len());
        self.location.split_at(path_at)
    }

    /// Returns the URL without its user info, for logs.
    pub fn without_user_info(&self) -> String {
        match self.scheme {
            Some(scheme) => format!("{scheme}://{}", self.location),
            None => self.location.to_owned(),
        }
    }
}

/// Splits `host:port`, `[address]:port`, or a host alone. The returned host has no brackets.
///
/// # Errors
///
/// Returns what is wrong with the text.
pub fn split_host_port(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (host, rest) = bracketed
            .split_once(']')
            .ok_or("the bracket is not closed")?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("a colon should follow the bracket"),
        };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => Err("an IPv6 address needs brackets"),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

/// Decodes percent escapes such as `%40`. A `%` without two hexadecimal digits stays as it is. Returns the
/// bytes, and whether every `%` was valid.
pub fn percent_decode(text: &str) -> (Vec<u8>, bool) {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut is_valid = true;
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let escape = (*first == b'%').then(|| digit(after.first()).zip(digit(after.get(1))));
        match escape {
            Some(Some((high, low))) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                rest = &after[2..];
            }
            Some(None) => {
                is_valid = false;
                bytes.push(b'%');
            }
            None => bytes.push(*first),
        }
    }
    (bytes, is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_split_at_its_scheme_and_its_last_at_sign() {
        for (text, scheme, user_info, location, shown) in [
            ("h:1", None, None, "h:1", "h:1"),
            ("u:p@h", None, Some("u:p"), "h", "h"),
            (
                "ws://u:a/b@c@h/p",
                Some("ws"),
                Some("u:a/b@c"),
                "h/p",
                "ws://h/p",
            ),
            ("nats://", Some("nats"), None, "", "nats://"),
        ] {
            let url = Url::split(text);
            let expected = Url {
                scheme,
                user_info,
                location,
            };
            assert_eq!(url, expected, "{text}");
            assert_eq!(url.without_user_info(), shown, "{text}");
        }
        assert_eq!(Url::split("ws://h:1/a/b").host_and_path(), ("h:1", "/a/b"));
    }

    #[test]
    fn percent_escapes_are_decoded_and_others_reported() {
        for (text, decoded, is_valid) in [
            ("a%40%3a", "a@:", true),
            ("%E2%82%AC", "€", true),
            ("%zz", "%zz", false),
            ("50%", "50%", false),
            ("%4", "%4", false),
        ] {
            let expected = (decoded.as_bytes().to_vec(), is_valid);
            assert_eq!(percent_decode(text), expected, "{text}");
        }
    }
}
