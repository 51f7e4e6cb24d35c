//! The head of a segment's file, and the file's name.

use super::frame::{checksum, u32_at, u64_at};
use super::limits::{INDEX_MAX, SEGMENT_NUMBER_MAX};

/// Length of the area before the first frame. It has two copies of the head.
pub(super) const AREA_BYTES: usize = 1024;
/// Offsets of the copies: no sector has both.
const COPIES: [usize; 2] = [0, 512];
const BYTES: usize = 60;
const MAGIC: &[u8; 4] = b"FWal";
const VERSION: u16 = 1;
const SUFFIX: &str = ".wal";

/// The node whose log it is. Both numbers stay the same over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the cluster.
    pub cluster: u64,
    /// Number of the node in the cluster, not 0.
    pub node: u64,
}

/// The fields that all segments of a log have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub identity: Identity,
    /// Random number of this log: a log that was created again after a loss has another one.
    pub incarnation: u64,
    /// Secret seed of all checksums.
    pub salt: u32,
}

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub origin: Origin,
    pub number: u32,
    /// Position of its first frame.
    pub first: u64,
    /// Chain value before its first frame.
    pub chain: u32,
}

/// The reason for which a segment's head cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    Damaged,
    Version(u16),
}

impl SegmentHead {
    /// Returns the area before the first frame.
    pub(super) fn area(&self) -> [u8; AREA_BYTES] {
        let mut head = [0; BYTES];
        head[..4].copy_from_slice(MAGIC);
        head[4..6].copy_from_slice(&VERSION.to_le_bytes());
        head[8..12].copy_from_slice(&self.number.to_le_bytes());
        head[12..16].copy_from_slice(&self.origin.salt.to_le_bytes());
        head[16..24].copy_from_slice(&self.origin.identity.cluster.to_le_bytes());
        head[24..32].copy_from_slice(&self.origin.identity.node.to_le_bytes());
        head[32..40].copy_from_slice(&self.origin.incarnation.to_le_bytes());
        head[40..48].copy_from_slice(&self.first.to_le_bytes());
        head[48..52].copy_from_slice(&self.chain.to_le_bytes());
        let sum = checksum(0, &head[..BYTES - 4]);
        head[BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        let mut area = [0; AREA_BYTES];
        for at in COPIES {
            area[at..at + BYTES].copy_from_slice(&head);
        }
        area
    }

    /// Parses the beginning of a file. One intact copy suffices.
    pub(super) fn read(file: &[u8]) -> Result<Self, HeadError> {
        let copies = COPIES.map(|at| Self::read_copy(file.get(at..at + BYTES)?));
        let mut intact = copies.into_iter().flatten();
        intact.next().unwrap_or(Err(HeadError::Damaged))
    }

    fn read_copy(copy: &[u8]) -> Option<Result<Self, HeadError>> {
        let is_intact =
            copy.starts_with(MAGIC) && checksum(0, &copy[..BYTES - 4]) == u32_at(copy, BYTES - 4);
        let first = u64_at(copy, 40);
        if !is_intact || !(1..=INDEX_MAX).contains(&first) {
            return None;
        }
        let version = u16::from_le_bytes([copy[4], copy[5]]);
        if version != VERSION {
            return Some(Err(HeadError::Version(version)));
        }
        let identity = Identity {
            cluster: u64_at(copy, 16),
            node: u64_at(copy, 24),
        };
        Some(Ok(SegmentHead {
            origin: Origin {
                identity,
                incarnation: u64_at(copy, 32),
                salt: u32_at(copy, 12),
            },
            number: u32_at(copy, 8),
            first,
            chain: u32_at(copy, 48),
        }))
    }
}

/// Returns the name of a segment's file.
pub(super) fn file_name(number: u32) -> String {
    format!("{number:010}{SUFFIX}")
}

/// Returns the number of a segment's file, or `None` for another file.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(SUFFIX)?;
    let number = digits
        .parse()
        .ok()
        .filter(|number| *number <= SEGMENT_NUMBER_MAX)?;
    (file_name(number) == name).then_some(number)
}
