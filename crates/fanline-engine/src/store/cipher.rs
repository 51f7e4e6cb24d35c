//! Encryption with AES-256-GCM or ChaCha20-Poly1305.
//!
//! At each start a store uses a new key, derived from the configured key and a random number, the *epoch*.
//! Nonces count up within an epoch. A nonce is therefore never used twice with the same key, even if a crash
//! lost earlier writes.

use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;

/// Number of bytes that encryption adds: the epoch and the nonce before the content, and the tag after it.
pub(super) const ENCRYPTION_BYTES: usize = NUMBERS_BYTES + TAG_BYTES;
const NUMBERS_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
/// Maximum number of cached keys of earlier epochs.
const CACHED_KEYS_MAX: usize = 16;

const FILE_MAGIC: &[u8; 4] = b"FSea";
const FILE_VERSION: u16 = 1;
const FILE_HEAD_BYTES: usize = 16;

/// The algorithm for new data. Existing data is decrypted with either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// AES-256-GCM: faster on processors with AES instructions.
    #[default]
    Aes,
    /// ChaCha20-Poly1305.
    ChaCha,
}

impl Algorithm {
    /// Returns the lowest bit of an epoch, which names the algorithm.
    fn bit(self) -> u64 {
        match self {
            Algorithm::Aes => 0,
            Algorithm::ChaCha => 1,
        }
    }

    fn of_epoch(epoch: u64) -> &'static aead::Algorithm {
        match epoch & 1 {
            0 => &aead::AES_256_GCM,
            _ => &aead::CHACHA20_POLY1305,
        }
    }
}

/// The key that encrypts a store's files.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    pub(super) secret: [u8; 32],
    algorithm: Algorithm,
    /// Whether streams use this key itself instead of a derived one, as the first builds did.
    pub(super) is_shared: bool,
}

impl Key {
    /// Creates a key from 32 bytes that are hard to guess.
    pub fn new(secret: [u8; 32]) -> Self {
        Key {
            secret,
            algorithm: Algorithm::default(),
            is_shared: false,
        }
    }

    /// Returns the same key, which streams then use without deriving their own.
    pub(super) fn shared(self) -> Self {
        Key {
            is_shared: true,
            ..self
        }
    }

    /// Derives the key of one stream. Records that are moved to the files of another stream cannot be
    /// decrypted.
    #[must_use]
    pub(crate) fn of_stream(&self, account: &str, stream: &str) -> Self {
        if self.is_shared {
            return self.clone();
        }
        let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, b"fanline stream").extract(&self.secret);
        // The zero byte separates the names: no name contains one.
        let info = [account.as_bytes(), b"\0", stream.as_bytes()];
        let mut secret = [0; 32];
        derived
            .expand(&info, hkdf::HKDF_SHA256)
            .and_then(|key| key.fill(&mut secret))
            .expect("as many bytes as the hash has");
        Key {
            secret,
            ..self.clone()
        }
    }

    /// Returns the same key, with another algorithm for new data.
    #[must_use]
    pub fn with_algorithm(self, algorithm: Algorithm) -> Self {
        Key { algorithm, ..self }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// What a cipher encrypts. Ciphers with the same key and epoch, but different purposes, use different keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Log,
    Documents,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Purpose::Log => b"log",
            Purpose::Documents => b"documents",
        }
    }
}

/// Why a decryption failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecryptError {
    WrongKey,
    Damaged,
}

/// Encrypts and decrypts.
pub(super) struct Cipher {
    derived: hkdf::Prk,
    purpose: Purpose,
    key_check: u64,
    epoch: u64,
    next_nonce: u64,
    /// Derived keys by epoch. The first is the key of the own epoch.
    known: Vec<(u64, LessSafeKey)>,
}

impl Cipher {
    /// Creates a cipher. `epoch` must be different at each start.
    pub(super) fn new(key: &Key, purpose: Purpose, epoch: u64) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"fanline store");
        let derived = salt.extract(&key.secret);
        let epoch = epoch & !1 | key.algorithm.bit();
        let mut cipher = Cipher {
            key_check: key_check(&derived),
            derived,
            purpose,
            epoch,
            next_nonce: 0,
            known: Vec::new(),
        };
        let own = cipher.derive(epoch);
        cipher.known.extend(own.map(|own| (epoch, own)));
        cipher
    }

    /// Returns a value that differs between keys, but does not reveal them. Never 0.
    pub(super) fn key_check(&self) -> u64 {
        self.key_check
    }

    /// Appends the encrypted `content`. `known` is authenticated together with the content, but not stored.
    pub(super) fn encrypt(&mut self, known: [u8; 28], content: &[u8], out: &mut Vec<u8>) {
        let number = self.next_nonce;
        self.next_nonce += 1;
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        let from = out.len();
        out.extend_from_slice(content);
        let (_, own) = self.known.first().expect("made with it");
        let tag = own
            .seal_in_place_separate_tag(nonce(number), Aad::from(known), &mut out[from..])
            .expect("shorter than 64 GiB");
        out.extend_from_slice(tag.as_ref());
    }

    /// Decrypts the result of [`encrypt`](Self::encrypt); `None` if it is damaged or `known` differs.
    pub(super) fn decrypt<'a>(
        &mut self,
        known: [u8; 28],
        encrypted: &[u8],
        out: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let (numbers, content) = encrypted.split_at_checked(NUMBERS_BYTES)?;
        let epoch = u64::from_le_bytes(numbers[..8].try_into().ok()?);
        let number = u64::from_le_bytes(numbers[8..].try_into().ok()?);
        let at = self.cached_key(epoch)?;
        out.clear();
        out.extend_from_slice(content);
        let (_, key) = &self.known[at];
        let decrypted = key.open_in_place(nonce(number), Aad::from(known), out);
        decrypted.ok().map(|plain| &*plain)
    }

    fn cached_key(&mut self, epoch: u64) -> Option<usize> {
        let known = self.known.iter().position(|(known, _)| *known == epoch);
        if known.is_some() {
            return known;
        }
        let key = self.derive(epoch)?;
        if self.known.len() >= CACHED_KEYS_MAX {
            self.known.remove(1);
        }
        self.known.push((epoch, key));
        Some(self.known.len() - 1)
    }

    fn derive(&self, epoch: u64) -> Option<LessSafeKey> {
        let bytes = epoch.to_le_bytes();
        let info = [self.purpose.label(), &bytes[..]];
        let algorithm = Algorithm::of_epoch(epoch);
        let derived = self.derived.expand(&info, algorithm).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(derived)))
    }

    /// Returns the encrypted bytes of a whole file.
    pub(super) fn encrypt_file(&mut self, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(FILE_HEAD_BYTES + ENCRYPTION_BYTES + content.len() + 4);
        out.extend_from_slice(FILE_MAGIC);
        out.extend_from_slice(&FILE_VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.key_check.to_le_bytes());
        self.encrypt([0; 28], content, &mut out);
        let sum = crc32fast::hash(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }
}

/// Returns whether a file is encrypted. If a bit of the magic bytes flips, checksums detect that the file is
/// damaged.
fn is_encrypted_file(bytes: &[u8]) -> bool {
    bytes.starts_with(FILE_MAGIC)
}

/// Returns the content of a file, decrypted if the file is encrypted.
pub(super) fn decrypt_file<'a>(
    cipher: Option<&mut Cipher>,
    bytes: &'a [u8],
    out: &'a mut Vec<u8>,
) -> Result<&'a [u8], DecryptError> {
    if !is_encrypted_file(bytes) {
        return Ok(bytes);
    }
    let (content, sum) = bytes.split_last_chunk::<4>().ok_or(DecryptError::Damaged)?;
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return Err(DecryptError::Damaged);
    }
    let (head, encrypted) = content
        .split_at_checked(FILE_HEAD_BYTES)
        .ok_or(DecryptError::Damaged)?;
    let cipher = cipher.ok_or(DecryptError::WrongKey)?;
    if head[8..] != cipher.key_check.to_le_bytes() {
        return Err(DecryptError::WrongKey);
    }
    cipher
        .decrypt([0; 28], encrypted, out)
        .ok_or(DecryptError::Damaged)
}

fn key_check(derived: &hkdf::Prk) -> u64 {
    struct Bytes;
    impl hkdf::KeyType for Bytes {
        fn len(&self) -> usize {
            8
        }
    }
    let mut check = [0; 8];
    let filled = derived
        .expand(&[&b"check"[..]], Bytes)
        .and_then(|okm| okm.fill(&mut check));
    // Deriving so few bytes does not fail.
    debug_assert!(filled.is_ok());
    u64::from_le_bytes(check).max(1)
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
