//! Account tokens in a folder: `<folder>/<account>.jwt`, one token in each file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fanline_engine::auth::jwt::{AccountClaims, Claims, JWT_BYTES_MAX, JwtError, verified};
use fanline_engine::auth::nkey::{KeyKind, PublicKey};

use crate::options::DirectoryOptions;
use crate::private_files;

/// Extension of token files.
const ENDING: &str = "jwt";
/// Extension of deleted token files that are preserved.
const DELETED_ENDING: &str = "jwt.deleted";

/// A folder of account tokens.
#[derive(Debug)]
pub struct Directory {
    options: DirectoryOptions,
}

/// The reason why a token was not stored or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum StoreError {
    #[error("not an account: {0:?}")]
    Name(String),
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error("the token is that of {0:?}")]
    Other(String),
    #[error("jwts are limited to {0}")]
    Full(usize),
    #[error("delete is disabled")]
    DeleteDisabled,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The result of storing a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The token is stored.
    Updated,
    /// The stored token was issued at the same time or later, and stays.
    Older,
}

impl Directory {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created or read.
    pub fn open(options: DirectoryOptions) -> io::Result<Self> {
        private_files::create_folders(&options.dir)?;
        fs::read_dir(&options.dir)?;
        Ok(Directory { options })
    }

    /// Returns an account's token; `None` if it is missing or expired.
    pub fn load(&self, account: &str) -> Option<String> {
        let path = self.path(account).ok()?;
        if let Some(ttl) = self.options.ttl
            && self.options.is_cache
            && age(&path).is_none_or(|age| age > ttl)
        {
            return None;
        }
        read_token(&path).ok()
    }

    /// Stores a token, unless the stored token of that account was issued at the same time or later. The caller
    /// verifies the signer.
    ///
    /// # Errors
    ///
    /// Fails if the token belongs to another account, the folder is full, or the disk fails.
    pub fn store(&self, account: &str, token: &str) -> Result<Stored, StoreError> {
        let path = self.path(account)?;
        let claims = own_claims(account, token)?;
        let known = read_token(&path).ok();
        let known = known.and_then(|token| verified::<AccountClaims>(&token).ok());
        if known.is_some_and(|known| known.issued_at >= claims.issued_at) {
            return Ok(Stored::Older);
        }
        self.write(&path, token)?;
        Ok(Stored::Updated)
    }

    /// Replaces an account's token at the request of an operator, even if the stored token is newer. The
    /// caller verifies the operator.
    ///
    /// # Errors
    ///
    /// Fails like [`store`](Directory::store).
    pub fn replace(&self, account: &str, token: &str) -> Result<(), StoreError> {
        let path = self.path(account)?;
        own_claims(account, token)?;
        self.write(&path, token)
    }

    fn write(&self, path: &Path, token: &str) -> Result<(), StoreError> {
        if !path.exists() {
            self.make_room()?;
        }
        let unfinished = path.with_extension("jwt.new");
        let mut opening = private_files::file_options();
        let mut file = opening
            .write(true)
            .create(true)
            .truncate(true)
            .open(&unfinished)?;
        file.write_all(token.trim().as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        Ok(())
    }

    /// Returns the folder's options.
    pub fn options(&self) -> &DirectoryOptions {
        &self.options
    }

    /// Returns a pair of account and token for each token in the folder. Unreadable files are left out.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn tokens(&self) -> io::Result<Vec<(String, String)>> {
        let accounts = self.accounts()?.into_iter();
        let token = |account: String| Some((self.load(&account)?, account));
        let tokens = accounts.filter_map(token);
        Ok(tokens.map(|(token, account)| (account, token)).collect())
    }

    /// Deletes an account's token. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails if the options do not allow deletion, or the disk fails.
    pub fn delete(&self, account: &str) -> Result<bool, StoreError> {
        let path = self.path(account)?;
        // A cache may always delete, because it can fetch a deleted token again.
        if !self.options.allow_delete && !self.options.is_cache {
            return Err(StoreError::DeleteDisabled);
        }
        let done = match self.options.hard_delete {
            true => fs::remove_file(&path),
            false => fs::rename(&path, path.with_extension(DELETED_ENDING)),
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the accounts whose tokens are in the folder, in ascending order.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn accounts(&self) -> io::Result<Vec<String>> {
        let mut accounts = Vec::new();
        for entry in fs::read_dir(&self.options.dir)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str());
            if path.extension().is_some_and(|ending| ending == ENDING)
                && let Some(name) = name
                && PublicKey::parse_as(KeyKind::Account, name).is_some()
            {
                accounts.push(name.to_owned());
            }
        }
        accounts.sort_unstable();
        Ok(accounts)
    }

    /// Makes room for one more token if the folder is full. A cache then removes its oldest token. For any
    /// other folder, this is an error.
    fn make_room(&self) -> Result<(), StoreError> {
        let Some(max) = self.options.tokens_max else {
            return Ok(());
        };
        let accounts = self.accounts()?;
        if accounts.len() < max {
            return Ok(());
        }
        if !self.options.is_cache {
            return Err(StoreError::Full(max));
        }
        let paths = accounts
            .iter()
            .filter_map(|account| self.path(account).ok());
        if let Some(oldest) = paths.max_by_key(|path| age(path)) {
            fs::remove_file(oldest)?;
        }
        Ok(())
    }

    /// Returns the path of an account's token. Fails for a name that is not an account key.
    fn path(&self, account: &str) -> Result<PathBuf, StoreError> {
        match PublicKey::parse_as(KeyKind::Account, account) {
            Some(_) => Ok(self.options.dir.join(account).with_extension(ENDING)),
            None => Err(StoreError::Name(account.into())),
        }
    }
}

/// Verifies a token, and checks that it belongs to this account.
fn own_claims(account: &str, token: &str) -> Result<Claims<AccountClaims>, StoreError> {
    let claims = verified::<AccountClaims>(token)?;
    match claims.subject == account {
        true => Ok(claims),
        false => Err(StoreError::Other(claims.subject)),
    }
}

fn age(path: &Path) -> Option<Duration> {
    let written = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    Some(
        SystemTime::now()
            .duration_since(written)
            .unwrap_or_default(),
    )
}

/// Reads a token file. Reads at most one byte more than the longest valid token has. So a larger file becomes
/// a text that is too long for a token, and is rejected.
pub(crate) fn read_token(path: &Path) -> io::Result<String> {
    let most = u64::try_from(JWT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = String::new();
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanline_engine::auth::jwt::sign;
    use fanline_engine::auth::nkey::{KEY_BYTES, SecretKey};
    use serde_json::json;

    fn account(number: u8) -> String {
        let key = SecretKey::new(KeyKind::Account, [number; KEY_BYTES]);
        key.public().encode()
    }

    fn token(number: u8, issued_at: i64) -> String {
        let nats = json!({"type": "account", "version": 2});
        let claims = json!({"sub": account(number), "iat": issued_at, "nats": nats});
        sign(claims, &SecretKey::new(KeyKind::Operator, [1; KEY_BYTES]))
    }

    fn with_folder(name: &str, options: DirectoryOptions, check: impl FnOnce(&Directory)) {
        let dir = std::env::temp_dir().join(format!("fanline-{name}-{}", std::process::id()));
        let directory = Directory::open(DirectoryOptions {
            dir: dir.clone(),
            ..options
        });
        check(&directory.unwrap());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn only_newer_tokens_are_stored() {
        with_folder("newer", DirectoryOptions::default(), |directory| {
            assert_eq!(directory.load(&account(1)), None);
            for (issued_at, expected) in [
                (10, Stored::Updated),
                (10, Stored::Older),
                (9, Stored::Older),
                (11, Stored::Updated),
            ] {
                let stored = directory.store(&account(1), &token(1, issued_at)).unwrap();
                assert_eq!(stored, expected, "{issued_at}");
            }
            assert_eq!(directory.load(&account(1)), Some(token(1, 11)));
            assert_eq!(directory.accounts().unwrap(), [account(1)]);
            // `replace` stores it even though it is older.
            directory.replace(&account(1), &token(1, 9)).unwrap();
            assert!(directory.replace(&account(1), &token(2, 9)).is_err());
            let all = directory.tokens().unwrap();
            assert_eq!(all, [(account(1), token(1, 9))]);
        });
    }

    #[test]
    fn token_of_another_account_is_rejected() {
        with_folder("own", DirectoryOptions::default(), |directory| {
            assert!(matches!(
                directory.store(&account(1), &token(2, 1)),
                Err(StoreError::Other(_))
            ));
            assert!(matches!(
                directory.store(&account(1), "x"),
                Err(StoreError::Jwt(_))
            ));
            for name in ["../a", "", "a/b", "U"] {
                assert!(matches!(
                    directory.store(name, &token(1, 1)),
                    Err(StoreError::Name(_))
                ));
                assert_eq!(directory.load(name), None, "{name}");
            }
            assert!(matches!(
                directory.delete(&account(1)),
                Err(StoreError::DeleteDisabled)
            ));
        });
    }

    #[test]
    fn full_folder_rejects_tokens_and_full_cache_replaces_the_oldest() {
        for is_cache in [false, true] {
            let options = DirectoryOptions {
                is_cache,
                tokens_max: Some(1),
                ..DirectoryOptions::default()
            };
            with_folder(&format!("full-{is_cache}"), options, |directory| {
                directory.store(&account(1), &token(1, 1)).unwrap();
                let second = directory.store(&account(2), &token(2, 1));
                match is_cache {
                    true => assert_eq!(directory.accounts().unwrap(), [account(2)]),
                    false => assert!(matches!(second, Err(StoreError::Full(1)))),
                }
            });
        }
    }

    #[test]
    fn deleted_token_is_not_loaded() {
        for hard_delete in [false, true] {
            let options = DirectoryOptions {
                allow_delete: true,
                hard_delete,
                ..DirectoryOptions::default()
            };
            with_folder(&format!("deleted-{hard_delete}"), options, |directory| {
                directory.store(&account(1), &token(1, 1)).unwrap();
                assert!(directory.delete(&account(1)).unwrap());
                assert!(!directory.delete(&account(1)).unwrap());
                assert_eq!(directory.load(&account(1)), None);
                assert!(directory.accounts().unwrap().is_empty());
            });
        }
    }
}
