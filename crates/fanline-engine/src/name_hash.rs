//! Short hashes of names, as nats-server computes them.

use ring::digest::{SHA256, digest};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the hash of a name: the first bytes of SHA-256, each as a digit.
pub(crate) fn name_hash<const BYTES: usize>(name: &str) -> [u8; BYTES] {
    let digest = digest(&SHA256, name.as_bytes());
    let mut hash = [0; BYTES];
    for (to, byte) in hash.iter_mut().zip(digest.as_ref()) {
        *to = ALPHABET[usize::from(*byte) % ALPHABET.len()];
    }
    hash
}
