//! Size of the send buffer for a hub on this machine.

use std::io::IoSlice;

use super::Socket;
use super::socket::LOCAL_SEND_BUFFER_BYTES;

/// The buffer's size in bytes while messages are small. The publisher waits sooner than with a larger buffer,
/// so the hub gets its share of the cores.
const SMALL_MESSAGES_BYTES: usize = 64 * 1024;

/// Writes below this size in bytes do not change the buffer.
const TELLING_BYTES: usize = 32 * 1024;

/// A send buffer that adapts to the traffic.
pub(crate) struct SendBuffer {
    bytes: usize,
}

impl SendBuffer {
    pub(crate) fn new() -> Self {
        SendBuffer {
            bytes: LOCAL_SEND_BUFFER_BYTES,
        }
    }

    /// Adapts the buffer to the next write. Several slices mean large messages, because only a large payload
    /// is a slice of its own.
    pub(crate) fn follow(&mut self, parts: &[IoSlice<'_>], socket: &Socket) {
        let bytes = match parts {
            [] => return,
            [part] if part.len() < TELLING_BYTES => return,
            [_] => SMALL_MESSAGES_BYTES,
            _ => LOCAL_SEND_BUFFER_BYTES,
        };
        if bytes != self.bytes {
            self.bytes = bytes;
            socket.set_send_buffer(bytes);
        }
    }
}
