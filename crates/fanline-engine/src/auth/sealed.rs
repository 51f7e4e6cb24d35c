//! Encrypted messages between two peers in NATS's format: prefix, nonce, and NaCl box.

use crypto_secretbox::XSalsa20Poly1305;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use salsa20::cipher::consts::U10;
use salsa20::cipher::generic_array::GenericArray;

use super::nkey::KEY_BYTES;

/// Prefix of encrypted bytes.
const MARK: &[u8] = b"xkv1";
/// Length of a nonce in bytes. A nonce must never be reused between the same two peers.
pub const NONCE_BYTES: usize = 24;

/// Encrypts messages for one peer, and decrypts messages of that peer.
pub struct Sealer {
    secretbox: XSalsa20Poly1305,
}

// The key is secret.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

impl Sealer {
    /// Creates a sealer from the X25519 shared secret of the own key and the peer's key.
    pub fn new(secret: &[u8; KEY_BYTES]) -> Self {
        let nothing = GenericArray::default();
        let key = salsa20::hsalsa::<U10>(GenericArray::from_slice(secret), &nothing);
        Sealer {
            secretbox: XSalsa20Poly1305::new(&key),
        }
    }

    /// Encrypts a message. The nonce must be random.
    pub fn seal(&self, nonce: &[u8; NONCE_BYTES], message: &[u8]) -> Vec<u8> {
        let sealed = self.secretbox.encrypt(nonce.into(), message);
        // Encryption fails only for messages of more than 256 GiB.
        [MARK, nonce, &sealed.unwrap_or_default()].concat()
    }

    /// Decrypts a message. Returns `None` if the peer did not encrypt it.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let sealed = sealed.strip_prefix(MARK)?;
        let (nonce, hidden) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        self.secretbox.decrypt(nonce.into(), hidden).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
        let pair = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    /// The example in "Cryptography in NaCl", sections 8 to 10.
    #[test]
    fn sealing_matches_the_nacl_example() {
        let secret = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        let nonce = bytes("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
        let message = bytes(
            "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffc
             e5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb31
             0e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde
             048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f93776384864
             5e0705",
        );
        let expected = bytes(
            "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce
             48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c972
             71d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae
             90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b3
             7973f622a43d14a6599b1f654cb45a74e355a5",
        );
        let sealer = Sealer::new(secret.as_slice().try_into().unwrap());
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().unwrap();
        let sealed = sealer.seal(&nonce, &message);
        assert_eq!(sealed, [MARK, &nonce, &expected].concat());
        assert_eq!(sealer.open(&sealed), Some(message));
        assert!(!format!("{sealer:?}").contains("key"));
    }

    proptest! {
        #[test]
        fn only_the_same_bytes_open(
            secret: [u8; KEY_BYTES],
            nonce: [u8; NONCE_BYTES],
            message in prop::collection::vec(any::<u8>(), 0..200),
            at: prop::sample::Index,
        ) {
            let sealer = Sealer::new(&secret);
            let mut sealed = sealer.seal(&nonce, &message);
            prop_assert_eq!(sealer.open(&sealed), Some(message));
            let at = at.index(sealed.len());
            prop_assert_eq!(sealer.open(&sealed[..at]), None);
            sealed[at] ^= 1;
            prop_assert_eq!(sealer.open(&sealed), None);
        }
    }
}
