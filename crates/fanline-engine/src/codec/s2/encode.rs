//! Compression of blocks.

/// The effort of compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No compression, only the framing of a stream.
    Uncompressed,
    /// The least effort.
    #[default]
    Fast,
    /// Compares several candidates per position.
    Better,
    /// Compares many candidates per position, and also those of the next position.
    Best,
}

/// Shortest copy in bytes.
const COPY_BYTES_MIN: usize = 4;
/// Marks an empty table entry.
const NONE: u16 = u16::MAX;
/// Table size of a full block, as a power of two. A shorter block uses a smaller table, because the table is
/// cleared for each block.
const TABLE_BITS_MAX: u32 = 14;
const TABLE_BITS_MIN: u32 = 8;
/// After this many positions in a row without a copy, only every second position is tried; after twice as
/// many, every third.
const MISSES_TAKEN: usize = 32;

/// The search parameters of a level.
struct Effort {
    /// Number of candidates that are compared per position.
    tries: usize,
    /// Whether the next position is also searched, for a longer copy.
    is_lazy: bool,
}

impl Level {
    fn effort(self) -> Effort {
        let (tries, is_lazy) = match self {
            Level::Uncompressed => (0, false),
            Level::Fast => (1, false),
            Level::Better => (8, false),
            Level::Best => (64, true),
        };
        Effort { tries, is_lazy }
    }
}

/// A block compressor. Between blocks, it retains only its buffers.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// For each hash, the last position of four bytes with this hash.
    heads: Vec<u16>,
    /// For each position, the previous position with the same hash.
    previous: Vec<u16>,
    table_bits: u32,
}

#[derive(Clone, Copy)]
struct Copy {
    distance: usize,
    bytes: usize,
}

impl Encoder {
    /// Appends a compressed block. `input` has at most [`PACKED_BYTES_MAX`](super::PACKED_BYTES_MAX) bytes.
    pub(super) fn encode(&mut self, level: Level, input: &[u8], out: &mut Vec<u8>) {
        write_length(input.len(), out);
        let effort = level.effort();
        self.begin(input.len());
        let (mut at, mut written, mut misses) = (0, 0, 0);
        while at + COPY_BYTES_MIN <= input.len() {
            let Some(mut copy) = self.find(input, at, &effort) else {
                misses += 1;
                at += 1 + misses / MISSES_TAKEN;
                continue;
            };
            if effort.is_lazy
                && let Some(next) = self.find(input, at + 1, &effort)
                && next.bytes > copy.bytes + 1
            {
                copy = next;
                at += 1;
            }
            misses = 0;
            write_literal(&input[written..at], out);
            write_copy(copy, out);
            let end = at + copy.bytes;
            // At the lowest effort, only the end of the copy is recorded.
            let from = if effort.tries == 1 { end - 2 } else { at + 1 };
            for position in from..end {
                self.record(input, position);
            }
            (at, written) = (end, end);
        }
        write_literal(&input[written..], out);
    }

    fn begin(&mut self, input_bytes: usize) {
        let wanted = input_bytes.next_power_of_two().trailing_zeros();
        self.table_bits = wanted.clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
        let size = 1 << self.table_bits;
        self.heads.clear();
        self.heads.resize(size, NONE);
        if self.previous.len() < input_bytes {
            self.previous.resize(input_bytes, NONE);
        }
    }

    /// Returns the longest copy found for a position, and records the position.
    fn find(&mut self, input: &[u8], at: usize, effort: &Effort) -> Option<Copy> {
        let mut candidate = self.record(input, at)?;
        let mut best: Option<Copy> = None;
        for _ in 0..effort.tries {
            let position = usize::from(candidate);
            if candidate == NONE || position >= at {
                break;
            }
            let bytes = common_bytes(&input[position..], &input[at..]);
            if bytes >= COPY_BYTES_MIN && best.is_none_or(|best| bytes > best.bytes) {
                let distance = at - position;
                best = Some(Copy { distance, bytes });
            }
            candidate = self.previous[position];
        }
        best
    }

    /// Records a position. Returns the previous position with the same hash, or `None` if no copy can begin
    /// here.
    fn record(&mut self, input: &[u8], at: usize) -> Option<u16> {
        let four = input.get(at..)?.first_chunk::<COPY_BYTES_MIN>()?;
        let hash = u32::from_le_bytes(*four).wrapping_mul(0x9e37_79b1) >> (32 - self.table_bits);
        let head = self.heads.get_mut(usize::try_from(hash).ok()?)?;
        let position = u16::try_from(at).ok()?;
        // The lazy search of the previous position may have recorded this position already.
        if *head == position {
            return Some(self.previous[at]);
        }
        let before = std::mem::replace(head, position);
        self.previous[at] = before;
        Some(before)
    }
}

/// Returns the length of the common prefix.
fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    const WORD: usize = 8;
    let mut common = 0;
    for (one, other) in a.chunks_exact(WORD).zip(b.chunks_exact(WORD)) {
        let (mut left, mut right) = ([0; WORD], [0; WORD]);
        left.copy_from_slice(one);
        right.copy_from_slice(other);
        let differing = u64::from_le_bytes(left) ^ u64::from_le_bytes(right);
        if differing != 0 {
            return common + differing.trailing_zeros() as usize / 8;
        }
        common += WORD;
    }
    let rest = a[common..].iter().zip(&b[common..]);
    common + rest.take_while(|(one, other)| one == other).count()
}

fn write_length(bytes: usize, out: &mut Vec<u8>) {
    let mut left = bytes;
    loop {
        let [low, ..] = left.to_le_bytes();
        left >>= 7;
        match left {
            0 => return out.push(low & 0x7f),
            _ => out.push(low | 0x80),
        }
    }
}

fn write_literal(bytes: &[u8], out: &mut Vec<u8>) {
    let Some(less) = bytes.len().checked_sub(1) else {
        return;
    };
    let [a, b, c, _, ..] = less.to_le_bytes();
    match less {
        0..60 => out.push(a << 2),
        60..0x100 => out.extend_from_slice(&[60 << 2, a]),
        0x100..0x1_0000 => out.extend_from_slice(&[61 << 2, a, b]),
        _ => out.extend_from_slice(&[62 << 2, a, b, c]),
    }
    out.extend_from_slice(bytes);
}

/// Writes a copy. A copy of more than 64 bytes becomes a copy of 60 bytes, followed by an element that
/// repeats the distance for the other bytes.
fn write_copy(copy: Copy, out: &mut Vec<u8>) {
    const WHOLE_BYTES_MAX: usize = 64;
    const FIRST_BYTES: usize = 60;
    let Copy { distance, bytes } = copy;
    let first = if bytes > WHOLE_BYTES_MAX {
        FIRST_BYTES
    } else {
        bytes
    };
    let [low, high, ..] = distance.to_le_bytes();
    let [less, ..] = (first - 1).to_le_bytes();
    match first < 12 && distance < 2048 {
        true => out.extend_from_slice(&[(high << 5) | ((less - 3) << 2) | 1, low]),
        false => out.extend_from_slice(&[(less << 2) | 2, low, high]),
    }
    if bytes > first {
        write_repeat(bytes - first, out);
    }
}

/// Writes a copy of `bytes` bytes, at least 4, that uses the last distance again.
fn write_repeat(bytes: usize, out: &mut Vec<u8>) {
    let of = |base: usize| (bytes - base).to_le_bytes();
    match bytes {
        4..=8 => out.extend_from_slice(&[(of(4)[0] << 2) | 1, 0]),
        9..264 => out.extend_from_slice(&[(5 << 2) | 1, 0, of(8)[0]]),
        _ => out.extend_from_slice(&[(6 << 2) | 1, 0, of(260)[0], of(260)[1]]),
    }
}
