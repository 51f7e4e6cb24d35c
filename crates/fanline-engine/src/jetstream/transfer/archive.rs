//! The archive of a stream: the content of a backup as one sequence of bytes, described in
//! `docs/formats/backup.md`.

use super::framing::Unframer;
use crate::store::{NewRecord, Record};

/// First bytes of the archives of nats-server 2.15, which cannot be restored.
const FOREIGN: &[u8] = b"NATSARC";
const MAGIC: &[u8; 8] = b"FLBackup";
const VERSION: u16 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 2;
const FRAME_HEAD_BYTES: usize = 9;
const RECORD_HEAD_BYTES: usize = 30;
/// Maximum length of a frame: one message with its subject, or the configuration and state of one consumer. A
/// frame stays in memory until it is complete.
const FRAME_BYTES_MAX: usize = 1 << 28;

const RECORD: u8 = 1;
const CONSUMER: u8 = 2;
const SKIP: u8 = 3;
const END: u8 = 4;

/// A frame of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A record and its sequence.
    Record(u64, NewRecord<'a>),
    /// Configuration and state of a consumer, as bytes.
    Consumer(&'a [u8], &'a [u8]),
    /// The next sequence that the stream will assign.
    Skip(u64),
    /// The end of the archive.
    End,
}

/// Reason for which bytes are not a valid archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("not a backup of a stream")]
    Unknown,
    #[error("backups of nats-server cannot be restored; use a mirror to migrate the stream")]
    Foreign,
    #[error("the backup is damaged")]
    Damaged,
    /// The backup exceeds the memory limit of all restores of the account.
    #[error("the backup needs too much memory")]
    TooLarge,
}

/// Appends the head of an archive. Archives are sent in [frames](super::framing).
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
}

pub(super) fn write_record(out: &mut Vec<u8>, record: &Record<'_>) {
    let (subject, headers) = (record.subject, record.headers);
    let start = open(out, RECORD);
    out.extend(record.sequence.to_le_bytes());
    out.extend(record.unix_nanos.to_le_bytes());
    out.extend(record.expires_at.unwrap_or(0).to_le_bytes());
    out.extend(
        u16::try_from(subject.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    out.extend(
        u32::try_from(headers.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    out.extend(subject);
    out.extend(headers);
    out.extend(record.payload);
    close(out, start);
}

pub(super) fn write_consumer(out: &mut Vec<u8>, config: &[u8], state: &[u8]) {
    let start = open(out, CONSUMER);
    out.extend(
        u32::try_from(config.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    out.extend(config);
    out.extend(state);
    close(out, start);
}

pub(super) fn write_end(out: &mut Vec<u8>, next_sequence: u64) {
    let start = open(out, SKIP);
    out.extend(next_sequence.to_le_bytes());
    close(out, start);
    let start = open(out, END);
    close(out, start);
}

/// Appends an empty frame head for kind, length, and checksum, which [`close`] fills in. Returns the frame's
/// position.
fn open(out: &mut Vec<u8>, kind: u8) -> usize {
    let start = out.len();
    out.push(kind);
    out.extend([0; FRAME_HEAD_BYTES - 1]);
    start
}

fn close(out: &mut [u8], start: usize) {
    let (head, body) = out[start..].split_at_mut(FRAME_HEAD_BYTES);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    head[1..5].copy_from_slice(&length.to_le_bytes());
    head[5..].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
}

/// Reads an archive that arrives in chunks. It decompresses only as much as the next frame needs, because a
/// chunk of a megabyte may expand to gigabytes.
#[derive(Default)]
pub(super) struct Reader {
    unframer: Unframer,
    bytes: Vec<u8>,
    at: usize,
    has_begun: bool,
    has_skipped: bool,
    has_ended: bool,
}

impl Reader {
    /// Adds the next chunk. Call it when [`next`](Self::next) has returned all frames of earlier chunks.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.unframer.push(chunk);
    }

    /// Returns the number of bytes in memory that belong to an incomplete frame.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns the next complete frame. Fails if an incomplete one exceeds `buffered_bytes_max`.
    pub(super) fn next(
        &mut self,
        buffered_bytes_max: usize,
    ) -> Result<Option<Frame<'_>>, ArchiveError> {
        if self.has_ended {
            return self.check_end();
        }
        while !self.is_whole()? {
            if self.buffered_bytes() > buffered_bytes_max {
                return Err(ArchiveError::TooLarge);
            }
            self.bytes.drain(..self.at);
            self.at = 0;
            if self.unframer.read(&mut self.bytes)? == 0 {
                return Ok(None);
            }
        }
        let rest = &self.bytes[self.at..];
        let Some((head, rest)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(None);
        };
        let [kind, _, _, _, _, crc @ ..] = head;
        let body = &rest[..self.body_bytes().unwrap_or(0)];
        if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
            return Err(ArchiveError::Damaged);
        }
        self.at += FRAME_HEAD_BYTES + body.len();
        let frame = frame(*kind, body).ok_or(ArchiveError::Damaged)?;
        // A few compressed bytes could repeat a skip frame or an end frame millions of times, so each of
        // these two may occur only once.
        let is_in_order = match frame {
            Frame::Skip(_) => !std::mem::replace(&mut self.has_skipped, true),
            Frame::End => {
                self.has_ended = true;
                true
            }
            Frame::Record(..) | Frame::Consumer(..) => !self.has_skipped,
        };
        is_in_order
            .then_some(Some(frame))
            .ok_or(ArchiveError::Damaged)
    }

    /// Checks that the archive ends after the end frame.
    fn check_end(&mut self) -> Result<Option<Frame<'_>>, ArchiveError> {
        match self.buffered_bytes() == 0 && self.unframer.read(&mut self.bytes)? == 0 {
            true => Ok(None),
            false => Err(ArchiveError::Damaged),
        }
    }

    /// Returns whether the next frame is complete. Removes the archive's head first.
    fn is_whole(&mut self) -> Result<bool, ArchiveError> {
        if !self.has_begun {
            let Some(head) = self.bytes.get(..HEAD_BYTES) else {
                return Ok(false);
            };
            if head.starts_with(FOREIGN) {
                return Err(ArchiveError::Foreign);
            }
            if head[..MAGIC.len()] != MAGIC[..] || head[MAGIC.len()..] != VERSION.to_le_bytes() {
                return Err(ArchiveError::Unknown);
            }
            self.has_begun = true;
            self.at = HEAD_BYTES;
        }
        match self.body_bytes() {
            Some(length) if length > FRAME_BYTES_MAX => Err(ArchiveError::Damaged),
            Some(length) => Ok(self.bytes.len() - self.at >= FRAME_HEAD_BYTES + length),
            None => Ok(false),
        }
    }

    /// Returns the length of the next frame's body, from the frame's head.
    fn body_bytes(&self) -> Option<usize> {
        let head = self.bytes.get(self.at..self.at + FRAME_HEAD_BYTES)?;
        let length = u32::from_le_bytes(head[1..5].try_into().ok()?);
        usize::try_from(length).ok()
    }
}

fn frame(kind: u8, body: &[u8]) -> Option<Frame<'_>> {
    match kind {
        RECORD => record(body),
        CONSUMER => {
            let (length, rest) = body.split_first_chunk()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (config, state) = rest.split_at_checked(length)?;
            Some(Frame::Consumer(config, state))
        }
        SKIP => Some(Frame::Skip(u64::from_le_bytes(body.try_into().ok()?))),
        END => body.is_empty().then_some(Frame::End),
        _ => None,
    }
}

fn record(body: &[u8]) -> Option<Frame<'_>> {
    let (head, rest) = body.split_at_checked(RECORD_HEAD_BYTES)?;
    let number = |at: usize| head.get(at..at + 8)?.try_into().ok();
    let sequence = u64::from_le_bytes(number(0)?);
    let unix_nanos = i64::from_le_bytes(number(8)?);
    let expires_at = i64::from_le_bytes(number(16)?);
    let subject_bytes = usize::from(u16::from_le_bytes([head[24], head[25]]));
    let headers_bytes = u32::from_le_bytes([head[26], head[27], head[28], head[29]]);
    let (subject, rest) = rest.split_at_checked(subject_bytes)?;
    let (headers, payload) = rest.split_at_checked(usize::try_from(headers_bytes).ok()?)?;
    let record = NewRecord {
        unix_nanos,
        subject,
        headers,
        payload,
        expires_at: Some(expires_at).filter(|at| *at != 0),
        more_in_batch: false,
    };
    Some(Frame::Record(sequence, record))
}

#[cfg(test)]
mod tests {
    use super::super::framing;
    use super::*;
    use crate::codec::s2::{Level, Packer, STREAM_HEAD};

    fn archive() -> Vec<u8> {
        let mut out = Vec::new();
        begin(&mut out);
        let record = Record {
            sequence: 7,
            unix_nanos: 1_000,
            subject: b"birds.heron",
            headers: b"NATS/1.0\r\n\r\n",
            payload: b"by the lake",
            expires_at: Some(9_000),
        };
        write_record(&mut out, &record);
        write_consumer(&mut out, b"{}", b"state");
        write_end(&mut out, 12);
        let mut framed = Vec::new();
        framing::begin(&mut framed);
        framing::write(&mut framed, &out);
        framed
    }

    fn read(chunks: impl Iterator<Item = Vec<u8>>) -> Result<Vec<String>, ArchiveError> {
        let mut reader = Reader::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            reader.push(&chunk);
            while let Some(frame) = reader.next(FRAME_BYTES_MAX)? {
                frames.push(match frame {
                    Frame::Record(sequence, record) => format!(
                        "{sequence} {} {}",
                        String::from_utf8_lossy(record.subject),
                        String::from_utf8_lossy(record.payload)
                    ),
                    other => format!("{other:?}"),
                });
            }
        }
        Ok(frames)
    }

    #[test]
    fn archive_round_trips_in_chunks_of_any_size() {
        let expected = [
            "7 birds.heron by the lake",
            "Consumer([123, 125], [115, 116, 97, 116, 101])",
            "Skip(12)",
            "End",
        ];
        for size in [1, 3, 10, 64, 10_000] {
            let archive = archive();
            let chunks = archive.chunks(size).map(<[u8]>::to_vec);
            assert_eq!(read(chunks).unwrap(), expected, "pieces of {size}");
        }
    }

    /// Regression: a megabyte of compressed data was decompressed at once, to gigabytes.
    #[test]
    fn reader_decompresses_only_the_next_frame() {
        let mut archive = Vec::new();
        begin(&mut archive);
        for _ in 0..1000 {
            write_consumer(&mut archive, &[b' '; 100_000], b"");
        }
        let mut packed = STREAM_HEAD.to_vec();
        Packer::default().pack(Level::Fast, &archive, &mut packed);
        assert!(packed.len() < archive.len() / 10);
        let mut reader = Reader::default();
        reader.push(&packed);
        for _ in 0..1000 {
            let frame = reader.next(1_000_000).unwrap().unwrap();
            assert!(matches!(frame, Frame::Consumer(config, b"") if config.len() == 100_000));
            assert!(reader.bytes.capacity() < 1_000_000);
        }
        assert_eq!(reader.next(1_000_000), Ok(None));
    }

    /// Sixteen bytes can expand to four megabytes of frames, which would take much time.
    #[test]
    fn repeated_end_frames_are_refused() {
        let skip = &mut Vec::new();
        write_end(skip, 7);
        let (skip, end) = skip.split_at(FRAME_HEAD_BYTES + 8);
        let frames = |frames: &[&[u8]]| {
            let mut archive = Vec::new();
            begin(&mut archive);
            let mut framed = Vec::new();
            framing::begin(&mut framed);
            framing::write(&mut framed, &[&archive, &frames.concat()[..]].concat());
            read(std::iter::once(framed)).map(|frames| frames.len())
        };
        assert_eq!(frames(&[skip, end]), Ok(2));
        for wrong in [
            &[skip, skip, end][..],
            &[skip, end, end],
            &[skip, end, skip],
            &[skip, end, b"x"],
        ] {
            assert_eq!(frames(wrong), Err(ArchiveError::Damaged));
        }
    }

    #[test]
    fn partial_frame_is_bounded() {
        let mut archive = Vec::new();
        begin(&mut archive);
        write_consumer(&mut archive, &[b' '; 100_000], b"");
        let mut framed = Vec::new();
        framing::begin(&mut framed);
        framing::write(&mut framed, &archive);
        for (room, fits) in [(50_000, false), (100_000, true)] {
            let mut reader = Reader::default();
            reader.push(&framed);
            assert_eq!(reader.next(room).is_ok(), fits, "{room}");
        }
    }

    #[test]
    fn backup_of_nats_server_is_recognized() {
        let mut framed = Vec::new();
        framing::begin(&mut framed);
        framing::write(&mut framed, b"NATSARC1\n and what it holds");
        assert_eq!(read(std::iter::once(framed)), Err(ArchiveError::Foreign));
    }

    #[test]
    fn flipped_bits_never_yield_a_complete_archive() {
        let whole = archive();
        for at in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            let found = read(std::iter::once(flipped));
            // If the flipped bit makes a length higher, bytes are missing, and the archive never ends.
            let is_whole = found.is_ok_and(|frames| frames.last().is_some_and(|f| f == "End"));
            assert!(!is_whole, "bit {at}");
        }
    }
}
