//! Numbers and lists of nodes as bytes, little endian.

use crate::port::NodeId;

/// Maximum number of nodes in a list of members.
const NODES_MAX: usize = 64;

pub(crate) fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

pub(crate) fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

pub(crate) fn take_slice<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Writes a list of nodes.
pub(crate) fn put_nodes(out: &mut Vec<u8>, nodes: impl ExactSizeIterator<Item = NodeId>) {
    put(out, nodes.len() as u64);
    nodes.for_each(|node| put(out, node));
}

/// Parses a list of nodes.
pub(crate) fn take_nodes<T: FromIterator<NodeId>>(bytes: &mut &[u8]) -> Option<T> {
    let count = usize::try_from(take(bytes)?).ok()?;
    let count = (count <= NODES_MAX).then_some(count)?;
    (0..count).map(|_| take(bytes)).collect()
}
