//! Encrypts the random key of a store with the operator's secret. When the secret changes, only the key is
//! encrypted again.
//!
//! `docs/formats/log.md` describes the bytes.

use std::num::NonZeroU32;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2;

use super::cipher::Key;

const MAGIC: &[u8; 4] = b"FKey";
/// Version in which each stream uses a key derived from the wrapped key.
const VERSION: u16 = 2;
/// Version in which all streams use the wrapped key itself.
const VERSION_SHARED: u16 = 1;
const HEAD_BYTES: usize = 8;
const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const SUM_BYTES: usize = 4;
const WRAPPED_BYTES: usize = HEAD_BYTES + SALT_BYTES + KEY_BYTES + TAG_BYTES + SUM_BYTES;
/// Iterations of key derivation, so that each guess of a weak secret takes some hundredths of a second.
const ROUNDS: NonZeroU32 = NonZeroU32::new(200_000).expect("not 0");

/// Reason for which a wrapped key cannot be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnwrapError {
    /// The key was encrypted with another secret.
    #[error("the key is wrapped with another secret")]
    WrongSecret,
    /// The bytes were changed.
    #[error("the wrapped key is damaged")]
    Damaged,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "32 bytes are not too many to encrypt"
)]
/// Encrypts the key of a store with a secret. `salt` is a random number that must be different each time.
pub fn wrap(secret: &[u8], key: &Key, salt: [u8; SALT_BYTES]) -> Vec<u8> {
    let version = match key.is_shared {
        true => VERSION_SHARED,
        false => VERSION,
    };
    let mut out = Vec::with_capacity(WRAPPED_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&salt);
    let from = out.len();
    out.extend_from_slice(&key.secret);
    let tag = wrapping_key(secret, salt)
        .seal_in_place_separate_tag(nonce(), Aad::empty(), &mut out[from..])
        .expect("shorter than 64 GiB");
    out.extend_from_slice(tag.as_ref());
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// Decrypts a wrapped key with the secret.
///
/// # Errors
/// The secret is wrong, or the bytes are damaged.
pub fn unwrap(secret: &[u8], wrapped: &[u8]) -> Result<Key, UnwrapError> {
    let damaged = || UnwrapError::Damaged;
    let (content, sum) = wrapped
        .split_last_chunk::<SUM_BYTES>()
        .ok_or_else(damaged)?;
    let is_intact = wrapped.len() == WRAPPED_BYTES
        && crc32fast::hash(content) == u32::from_le_bytes(*sum)
        && content.starts_with(MAGIC);
    let is_shared = match content.get(4..6) {
        Some(version) if version == VERSION.to_le_bytes() => false,
        Some(version) if version == VERSION_SHARED.to_le_bytes() => true,
        _ => return Err(UnwrapError::Damaged),
    };
    let rest = content.get(HEAD_BYTES..).filter(|_| is_intact);
    let (salt, encrypted) = rest
        .and_then(|rest| rest.split_first_chunk::<SALT_BYTES>())
        .ok_or_else(damaged)?;
    let mut encrypted = encrypted.to_vec();
    let decrypted =
        wrapping_key(secret, *salt).open_in_place(nonce(), Aad::empty(), &mut encrypted);
    let key = decrypted.map_err(|_| UnwrapError::WrongSecret)?;
    let key = Key::new((&*key).try_into().map_err(|_| UnwrapError::Damaged)?);
    Ok(match is_shared {
        true => key.shared(),
        false => key,
    })
}

/// Derives a key from the secret. Each derived key encrypts only one content, so a constant nonce is safe.
fn wrapping_key(secret: &[u8], salt: [u8; SALT_BYTES]) -> LessSafeKey {
    let mut key = [0; KEY_BYTES];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, &salt, secret, &mut key);
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("of the right length"))
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwrap_returns_key_for_its_secret_only() {
        for key in [Key::new([7; 32]), Key::new([7; 32]).shared()] {
            let wrapped = wrap(b"open sesame", &key, [1; 16]);
            assert_eq!(wrapped.len(), WRAPPED_BYTES);
            assert!(unwrap(b"open sesame", &wrapped) == Ok(key));
            let wrong = unwrap(b"open barley", &wrapped);
            assert!(wrong == Err(UnwrapError::WrongSecret));
            for at in 0..wrapped.len() {
                let mut flipped = wrapped.clone();
                flipped[at] ^= 4;
                let damaged = unwrap(b"open sesame", &flipped);
                assert!(damaged == Err(UnwrapError::Damaged), "{at}");
            }
            let cut = unwrap(b"open sesame", &wrapped[..50]);
            assert!(cut == Err(UnwrapError::Damaged));
        }
    }

    #[test]
    fn stream_keys_differ_unless_shared() {
        let key = Key::new([7; 32]);
        let of = |account, stream| key.of_stream(account, stream);
        assert!(of("A", "S") == of("A", "S") && of("A", "S") != key);
        assert!(of("A", "S") != of("A", "T") && of("A", "S") != of("B", "S"));
        let shared = key.clone().shared();
        assert!(shared.of_stream("A", "S") == shared);
    }
}
