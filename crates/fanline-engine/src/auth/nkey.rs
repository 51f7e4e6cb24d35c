//! NATS keys (nkeys): a kind, the key, and a checksum in base32.

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named as NATS names them")]
pub enum KeyKind {
    Operator,
    Account,
    User,
    Server,
    Cluster,
    Curve,
}

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// Prefix of seeds; its first five bits encode the letter `S`.
const SEED: u8 = 18 << 3;

impl KeyKind {
    const ALL: [(KeyKind, u8); 6] = [
        (KeyKind::Account, 0),
        (KeyKind::Cluster, 2 << 3),
        (KeyKind::Server, 13 << 3),
        (KeyKind::Operator, 14 << 3),
        (KeyKind::User, 20 << 3),
        (KeyKind::Curve, 23 << 3),
    ];

    fn prefix(self) -> u8 {
        let mut all = Self::ALL.iter();
        all.find(|(kind, _)| *kind == self).map_or(0, |(_, p)| *p)
    }

    fn of_prefix(prefix: u8) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, p)| *p == prefix).map(|(kind, _)| *kind)
    }
}

/// A public key: `U…` for users, `A…` for accounts, `O…` for operators.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey {
    kind: KeyKind,
    key: [u8; KEY_BYTES],
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.encode())
    }
}

impl PublicKey {
    /// Creates a key of this kind.
    pub fn new(kind: KeyKind, key: [u8; KEY_BYTES]) -> Self {
        PublicKey { kind, key }
    }

    /// Parses a public key; `None` if it is invalid, or a seed.
    pub fn parse(text: &str) -> Option<Self> {
        let [prefix, key @ ..] = &*checked(text)? else {
            return None;
        };
        Some(PublicKey {
            kind: KeyKind::of_prefix(*prefix)?,
            key: key.try_into().ok()?,
        })
    }

    /// Parses a public key of this kind.
    pub fn parse_as(kind: KeyKind, text: &str) -> Option<Self> {
        PublicKey::parse(text).filter(|key| key.kind == kind)
    }

    /// Returns the kind.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.key
    }

    /// Returns the encoded key.
    pub fn encode(&self) -> String {
        let mut bytes = vec![self.kind.prefix()];
        bytes.extend_from_slice(&self.key);
        encode_checked(bytes)
    }

    /// Returns whether the owner of this key signed `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.key)
            .verify(message, signature)
            .is_ok()
    }
}

/// A secret key for signing: `SU…`, `SA…`, `SO…`. Its `{:?}` output does not contain the key.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    kind: KeyKind,
    seed: [u8; KEY_BYTES],
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKey").finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Creates a key from a seed, which must be random.
    pub fn new(kind: KeyKind, seed: [u8; KEY_BYTES]) -> Self {
        SecretKey { kind, seed }
    }

    /// Parses a secret key; `None` if it is invalid, or a public key.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, seed) = decode_seed(text)?;
        Some(SecretKey { kind, seed })
    }

    /// Returns the encoded key.
    pub fn encode(&self) -> String {
        encode_seed(self.kind, &self.seed)
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(self.pair().public_key().as_ref());
        PublicKey::new(self.kind, key)
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair().sign(message).as_ref().to_vec()
    }

    fn pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&self.seed).expect("every 32 bytes are a seed")
    }
}

/// Encodes a secret key.
fn encode_seed(kind: KeyKind, seed: &[u8; KEY_BYTES]) -> String {
    let prefix = kind.prefix();
    let mut bytes = vec![SEED | (prefix >> 5), (prefix & 31) << 3];
    bytes.extend_from_slice(seed);
    encode_checked(bytes)
}

/// Parses a secret key.
fn decode_seed(text: &str) -> Option<(KeyKind, [u8; KEY_BYTES])> {
    let [first, second, seed @ ..] = &*checked(text)? else {
        return None;
    };
    if first & 0xf8 != SEED {
        return None;
    }
    let kind = KeyKind::of_prefix(((first & 7) << 5) | ((second & 0xf8) >> 3))?;
    Some((kind, seed.try_into().ok()?))
}

fn encode_checked(mut bytes: Vec<u8>) -> String {
    let sum = crc16(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    base32(&bytes)
}

/// Decodes a key and removes its checksum. Returns `None` if the checksum is wrong.
fn checked(text: &str) -> Option<Vec<u8>> {
    let mut bytes = from_base32(text)?;
    let at = bytes.len().checked_sub(2)?;
    let sum: [u8; 2] = bytes[at..].try_into().ok()?;
    bytes.truncate(at);
    (crc16(&bytes) == u16::from_le_bytes(sum)).then_some(bytes)
}

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Encodes base32 (RFC 4648) without padding.
fn base32(bytes: &[u8]) -> String {
    let mut text = String::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(held >> bits) as usize & 31]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(held << (5 - bits)) as usize & 31]));
    }
    text
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    /// Largest length of an encoded key in bytes. It bounds the work for invalid input.
    const TEXT_BYTES_MAX: usize = 64;
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut held, mut bits) = (0u32, 0);
    for letter in text.bytes() {
        let five = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        held = (held << 5) | u32::from(five);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| match sum & 0x8000 {
            0 => sum << 1,
            _ => (sum << 1) ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoded_keys_round_trip(key: [u8; KEY_BYTES], at in 0..KeyKind::ALL.len()) {
            let kind = KeyKind::ALL[at].0;
            let public = PublicKey::new(kind, key);
            prop_assert_eq!(PublicKey::parse(&public.encode()), Some(public));
            let seed = encode_seed(kind, &key);
            prop_assert_eq!(decode_seed(&seed), Some((kind, key)));
            prop_assert!(PublicKey::parse(&seed).is_none());
        }

        #[test]
        fn wrong_letter_is_detected(key: [u8; KEY_BYTES], at in 0..56usize, letter in "[A-Z2-7]") {
            let text = PublicKey::new(KeyKind::User, key).encode();
            let mut wrong = text.clone();
            wrong.replace_range(at..=at, &letter);
            prop_assert!(wrong == text || PublicKey::parse(&wrong).is_none());
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,80}") {
            let _ = (PublicKey::parse(&text), decode_seed(&text));
        }
    }

    #[test]
    fn each_kind_has_its_letter() {
        for (kind, letter) in [
            (KeyKind::User, 'U'),
            (KeyKind::Account, 'A'),
            (KeyKind::Operator, 'O'),
            (KeyKind::Server, 'N'),
            (KeyKind::Cluster, 'C'),
            (KeyKind::Curve, 'X'),
        ] {
            let public = PublicKey::new(kind, [7; KEY_BYTES]).encode();
            assert!(public.starts_with(letter) && public.len() == 56, "{public}");
            let seed = encode_seed(kind, &[7; KEY_BYTES]);
            assert_eq!(
                seed.chars().take(2).collect::<String>(),
                format!("S{letter}")
            );
        }
    }

    #[test]
    fn signature_verifies_with_its_own_key_only() {
        let secret = SecretKey::new(KeyKind::User, [9; KEY_BYTES]);
        assert_eq!(SecretKey::parse(&secret.encode()), Some(secret.clone()));
        assert!(!format!("{secret:?}").contains(&secret.encode()));
        let public = secret.public();
        let signature = secret.sign(b"nonce");
        assert!(public.verifies(b"nonce", &signature));
        assert!(!public.verifies(b"other", &signature));
        assert!(!public.verifies(b"nonce", &signature[1..]));
        assert!(!public.verifies(b"nonce", b""));
    }
}
