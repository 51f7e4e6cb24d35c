//! Writes a checkpoint step by step, so that no step blocks the store for long.

use std::collections::VecDeque;
use std::vec::IntoIter;

use super::Store;
use super::disk::{DiskError, FileId};
use super::files::Files;
use super::index::{self, Totals, Writer};
use super::segment::{Body, Segment};
use super::subjects::Subjects;
use super::upkeep::Phase;

/// Maximum number of subjects or expiries to write in one step.
const SUBJECTS_PER_STEP: usize = if cfg!(test) { 3 } else { 4096 };
/// Approximate bytes of segments, or bytes of an encrypted checkpoint, to write in one step.
const BYTES_PER_STEP: usize = if cfg!(test) { 500 } else { 1 << 20 };

/// A checkpoint being written. It contains the state at its beginning.
pub(super) struct Checkpoint {
    file: FileId,
    /// Number of bytes written to the file so far.
    at: u64,
    writer: Writer,
    segments: VecDeque<Segment>,
    has_subjects: bool,
    expiries: IntoIter<(i64, u64)>,
    /// Remaining bytes of an encrypted checkpoint; `None` while it is being encoded.
    encrypted: Option<Vec<u8>>,
}

impl Store {
    /// Begins a checkpoint of the current state, and performs its first step.
    pub(super) fn begin_checkpoint(&mut self) -> Result<(), DiskError> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.write()?;
        let Some(Body::File(active)) = self.segments.back().map(|segment| &segment.body) else {
            return Ok(());
        };
        let totals = Totals {
            number: active.number,
            offset: files.end(),
            salt: files.salt,
            first: self.first,
            last: self.last,
            last_unix_nanos: self.last_unix_nanos,
            messages: self.messages,
            bytes: self.bytes,
        };
        let file = files.disk.open(index::NEW_NAME, true)?;
        if let Err(error) = files.disk.truncate(file, 0) {
            files.disk.close(file);
            return Err(error);
        }
        let expiries: Vec<(i64, u64)> = self.expiry.iter().collect();
        let (segments, subjects) = (self.segments.len(), self.subjects.len());
        self.upkeep.checkpoint = Some(Box::new(Checkpoint {
            file,
            at: 0,
            writer: Writer::new(&totals, segments, subjects, expiries.len()),
            segments: self.segments.iter().map(Segment::without_slots).collect(),
            has_subjects: true,
            expiries: expiries.into_iter(),
            encrypted: None,
        }));
        self.subjects.take_snapshot();
        self.upkeep.begin();
        self.continue_checkpoint()
    }

    /// Performs the next step of a checkpoint.
    pub(super) fn continue_checkpoint(&mut self) -> Result<(), DiskError> {
        let (Some(mut checkpoint), Some(files)) = (self.upkeep.checkpoint.take(), &mut self.files)
        else {
            return Ok(());
        };
        match checkpoint.step(&mut self.subjects, files) {
            Ok(true) => self.upkeep.phase = Phase::Written(checkpoint.file),
            Ok(false) => self.upkeep.checkpoint = Some(checkpoint),
            Err(error) => {
                self.upkeep.checkpoint = Some(checkpoint);
                self.abandon_checkpoint();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes a whole checkpoint at once.
    pub(super) fn write_checkpoint(&mut self) -> Result<(), DiskError> {
        self.abandon_checkpoint();
        self.begin_checkpoint()?;
        while self.upkeep.checkpoint.is_some() {
            self.continue_checkpoint()?;
        }
        Ok(())
    }

    /// Abandons an unfinished checkpoint. The previous checkpoint stays valid.
    pub(super) fn abandon_checkpoint(&mut self) {
        self.subjects.drop_snapshot();
        let (Some(checkpoint), Some(files)) = (self.upkeep.checkpoint.take(), &mut self.files)
        else {
            return;
        };
        files.disk.close(checkpoint.file);
        // The unfinished file has no effect, but takes space.
        let _ = files.disk.remove(index::NEW_NAME);
        self.upkeep.phase = Phase::Idle;
    }
}

impl Checkpoint {
    /// Writes the next part, and returns whether all is written.
    fn step(&mut self, subjects: &mut Subjects, files: &mut Files) -> Result<bool, DiskError> {
        if self.encrypted.is_none() {
            let is_all = self.encode(subjects);
            match (&mut files.encoding.cipher, is_all) {
                (None, _) => {
                    files
                        .disk
                        .write_at(self.file, self.at, self.writer.bytes())?;
                    self.at += self.writer.bytes().len() as u64;
                    self.writer.clear();
                    return Ok(is_all);
                }
                // A checkpoint is encrypted as a whole, so all of it must be encoded first.
                (Some(_), false) => return Ok(false),
                (Some(cipher), true) => {
                    self.encrypted = Some(cipher.encrypt_file(self.writer.bytes()));
                    self.writer.clear();
                }
            }
        }
        let encrypted = self.encrypted.as_deref().unwrap_or_default();
        let from = usize::try_from(self.at).unwrap_or(usize::MAX);
        let part = encrypted.get(from..).unwrap_or_default();
        let part = &part[..part.len().min(BYTES_PER_STEP)];
        files.disk.write_at(self.file, self.at, part)?;
        self.at += part.len() as u64;
        Ok(self.at >= encrypted.len() as u64)
    }

    /// Encodes the next part, and returns whether it was the last.
    fn encode(&mut self, subjects: &mut Subjects) -> bool {
        let writer = &mut self.writer;
        let end = writer.bytes().len() + BYTES_PER_STEP;
        while let Some(segment) = self.segments.pop_front() {
            writer.segment(&segment);
            if writer.bytes().len() >= end {
                return false;
            }
        }
        if self.has_subjects {
            let is_all = subjects.read_snapshot(SUBJECTS_PER_STEP, &mut |s| writer.subject(s));
            self.has_subjects = !is_all;
            if !is_all {
                return false;
            }
        }
        for (expires_at, sequence) in self.expiries.by_ref().take(SUBJECTS_PER_STEP) {
            writer.expiry(expires_at, sequence);
        }
        if self.expiries.len() == 0 {
            writer.finish();
            return true;
        }
        false
    }
}
