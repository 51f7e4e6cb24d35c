//! Users and how they authenticate.

use std::fmt;

use subtle::ConstantTimeEq as _;

use super::error::AccessError;
use super::permissions::Permissions;

/// A user of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name or key of the user, and the proof of identity.
    pub identity: Identity,
    /// Permissions; `None` uses the account's default ones.
    pub permissions: Option<Permissions>,
    /// Kinds of connections that the user may use; empty allows all.
    pub connection_kinds: Vec<ConnectionKind>,
    /// Whether the user must connect through a trusted proxy.
    pub proxy_required: bool,
}

/// The identity of a user, and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A name and password. With TLS and `verify_and_map`, the name comes from the certificate, and the
    /// password is checked only if one is configured.
    Name(String, Password),
    /// A public key (`U…`). The client proves it with a signature of the server's nonce.
    Nkey(String),
}

impl User {
    /// Creates a user with a password.
    pub fn new(name: impl Into<String>, password: impl Into<Password>) -> Self {
        User::with(Identity::Name(name.into(), password.into()))
    }

    /// Creates a user with a public key (`U…`).
    pub fn nkey(public: impl Into<String>) -> Self {
        User::with(Identity::Nkey(public.into()))
    }

    fn with(identity: Identity) -> Self {
        User {
            identity,
            permissions: None,
            connection_kinds: Vec::new(),
            proxy_required: false,
        }
    }

    /// Returns the name or the public key.
    pub fn name(&self) -> &str {
        match &self.identity {
            Identity::Name(name, _) => name,
            Identity::Nkey(public) => public,
        }
    }
}

/// A password, either plain or as a bcrypt hash. Its `{:?}` output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password, not hashed.
    Plain(String),
    /// A bcrypt hash.
    Bcrypt(String),
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Password::Plain(_) => "Plain(..)",
            Password::Bcrypt(_) => "Bcrypt(..)",
        })
    }
}

/// A text in the form of a bcrypt hash is treated as a hash.
impl From<&str> for Password {
    fn from(text: &str) -> Self {
        match is_bcrypt(text) {
            true => Password::Bcrypt(text.into()),
            false => Password::Plain(text.into()),
        }
    }
}

impl From<String> for Password {
    fn from(text: String) -> Self {
        Password::from(text.as_str())
    }
}

/// Matches `$2`, one of `abxy`, `$`, two digits, `$`.
fn is_bcrypt(text: &str) -> bool {
    match text.as_bytes() {
        [b'$', b'2', version, b'$', tens, ones, b'$', ..] => {
            b"abxy".contains(version) && tens.is_ascii_digit() && ones.is_ascii_digit()
        }
        _ => false,
    }
}

/// Compares two texts. The time depends on their lengths only.
pub(crate) fn same(expected: &str, given: &str) -> bool {
    expected.as_bytes().ct_eq(given.as_bytes()).into()
}

/// The kinds of connections that a user may be restricted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named as in nats-server's configuration")]
pub enum ConnectionKind {
    #[default]
    Standard,
    WebSocket,
    Leafnode,
    LeafnodeWebSocket,
    Mqtt,
    MqttWebSocket,
    InProcess,
    /// A connection between servers of one cluster. No user can be restricted to it.
    Route,
    /// A connection between clusters. No user can be restricted to it.
    Gateway,
}

impl ConnectionKind {
    const NAMES: [(ConnectionKind, &'static str); 7] = [
        (ConnectionKind::Standard, "STANDARD"),
        (ConnectionKind::WebSocket, "WEBSOCKET"),
        (ConnectionKind::Leafnode, "LEAFNODE"),
        (ConnectionKind::LeafnodeWebSocket, "LEAFNODE_WS"),
        (ConnectionKind::Mqtt, "MQTT"),
        (ConnectionKind::MqttWebSocket, "MQTT_WS"),
        (ConnectionKind::InProcess, "IN_PROCESS"),
    ];

    /// Returns whether this is the kind of an MQTT connection.
    pub fn is_mqtt(self) -> bool {
        matches!(self, ConnectionKind::Mqtt | ConnectionKind::MqttWebSocket)
    }

    /// Returns whether this is the kind of a leaf connection between two servers.
    pub fn is_leaf(self) -> bool {
        matches!(
            self,
            ConnectionKind::Leafnode | ConnectionKind::LeafnodeWebSocket
        )
    }

    /// Parses a kind, case-insensitive.
    ///
    /// # Errors
    ///
    /// If there is no such kind.
    pub fn parse(name: &str) -> Result<Self, AccessError> {
        let mut all = Self::NAMES.iter();
        all.find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map(|(kind, _)| *kind)
            .ok_or_else(|| AccessError::UnknownConnectionKind(name.to_ascii_uppercase()))
    }

    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        let mut all = Self::NAMES.iter();
        all.find(|(kind, _)| *kind == self)
            .map_or("STANDARD", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_hashes_are_recognized_and_never_shown() {
        for (text, hashed) in [
            (
                "$2a$11$PWIFAL8RsWyGI3jVZtO9Nu8.6jOxzxfZo7c/W0eLk017hjgUKWrhy",
                true,
            ),
            ("$2y$04$x", true),
            ("$2c$04$x", false),
            ("$2a$4$x", false),
            ("s3cret", false),
        ] {
            let password = Password::from(text);
            assert_eq!(matches!(password, Password::Bcrypt(_)), hashed, "{text}");
            assert!(!format!("{password:?}").contains(text));
        }
        assert!(same("a", "a"));
        for wrong in ["", "b", "aa", "A"] {
            assert!(!same("a", wrong), "{wrong}");
        }
    }

    #[test]
    fn kinds_of_connections_have_names() {
        for (kind, name) in ConnectionKind::NAMES {
            assert_eq!(ConnectionKind::parse(&name.to_lowercase()), Ok(kind));
            assert_eq!(kind.name(), name);
        }
        assert!(ConnectionKind::parse("SMOKE").is_err());
    }
}
