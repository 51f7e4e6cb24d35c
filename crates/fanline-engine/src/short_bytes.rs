//! Byte strings that are nearly always short: tokens, sids, and queue names.

/// Largest length that is stored without a heap allocation.
const INLINE_BYTES: usize = 22;

/// An owned byte string, stored inline up to 22 bytes.
#[derive(Clone)]
pub(crate) enum ShortBytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

impl ShortBytes {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            ShortBytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            ShortBytes::Heap(bytes) => bytes,
        }
    }
}

impl ShortBytes {
    /// Concatenates two parts.
    pub(crate) fn joined(a: &[u8], b: &[u8]) -> Self {
        let len = a.len() + b.len();
        match u8::try_from(len) {
            Ok(short) if len <= INLINE_BYTES => {
                let mut bytes = [0; INLINE_BYTES];
                bytes[..a.len()].copy_from_slice(a);
                bytes[a.len()..len].copy_from_slice(b);
                ShortBytes::Inline { len: short, bytes }
            }
            _ => ShortBytes::Heap([a, b].concat().into()),
        }
    }
}

impl From<&[u8]> for ShortBytes {
    fn from(source: &[u8]) -> Self {
        ShortBytes::joined(source, b"")
    }
}

impl PartialEq for ShortBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for ShortBytes {}

impl std::hash::Hash for ShortBytes {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl From<&ShortBytes> for ShortBytes {
    fn from(source: &ShortBytes) -> Self {
        source.clone()
    }
}

impl std::fmt::Debug for ShortBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().escape_ascii().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_on_both_sides_of_the_inline_limit() {
        for len in [0, 1, 21, 22, 23, 300] {
            let source: Vec<u8> = (0..len)
                .map(|i| b'a' + u8::try_from(i % 26).unwrap())
                .collect();
            assert_eq!(ShortBytes::from(&source[..]).as_slice(), &source[..]);
            let (a, b) = source.split_at(len / 3);
            assert_eq!(ShortBytes::joined(a, b).as_slice(), &source[..]);
        }
        assert_eq!(size_of::<ShortBytes>(), 24);
    }
}
