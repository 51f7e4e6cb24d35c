//! Authentication methods.

use std::sync::Arc;

use super::Access;

/// The credentials that a server requires.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// No credentials.
    #[default]
    Open,
    /// One shared token (`auth_token`).
    Token(String),
    /// One user and password (`user`, `pass`).
    User {
        /// The user's name.
        name: String,
        /// The password, not hashed.
        password: String,
    },
    /// Users and accounts, each with permissions.
    Directory(Arc<Access>),
}

// Secrets never reach a log, not even through `{:?}`.
impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Auth::Open => f.write_str("Open"),
            Auth::Token(_) => f.write_str("Token(..)"),
            Auth::User { name, .. } => write!(f, "User({name}, ..)"),
            Auth::Directory(_) => f.write_str("Directory(..)"),
        }
    }
}

impl Auth {
    /// Returns whether clients need credentials.
    pub fn is_required(&self) -> bool {
        match self {
            Auth::Open => false,
            Auth::Token(_) | Auth::User { .. } => true,
            Auth::Directory(access) => access.is_required(),
        }
    }

    /// Returns the equivalent users and accounts.
    pub fn directory(&self) -> Arc<Access> {
        match self {
            Auth::Open => Access::open().into(),
            Auth::Token(token) => Access::token(token.as_str()).into(),
            Auth::User { name, password } => Access::user(name.as_str(), password.as_str()).into(),
            Auth::Directory(access) => Arc::clone(access),
        }
    }
}
