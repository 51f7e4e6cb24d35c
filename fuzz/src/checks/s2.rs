//! The first byte chooses the meaning of the rest. From 0 to 127, the rest is a stream without its header,
//! cut into chunks of that many bytes plus one. From 128 to 191, it is a compressed block. Otherwise it is
//! bytes to compress.

use fanline_engine::codec::s2::{BLOCK_BYTES_MAX, Level, Packer, S2Error, STREAM_HEAD, Unpacker};

/// Maximum number of decompressed bytes to read, because a few bytes can stand for very many.
const READ_BYTES_MAX: usize = 2 * BLOCK_BYTES_MAX;

/// Checks that a stream decompresses to the same bytes however it is cut, and that compressed bytes
/// decompress to the original.
pub fn check(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    match first {
        0..128 => {
            let stream = [&STREAM_HEAD[..], rest].concat();
            let whole = read(&stream, stream.len());
            assert_eq!(read(&stream, usize::from(first) + 1), whole);
        }
        128..192 => {
            let length = u32::try_from(rest.len() + 4).unwrap_or(0).to_le_bytes();
            let head = [0, length[0], length[1], length[2]];
            // The checksum is wrong, but this is found only when the whole block has been decompressed.
            let stream = [&STREAM_HEAD[..], &head, &[0; 4], rest].concat();
            let (found, fault) = read(&stream, stream.len());
            assert!(fault.is_some() || found.is_empty());
        }
        _ => {
            for level in [Level::Uncompressed, Level::Fast, Level::Better, Level::Best] {
                let mut stream = STREAM_HEAD.to_vec();
                Packer::default().pack(level, rest, &mut stream);
                assert_eq!(read(&stream, 1000), (rest.to_vec(), None));
            }
        }
    }
}

/// Returns the decompressed bytes, and the error if there was one.
fn read(stream: &[u8], step: usize) -> (Vec<u8>, Option<S2Error>) {
    let (mut unpacker, mut found) = (Unpacker::default(), Vec::new());
    let mut room = [0; 4096];
    for piece in stream.chunks(step) {
        unpacker.push(piece);
        loop {
            match unpacker.read(&mut room) {
                Ok(0) => break,
                Ok(read) => found.extend_from_slice(&room[..read]),
                Err(error) => return (found, Some(error)),
            }
            if found.len() >= READ_BYTES_MAX {
                return (found, None);
            }
        }
    }
    (found, None)
}
