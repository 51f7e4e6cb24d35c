//! How what is kept is encrypted.

use std::fmt;

pub use fanline_engine::store::Algorithm as Cipher;

/// Encryption of everything that streams keep on disk: records with their subjects, configurations,
/// how far consumers are. Names of streams and consumers are not, nor times and sizes.
///
/// The first start with it makes a key for the store, and keeps it there, sealed with the secret.
/// From then on the server starts with this secret only. What was kept before stays readable to
/// all until it is removed.
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
    /// What the store's key is sealed with.
    pub secret: Secret,
    /// What it was sealed with so far, if that is to be changed now.
    pub previous_secret: Option<Secret>,
    /// How records are sealed from now on.
    pub cipher: Cipher,
}

impl Encryption {
    /// With this secret, and the cipher that is faster on most machines.
    pub fn new(secret: Secret) -> Self {
        Encryption {
            secret,
            previous_secret: None,
            cipher: Cipher::default(),
        }
    }
}

/// Something that is not to be seen in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes it as it is.
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
