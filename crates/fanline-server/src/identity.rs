//! Keys, ids, and random values of a server.

use std::hash::{BuildHasher, Hasher, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_engine::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use fanline_engine::ids;
use ring::rand::{SecureRandom, SystemRandom};

/// Returns a number that differs in each call and each run. It is not secret.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the secret that random identifiers of one thread are derived from.
pub(crate) fn new_seed() -> [u8; 32] {
    random_bytes()
}

/// Returns random bytes. If the system provides none, the bytes are still distinct, but not secret.
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&random_u64().to_le_bytes()[..part.len()]);
        }
    }
    bytes
}

/// Returns a nonce for a client to sign: 15 unpredictable characters.
pub(crate) fn new_nonce() -> String {
    let mut bytes = [0; 11];
    // If the system provides no random bytes, the nonce is empty, and clients cannot authenticate by
    // signature.
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => URL_SAFE_NO_PAD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// Returns a secret of 256 bits. Returns `None` if the system provides no random bytes.
pub(crate) fn new_secret() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns an id for an event: 22 characters.
pub(crate) fn new_event_id() -> String {
    let number = u128::from(random_u64()) << 64 | u128::from(random_u64());
    ids::from_number(number, ids::ID_CHARS)
}

/// Returns a new server key, which identifies the server and signs for it.
pub(crate) fn new_server_key() -> SecretKey {
    new_key(KeyKind::Server)
}

/// Returns a new user key.
pub(crate) fn new_user_key() -> SecretKey {
    new_key(KeyKind::User)
}

fn new_key(kind: KeyKind) -> SecretKey {
    SecretKey::new(kind, random_bytes::<KEY_BYTES>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_keys_of_servers() {
        let id = new_server_key().public().encode();
        assert_eq!(id.len(), 56);
        assert!(id.starts_with('N'));
        assert_ne!(id, new_server_key().public().encode());
    }
}
