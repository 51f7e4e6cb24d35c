//! Keys and credentials files, with which a client authenticates.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::ClientError;

/// Number of bytes of a key.
const KEY_BYTES: usize = 32;
/// Number of characters of a seed.
const SEED_TEXT_BYTES: usize = 58;
/// The first byte of a seed. Its first five bits encode the letter `S`.
const SEED: u8 = 18 << 3;
/// The alphabet of base32 (RFC 4648).
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A user's key and, if it comes from a credentials file, the JWT that contains the public key. `{:?}` shows
/// neither key nor JWT.
#[doc(hidden)]
#[derive(Clone)]
pub struct Credentials {
    /// The type of the key, as encoded at the start of its public key.
    prefix: u8,
    seed: [u8; KEY_BYTES],
    jwt: Option<String>,
}

impl Credentials {
    /// Reads the first seed (`SU…`) of a text, such as that of a key file.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidCredentials`] when the text has no seed.
    pub fn from_nkey(text: &str) -> Result<Self, ClientError> {
        let seed = text.lines().find_map(|line| decode_seed(line.trim()));
        let (prefix, seed) = seed.ok_or(ClientError::InvalidCredentials(
            "it contains no seed of an nkey",
        ))?;
        Ok(Credentials {
            prefix,
            seed,
            jwt: None,
        })
    }

    /// Reads the content of a credentials file (`.creds`): a JWT and the seed of its key.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidCredentials`] when the JWT or the seed is missing.
    pub fn from_file_content(text: &str) -> Result<Self, ClientError> {
        let mut lines = text.lines().map(str::trim);
        let jwt = lines.find(|line| line.matches('.').count() == 2 && line.starts_with("ey"));
        let jwt = jwt.ok_or(ClientError::InvalidCredentials("it contains no JWT"))?;
        Ok(Credentials {
            jwt: Some(jwt.to_owned()),
            ..Credentials::from_nkey(text)?
        })
    }

    /// Returns the JWT.
    pub fn jwt(&self) -> Option<&str> {
        self.jwt.as_deref()
    }

    /// Returns the text of the public key. If there is a JWT, returns `None`, because the JWT contains the
    /// public key.
    pub fn nkey(&self) -> Option<String> {
        self.jwt.is_none().then(|| {
            let mut bytes = vec![self.prefix];
            bytes.extend_from_slice(self.key_pair().public_key().as_ref());
            encode_checked(bytes)
        })
    }

    /// Signs a server's nonce and returns the signature in base64.
    pub fn sign(&self, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.key_pair().sign(nonce.as_bytes()))
    }

    fn key_pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&self.seed).expect("every 32 bytes are a seed")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Decodes a seed into the type of its key and the key's 32 secret bytes.
fn decode_seed(text: &str) -> Option<(u8, [u8; KEY_BYTES])> {
    let [first, second, seed @ .., low, high] = &*decode_base32(text)? else {
        return None;
    };
    let seed: [u8; KEY_BYTES] = seed.try_into().ok()?;
    let checked = [&[*first, *second], &seed[..]].concat();
    let is_seed = first & 0xf8 == SEED && crc16(&checked) == u16::from_le_bytes([*low, *high]);
    is_seed.then_some((((first & 7) << 5) | (second >> 3), seed))
}

/// Encodes bytes, followed by their checksum, in base32.
fn encode_checked(mut bytes: Vec<u8>) -> String {
    let checksum = crc16(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    encode_base32(&bytes)
}

fn encode_base32(bytes: &[u8]) -> String {
    let mut text = String::new();
    let (mut pending, mut bits) = (0u32, 0);
    for byte in bytes {
        pending = (pending << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(pending >> bits) as usize & 31]));
        }
        pending &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(pending << (5 - bits)) as usize & 31]));
    }
    text
}

/// Decodes the text of a seed. Returns `None` if the text is longer than a seed.
fn decode_base32(text: &str) -> Option<Vec<u8>> {
    if text.len() > SEED_TEXT_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut pending, mut bits) = (0u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        pending = (pending << 5) | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(pending >> bits).ok()?);
            pending &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

/// Returns the CRC-16/XMODEM of bytes.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| match sum & 0x8000 {
            0 => sum << 1,
            _ => (sum << 1) ^ 0x1021,
        })
    })
}
