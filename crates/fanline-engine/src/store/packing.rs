//! Records that are compressed, or sealed with a key, or both. What is not packed costs nothing here.

use super::cipher::Cipher;
use super::record::{self, HEAD_BYTES, Head, PACKED_HEAD_BYTES, RECORD_BYTES_MAX};

/// Shorter bodies are not compressed,
const COMPRESSIBLE_BYTES_MIN: usize = 128;
/// nor such as get shorter by less than one part of so many.
const GAIN_PARTS: usize = 8;
/// A byte of LZ4 cannot stand for more than this many.
const EXPANSION_MAX: usize = 256;

/// How records are made smaller that are written from now on; those that are there are read either
/// way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// They are kept as they are.
    #[default]
    None,
    /// Each by itself with LZ4, when that makes it shorter.
    Lz4,
}

/// How records are packed.
#[derive(Default)]
pub(super) struct Packing {
    compression: Compression,
    pub(super) cipher: Option<Cipher>,
    /// What is packed or unpacked right now.
    buffer: Vec<u8>,
}

impl Packing {
    pub(super) fn new(compression: Compression, cipher: Option<Cipher>) -> Self {
        Packing {
            compression,
            cipher,
            buffer: Vec::new(),
        }
    }

    /// Whether records are written as they are.
    pub(super) fn is_off(&self) -> bool {
        self.compression == Compression::None && self.cipher.is_none()
    }

    /// What a segment's head says of the key; 0 without one.
    pub(super) fn key_check(&self) -> u64 {
        self.cipher.as_ref().map_or(0, Cipher::key_check)
    }

    /// Whether what says this of its key can be read.
    pub(super) fn can_open(&self, key_check: u64) -> bool {
        key_check == 0 || key_check == self.key_check()
    }

    /// Appends a record without checksums, packed and with them; gives its head.
    pub(super) fn pack(&mut self, plain: &[u8], head: &Head, salt: u32, out: &mut Vec<u8>) -> Head {
        let from = out.len();
        let body = &plain[HEAD_BYTES..];
        let is_compressed = self.compression == Compression::Lz4 && self.compress(body);
        let content = if is_compressed {
            &self.buffer[..]
        } else {
            body
        };
        let Some(packed) = head.packed(content.len(), is_compressed, self.cipher.is_some()) else {
            out.extend_from_slice(plain);
            record::seal(&mut out[from..], salt);
            return *head;
        };
        packed.write_to(out);
        match &mut self.cipher {
            Some(cipher) => {
                let known = record::sealed_with(&out[from..]);
                cipher.seal(known, content, out);
            }
            None => out.extend_from_slice(content),
        }
        record::seal(&mut out[from..], salt);
        packed
    }

    /// Says whether it is worth it.
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

    /// Makes of a packed record, in the place of what was in `out`, the one that it was; `None` when
    /// it is damaged or the key is another.
    pub(super) fn unpack(&mut self, record: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let head = Head::peek(record)?;
        let mut content = record.get(PACKED_HEAD_BYTES..head.len())?;
        let plain_bytes = usize::try_from(head.plain_bytes).ok()?;
        if head.is_sealed() {
            self.buffer.clear();
            let cipher = self.cipher.as_mut()?;
            content = cipher.open(record::sealed_with(record), content, &mut self.buffer)?;
        }
        let expanded_max = HEAD_BYTES + content.len().saturating_mul(EXPANSION_MAX);
        if plain_bytes < HEAD_BYTES || plain_bytes > RECORD_BYTES_MAX.min(expanded_max) {
            return None;
        }
        out.clear();
        head.unpacked().write_to(out);
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
