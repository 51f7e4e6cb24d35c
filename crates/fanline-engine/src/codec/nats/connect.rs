//! The JSON object of CONNECT.

use serde_json::Value;

/// Credentials from the cookies of a WebSocket handshake. A missing credential is empty.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the credentials")]
pub struct CookieCredentials {
    pub jwt: String,
    pub user: String,
    pub password: String,
    pub token: String,
}

// Secrets never reach a log, not even through `{:?}`.
impl std::fmt::Debug for CookieCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieCredentials(..)")
    }
}

/// Options of a client, merged from all CONNECTs of its connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectOptions {
    pub(crate) verbose: bool,
    pub(crate) pedantic: bool,
    pub(crate) echo: bool,
    pub(crate) headers: bool,
    pub(crate) no_responders: bool,
    pub(crate) protocol: i64,
    pub(crate) user: String,
    pub(crate) pass: String,
    pub(crate) auth_token: String,
    pub(crate) jwt: String,
    pub(crate) nkey: String,
    pub(crate) sig: String,
    pub(crate) proxy_sig: String,
    pub(crate) name: String,
    pub(crate) lang: String,
    pub(crate) version: String,
    pub(crate) account: String,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            verbose: true,
            pedantic: true,
            echo: true,
            headers: false,
            no_responders: false,
            protocol: 0,
            user: String::new(),
            pass: String::new(),
            auth_token: String::new(),
            jwt: String::new(),
            nkey: String::new(),
            sig: String::new(),
            proxy_sig: String::new(),
            name: String::new(),
            lang: String::new(),
            version: String::new(),
            account: String::new(),
        }
    }
}

/// The reason why a CONNECT is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The argument is not a JSON object.
    NotAnObject,
    /// A field has a wrong type.
    WrongType,
}

impl ConnectOptions {
    /// Merges one CONNECT. Missing and null fields keep their values. As in nats-server, keys are
    /// case-insensitive, and invalid UTF-8 is replaced. On an error, nothing changes.
    pub(crate) fn merge(&mut self, json: &[u8]) -> Result<(), ConnectError> {
        let json = String::from_utf8_lossy(json);
        let fields = match serde_json::from_str(&json) {
            Ok(Value::Object(fields)) => fields,
            Ok(Value::Null) => return Ok(()),
            Ok(_) | Err(_) => return Err(ConnectError::NotAnObject),
        };
        let mut merged = self.clone();
        for (key, value) in &fields {
            merged.set(&key.to_ascii_lowercase(), value)?;
        }
        *self = merged;
        Ok(())
    }

    /// Fills missing credentials from cookies.
    pub(crate) fn complete(&mut self, cookies: &CookieCredentials) {
        let pairs = [
            (&mut self.user, &cookies.user),
            (&mut self.pass, &cookies.password),
            (&mut self.auth_token, &cookies.token),
            (&mut self.jwt, &cookies.jwt),
        ];
        for (option, cookie) in pairs {
            if option.is_empty() {
                option.clone_from(cookie);
            }
        }
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), ConnectError> {
        match key {
            "verbose" => set_bool(&mut self.verbose, value),
            "pedantic" => set_bool(&mut self.pedantic, value),
            "echo" => set_bool(&mut self.echo, value),
            "headers" => set_bool(&mut self.headers, value),
            "no_responders" => set_bool(&mut self.no_responders, value),
            "protocol" => match value {
                Value::Null => Ok(()),
                _ => {
                    self.protocol = value.as_i64().ok_or(ConnectError::WrongType)?;
                    Ok(())
                }
            },
            "user" => set_text(&mut self.user, value),
            "pass" => set_text(&mut self.pass, value),
            "auth_token" => set_text(&mut self.auth_token, value),
            "jwt" => set_text(&mut self.jwt, value),
            "nkey" => set_text(&mut self.nkey, value),
            "sig" => set_text(&mut self.sig, value),
            "proxy_sig" => set_text(&mut self.proxy_sig, value),
            "name" => set_text(&mut self.name, value),
            "lang" => set_text(&mut self.lang, value),
            "version" => set_text(&mut self.version, value),
            "account" => set_text(&mut self.account, value),
            // This server does not use these fields, but checks their types as nats-server does.
            "tls_required" | "new_account" => set_bool(&mut false, value),
            _ => Ok(()),
        }
    }
}

fn set_bool(field: &mut bool, value: &Value) -> Result<(), ConnectError> {
    match value {
        Value::Null => {}
        Value::Bool(value) => *field = *value,
        _ => return Err(ConnectError::WrongType),
    }
    Ok(())
}

fn set_text(field: &mut String, value: &Value) -> Result<(), ConnectError> {
    match value {
        Value::Null => {}
        Value::String(value) => field.clone_from(value),
        _ => return Err(ConnectError::WrongType),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_over_defaults_and_earlier_values() {
        let mut options = ConnectOptions::default();
        options.merge(b"{}").unwrap();
        assert!(options.verbose && options.pedantic && options.echo);
        options
            .merge(br#"{"verbose":false,"name":"a","unknown":[1]}"#)
            .unwrap();
        options.merge(br#"{"pedantic":false,"user":null}"#).unwrap();
        assert!(!options.verbose && !options.pedantic);
        assert_eq!(options.name, "a");
    }

    #[test]
    fn accepts_what_nats_server_accepts() {
        let mut options = ConnectOptions::default();
        options.merge(b"null").unwrap();
        options
            .merge(b"{\"VERBOSE\":false,\"name\":\"a\",\"name\":\"\xff\"}")
            .unwrap();
        assert!(!options.verbose);
        assert_eq!(options.name, "\u{fffd}");
    }

    #[test]
    fn cookies_fill_missing_credentials() {
        let cookies = CookieCredentials {
            jwt: "j".into(),
            user: "u".into(),
            password: "p".into(),
            token: "t".into(),
        };
        let mut options = ConnectOptions::default();
        options.merge(br#"{"user":"own"}"#).unwrap();
        options.complete(&cookies);
        let all = [
            &options.jwt,
            &options.user,
            &options.pass,
            &options.auth_token,
        ];
        assert_eq!(all, ["j", "own", "p", "t"]);
    }

    #[test]
    fn invalid_json_and_wrong_types_are_refused() {
        for bad in [
            "",
            "{",
            "[]",
            "1",
            r#"{"verbose":"yes"}"#,
            r#"{"protocol":"1"}"#,
            "{} x",
        ] {
            assert!(
                ConnectOptions::default().merge(bad.as_bytes()).is_err(),
                "{bad}"
            );
        }
    }
}
