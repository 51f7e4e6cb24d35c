//! Who may connect.

use crate::access::same;

/// The credentials that this server asks for.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// Everybody may connect.
    #[default]
    Open,
    /// One shared token (`auth_token`).
    Token(String),
    /// One user and password (`user`, `pass`).
    User {
        /// The user's name.
        name: String,
        /// The password, in clear.
        password: String,
    },
}

// Secrets never reach a log, not even through `{:?}`.
impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Auth::Open => f.write_str("Open"),
            Auth::Token(_) => f.write_str("Token(..)"),
            Auth::User { name, .. } => write!(f, "User({name}, ..)"),
        }
    }
}

impl Auth {
    /// Whether a client has to show credentials.
    pub fn is_required(&self) -> bool {
        !matches!(self, Auth::Open)
    }

    /// Whether these credentials open the door.
    pub fn admits(&self, user: &str, password: &str, token: &str) -> bool {
        match self {
            Auth::Open => true,
            Auth::Token(expected) => same(expected, token),
            Auth::User {
                name,
                password: expected,
            } => {
                // Both are compared whatever the first says, so that time tells nothing.
                same(name, user) & same(expected, password)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_only_the_exact_credentials() {
        let user = Auth::User {
            name: "ada".into(),
            password: "s3cret".into(),
        };
        for (name, password, expected) in [
            ("ada", "s3cret", true),
            ("ada", "s3cre", false),
            ("ada", "s3cret0", false),
            ("bob", "s3cret", false),
            ("ada", "", false),
            ("", "", false),
        ] {
            assert_eq!(
                user.admits(name, password, ""),
                expected,
                "{name:?} {password:?}"
            );
        }
        assert!(Auth::Token("t".into()).admits("", "", "t"));
        assert!(!Auth::Token("t".into()).admits("t", "", ""));
        assert!(Auth::Open.admits("", "", ""));
    }
}
