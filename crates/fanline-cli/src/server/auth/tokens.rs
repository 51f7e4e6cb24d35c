//! `fanline auth operator`, `account`, and `creds`: tokens (JWT) of operator mode, each signed by the key of
//! the level above.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use fanline_server::auth::jwt::sign;
use fanline_server::auth::nkey::{KeyKind, PublicKey, SecretKey};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{random, read_seed};
use crate::failure::Failure;
use crate::values;

/// Time after a message, in nanoseconds, during which responses to the message may be published.
const RESPONSE_NANOS: u64 = 120 * 1_000_000_000;

/// Options of all tokens.
#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// Name of the token's subject
    #[arg(long)]
    name: String,
    /// Validity, such as 12h or 30d; unlimited by default
    #[arg(long, value_name = "TIME", value_parser = values::finite_span)]
    expires: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct OperatorArgs {
    /// File with the operator's seed
    #[arg(value_name = "FILE")]
    seed: PathBuf,
    #[command(flatten)]
    token: TokenArgs,
    /// Public key of the system account
    #[arg(long, value_name = "KEY", value_parser = account_key)]
    system_account: Option<PublicKey>,
    /// Key that signs accounts instead of the operator's own; may be repeated
    #[arg(long, value_name = "KEY", value_parser = operator_key)]
    signing_key: Vec<PublicKey>,
}

#[derive(Args, Debug)]
pub(crate) struct AccountArgs {
    /// Public key of the account
    #[arg(value_name = "KEY", value_parser = account_key)]
    key: PublicKey,
    /// File with the seed of the operator, or of one of its signing keys
    #[arg(long, value_name = "FILE")]
    operator: PathBuf,
    #[command(flatten)]
    token: TokenArgs,
    /// Key that signs users instead of the account's own; may be repeated
    #[arg(long, value_name = "KEY", value_parser = account_key)]
    signing_key: Vec<PublicKey>,
    /// Disable JetStream for the account
    #[arg(long)]
    no_jetstream: bool,
    /// Largest number of connections
    #[arg(long, value_name = "N")]
    max_connections: Option<u32>,
    /// Largest number of subscriptions of all connections
    #[arg(long, value_name = "N")]
    max_subscriptions: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct CredsArgs {
    /// File with the seed of the account, or of one of its signing keys
    #[arg(long, value_name = "FILE")]
    account: PathBuf,
    /// Public key of the account, if --account is a signing key
    #[arg(long, value_name = "KEY", value_parser = account_key)]
    issuer_account: Option<PublicKey>,
    /// File with the user's seed; a new one is created by default
    #[arg(long, value_name = "FILE")]
    user: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArgs,
    /// Subjects that the user may publish to; all by default; may be repeated, like the next three
    #[arg(long, value_name = "SUBJECT")]
    allow_pub: Vec<String>,
    /// Subjects that the user must not publish to
    #[arg(long, value_name = "SUBJECT")]
    deny_pub: Vec<String>,
    /// Subjects that the user may subscribe to
    #[arg(long, value_name = "SUBJECT")]
    allow_sub: Vec<String>,
    /// Subjects that the user must not subscribe to
    #[arg(long, value_name = "SUBJECT")]
    deny_sub: Vec<String>,
    /// Number of responses that the user may publish per message, whatever its other permissions
    #[arg(long, value_name = "N")]
    allow_responses: Option<u32>,
    /// Allowed kinds of connections: STANDARD, WEBSOCKET, MQTT, …
    #[arg(long, value_name = "TYPE")]
    connection_type: Vec<String>,
    /// Networks that the user may connect from, such as 10.0.0.0/8
    #[arg(long, value_name = "NETWORK")]
    source: Vec<String>,
    /// Require no signature: every holder of the token is the user
    #[arg(long)]
    bearer: bool,
    /// Take the permissions from the template of the signing key
    #[arg(long, requires = "issuer_account", conflicts_with_all = [
        "allow_pub", "deny_pub", "allow_sub", "deny_sub", "allow_responses", "connection_type", "source", "bearer",
    ])]
    scoped: bool,
}

impl OperatorArgs {
    pub(super) fn make(&self) -> Result<String, Failure> {
        let key = seed_of(&self.seed, KeyKind::Operator, "an operator")?;
        let mut nats = json!({"type": "operator", "version": 2});
        if let Some(account) = &self.system_account {
            nats["system_account"] = account.encode().into();
        }
        if !self.signing_key.is_empty() {
            nats["signing_keys"] = texts(&self.signing_key);
        }
        Ok(self.token.issue(&key.public(), nats, &key))
    }
}

impl AccountArgs {
    pub(super) fn make(&self) -> Result<String, Failure> {
        let key = seed_of(&self.operator, KeyKind::Operator, "an operator")?;
        let streams = if self.no_jetstream { 0 } else { -1 };
        let limit = |given: Option<u32>| given.map_or(-1, i64::from);
        let mut nats = json!({"type": "account", "version": 2, "limits": {
            "subs": limit(self.max_subscriptions), "conn": limit(self.max_connections),
            "data": -1, "payload": -1, "leaf": -1, "imports": -1, "exports": -1, "wildcards": true,
            "mem_storage": streams, "disk_storage": streams, "streams": streams, "consumer": streams,
        }});
        if !self.signing_key.is_empty() {
            nats["signing_keys"] = texts(&self.signing_key);
        }
        Ok(self.token.issue(&self.key, nats, &key))
    }
}

impl CredsArgs {
    /// Returns the contents of a credentials file: the token, and the seed that proves its ownership.
    pub(super) fn make(&self) -> Result<String, Failure> {
        let key = seed_of(&self.account, KeyKind::Account, "an account")?;
        let user = match &self.user {
            Some(path) => seed_of(path, KeyKind::User, "a user")?,
            None => SecretKey::new(KeyKind::User, random()?),
        };
        let token = self.token.issue(&user.public(), self.claims(), &key);
        let seed = user.encode();
        Ok(format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             The seed below proves the user's identity. Keep it secret.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------"
        ))
    }

    fn claims(&self) -> Value {
        let mut nats = json!({"type": "user", "version": 2});
        if let Some(account) = &self.issuer_account {
            nats["issuer_account"] = account.encode().into();
        }
        if self.scoped {
            return nats;
        }
        for limit in ["subs", "data", "payload"] {
            nats[limit] = (-1).into();
        }
        nats["pub"] = lists(&self.allow_pub, &self.deny_pub);
        nats["sub"] = lists(&self.allow_sub, &self.deny_sub);
        if let Some(max) = self.allow_responses {
            nats["resp"] = json!({"max": max, "ttl": RESPONSE_NANOS});
        }
        if !self.connection_type.is_empty() {
            nats["allowed_connection_types"] = json!(self.connection_type);
        }
        if !self.source.is_empty() {
            nats["src"] = json!(self.source);
        }
        if self.bearer {
            nats["bearer_token"] = true.into();
        }
        nats
    }
}

impl TokenArgs {
    /// Returns the signed token for `subject`.
    fn issue(&self, subject: &PublicKey, nats: Value, key: &SecretKey) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let mut claims =
            json!({"sub": subject.encode(), "name": self.name, "iat": now, "nats": nats});
        if let Some(time) = self.expires.filter(|time| !time.is_zero()) {
            claims["exp"] = now.saturating_add(time.as_secs()).into();
        }
        // The token's id is the digest of its claims.
        let mut id = String::new();
        for byte in digest(&SHA256, claims.to_string().as_bytes()).as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(id, "{byte:02x}");
        }
        claims["jti"] = id.into();
        sign(claims, key)
    }
}

fn texts(keys: &[PublicKey]) -> Value {
    keys.iter().map(PublicKey::encode).collect()
}

fn lists(allow: &[String], deny: &[String]) -> Value {
    let mut lists = json!({});
    for (name, subjects) in [("allow", allow), ("deny", deny)] {
        if !subjects.is_empty() {
            lists[name] = json!(subjects);
        }
    }
    lists
}

fn seed_of(path: &Path, kind: KeyKind, whose: &str) -> Result<SecretKey, Failure> {
    let key = read_seed(path)?;
    match key.public().kind() == kind {
        true => Ok(key),
        false => {
            let text = format!("{}: the seed is not the seed of {whose}", path.display());
            Err(Failure::Usage(text))
        }
    }
}

fn account_key(text: &str) -> Result<PublicKey, String> {
    let key = PublicKey::parse_as(KeyKind::Account, text);
    key.ok_or_else(|| "expected the public key of an account: A and 55 more characters".into())
}

fn operator_key(text: &str) -> Result<PublicKey, String> {
    let key = PublicKey::parse_as(KeyKind::Operator, text);
    key.ok_or_else(|| "expected the public key of an operator: O and 55 more characters".into())
}
