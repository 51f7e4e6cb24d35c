//! Encoding of record bodies: compression, encryption, or both. Unencoded records are not copied here.

use super::cipher::Cipher;
use super::record::{self, ENCODED_HEAD_BYTES, HEAD_BYTES, Head, RECORD_BYTES_MAX};

/// Minimum length of a body to compress.
const COMPRESSIBLE_BYTES_MIN: usize = 128;
/// A compressed body is used only if it saves at least the original length divided by this number.
const GAIN_PARTS: usize = 8;
/// Maximum number of bytes to which one byte of LZ4 can expand.
const EXPANSION_MAX: usize = 256;

/// Compression of new records. Existing records are readable either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Each record separately with LZ4, when that makes it shorter.
    Lz4,
}

/// The encoding of record bodies: whether to compress them, and the key that encrypts them.
#[derive(Default)]
pub(super) struct BodyEncoding {
    compression: Compression,
    pub(super) cipher: Option<Cipher>,
    /// The body being encoded or decoded.
    buffer: Vec<u8>,
}

impl BodyEncoding {
    pub(super) fn new(compression: Compression, cipher: Option<Cipher>) -> Self {
        BodyEncoding {
            compression,
            cipher,
            buffer: Vec::new(),
        }
    }

    /// Returns whether records are stored without encoding.
    pub(super) fn is_off(&self) -> bool {
        self.compression == Compression::None && self.cipher.is_none()
    }

    /// Returns the check value of the key for a segment's head; 0 without a key.
    pub(super) fn key_check(&self) -> u64 {
        self.cipher.as_ref().map_or(0, Cipher::key_check)
    }

    /// Returns whether bytes with this check value can be decrypted, or are not encrypted.
    pub(super) fn can_decrypt(&self, key_check: u64) -> bool {
        key_check == 0 || key_check == self.key_check()
    }

    /// Encodes `plain`, a record without checksums. Appends the result with checksums. Returns its head.
    pub(super) fn encode(
        &mut self,
        plain: &[u8],
        head: &Head,
        salt: u32,
        out: &mut Vec<u8>,
    ) -> Head {
        let from = out.len();
        let body = &plain[HEAD_BYTES..];
        let is_compressed = self.compression == Compression::Lz4 && self.compress(body);
        let content = if is_compressed {
            &self.buffer[..]
        } else {
            body
        };
        let Some(encoded) = head.with_body(content.len(), is_compressed, self.cipher.is_some())
        else {
            out.extend_from_slice(plain);
            record::write_checksums(&mut out[from..], salt);
            return *head;
        };
        encoded.write_to(out);
        match &mut self.cipher {
            Some(cipher) => {
                let associated = record::authenticated_part(&out[from..]);
                cipher.encrypt(associated, content, out);
            }
            None => out.extend_from_slice(content),
        }
        record::write_checksums(&mut out[from..], salt);
        encoded
    }

    /// Compresses the body into the buffer. Returns whether it became short enough to use.
    fn compress(&mut self, body: &[u8]) -> bool {
        if body.len() < COMPRESSIBLE_BYTES_MIN {
            return false;
        }
        self.buffer.clear();
        let room = lz4_flex::block::get_maximum_output_size(body.len());
        self.buffer.resize(room, 0);
        match lz4_flex::block::compress_into(body, &mut self.buffer) {
            Ok(bytes) => {
                self.buffer.truncate(bytes);
                bytes <= body.len() - body.len() / GAIN_PARTS
            }
            Err(_) => false,
        }
    }

    /// Decodes a record into `out`, replacing its content; `None` when the record is damaged or the key is
    /// wrong.
    pub(super) fn decode(&mut self, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let head = Head::peek(record)?;
        let mut content = record.get(ENCODED_HEAD_BYTES..head.len())?;
        let plain_bytes = usize::try_from(head.plain_bytes).ok()?;
        if head.is_encrypted() {
            self.buffer.clear();
            let cipher = self.cipher.as_mut()?;
            content = cipher.decrypt(
                record::authenticated_part(record),
                content,
                &mut self.buffer,
            )?;
        }
        let expanded_max = HEAD_BYTES + content.len().saturating_mul(EXPANSION_MAX);
        if plain_bytes < HEAD_BYTES || plain_bytes > RECORD_BYTES_MAX.min(expanded_max) {
            return None;
        }
        out.clear();
        head.with_plain_body().write_to(out);
        if head.is_compressed() {
            out.resize(plain_bytes, 0);
            let bytes = lz4_flex::block::decompress_into(content, &mut out[HEAD_BYTES..]).ok()?;
            (bytes == plain_bytes - HEAD_BYTES).then_some(())
        } else {
            out.extend_from_slice(content);
            (out.len() == plain_bytes).then_some(())
        }
    }
}
