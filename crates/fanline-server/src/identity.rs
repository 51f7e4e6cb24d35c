//! Who this server is.

use std::hash::{BuildHasher, Hasher, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// A number that differs from call to call and run to run; not a secret.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What a client has to sign: fifteen characters that nobody can foresee.
pub(crate) fn new_nonce() -> String {
    let mut bytes = [0; 11];
    // Without randomness there is no nonce, and who has to sign one cannot.
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => URL_SAFE_NO_PAD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// What only those know who were told: 256 bits that nobody can guess. `None` without randomness.
pub(crate) fn new_secret() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// An id for an event: 22 characters that no other event has.
pub(crate) fn new_event_id() -> String {
    /// What an id is made of.
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = u128::from(random_u64()) << 64 | u128::from(random_u64());
    let digits = (0..22).map(|_| {
        let digit = usize::try_from(number % 62).unwrap_or(0);
        number /= 62;
        char::from(ALPHABET[digit])
    });
    digits.collect()
}

/// An id in the form of a server's public nkey: `N`, and 55 more characters of base32.
pub(crate) fn new_server_id() -> String {
    const PREFIX_SERVER: u8 = 13 << 3;
    let mut bytes = vec![PREFIX_SERVER];
    for _ in 0..4 {
        bytes.extend(random_u64().to_le_bytes());
    }
    let checksum = crc16(&bytes);
    bytes.extend(checksum.to_le_bytes());
    base32(&bytes)
}

/// CRC-16/XMODEM, the checksum of nkeys.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    })
}

/// RFC 4648, section 6, without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::new();
    for group in bytes.chunks(5) {
        let mut word = [0; 8];
        word[3..3 + group.len()].copy_from_slice(group);
        let word = u64::from_be_bytes(word);
        for i in 0..(group.len() * 8).div_ceil(5) {
            text.push(char::from(ALPHABET[(word >> (35 - 5 * i) & 31) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_server_keys() {
        let id = new_server_id();
        assert_eq!(id.len(), 56);
        assert!(id.starts_with('N'));
        assert_ne!(id, new_server_id());
    }

    #[test]
    fn known_vectors() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(base32(b"foobar"), "MZXW6YTBOI");
    }
}
