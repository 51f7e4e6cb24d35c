//! Encryption of stored streams.

use std::fmt;

pub use fanline_engine::store::Algorithm as Cipher;

/// Encryption of stored streams: messages with their subjects, configurations, and consumer state. Names of
/// streams and consumers, times, and sizes are not encrypted.
///
/// The first start with encryption generates a key for the store, encrypts this key with the secret, and
/// stores it in the folder. From then on the server starts only with this secret. Messages that were stored
/// without encryption stay unencrypted until they are removed.
///
/// ```
/// use fanline_server::{Cipher, Encryption, Secret};
///
/// let encryption = Encryption {
///     cipher: Cipher::ChaCha,
///     ..Encryption::new(Secret::new("correct horse battery staple"))
/// };
/// assert_eq!(format!("{:?}", encryption.secret), "Secret(..)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The secret that encrypts the store's key.
    pub secret: Secret,
    /// The previous secret, with which the store's key is encrypted. If it is set, the server encrypts the
    /// key with `secret` instead when it starts.
    pub previous_secret: Option<Secret>,
    /// The cipher of new records.
    pub cipher: Cipher,
}

impl Encryption {
    /// Returns options with this secret, and the cipher that is faster on most machines.
    pub fn new(secret: Secret) -> Self {
        Encryption {
            secret,
            previous_secret: None,
            cipher: Cipher::default(),
        }
    }
}

/// A secret, which `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Wraps a secret unchanged.
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Secret(secret.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
