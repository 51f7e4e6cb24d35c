//! The JSON of CONNECT.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a client asked for, all CONNECTs of its connection merged.
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
            name: String::new(),
            lang: String::new(),
            version: String::new(),
            account: String::new(),
        }
    }
}

/// One CONNECT: what it leaves out stays as it was. Fields that no feature here reads yet are
/// still checked for their type, as clients are told so.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Patch {
    verbose: Option<bool>,
    pedantic: Option<bool>,
    echo: Option<bool>,
    headers: Option<bool>,
    no_responders: Option<bool>,
    protocol: Option<i64>,
    user: Option<String>,
    pass: Option<String>,
    auth_token: Option<String>,
    name: Option<String>,
    lang: Option<String>,
    version: Option<String>,
    account: Option<String>,
    #[serde(rename = "tls_required")]
    _tls_required: Option<bool>,
    #[serde(rename = "jwt")]
    _jwt: Option<String>,
    #[serde(rename = "nkey")]
    _nkey: Option<String>,
    #[serde(rename = "sig")]
    _sig: Option<String>,
    #[serde(rename = "new_account")]
    _new_account: Option<bool>,
    #[serde(rename = "proxy_sig")]
    _proxy_sig: Option<String>,
}

impl ConnectOptions {
    /// Merges one CONNECT; on bad JSON nothing changes.
    pub(crate) fn merge(&mut self, json: &[u8]) -> Result<(), serde_json::Error> {
        // By way of a map, in which the last of two equal keys counts, as it does in nats-server;
        // serde alone would refuse them, and would read a list as the fields in order.
        let fields: Map<String, Value> = serde_json::from_slice(json)?;
        let patch = Patch::deserialize(Value::Object(fields))?;
        set(&mut self.verbose, patch.verbose);
        set(&mut self.pedantic, patch.pedantic);
        set(&mut self.echo, patch.echo);
        set(&mut self.headers, patch.headers);
        set(&mut self.no_responders, patch.no_responders);
        set(&mut self.protocol, patch.protocol);
        set(&mut self.user, patch.user);
        set(&mut self.pass, patch.pass);
        set(&mut self.auth_token, patch.auth_token);
        set(&mut self.name, patch.name);
        set(&mut self.lang, patch.lang);
        set(&mut self.version, patch.version);
        set(&mut self.account, patch.account);
        Ok(())
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_over_the_defaults_and_over_what_was_said_before() {
        let mut options = ConnectOptions::default();
        options.merge(b"{}").unwrap();
        assert!(options.verbose && options.pedantic && options.echo);
        options
            .merge(br#"{"verbose":false,"name":"a","unknown":[1]}"#)
            .unwrap();
        options.merge(br#"{"pedantic":false,"user":null}"#).unwrap();
        assert!(!options.verbose && !options.pedantic);
        assert_eq!(options.name, "a");
        options.merge(br#"{"name":"b","name":"c"}"#).unwrap();
        assert_eq!(options.name, "c");
    }

    #[test]
    fn refuses_what_is_not_json_or_of_the_wrong_type() {
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
