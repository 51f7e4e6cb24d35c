//! Size of the send buffer for a hub on this machine.

use std::io::IoSlice;

use super::Socket;
use super::socket::LOCAL_SEND_BUFFER_BYTES;

/// The size while messages are small. Their publisher waits sooner, so that the hub gets its share of the
/// cores.
const SMALL_MESSAGES_BYTES: usize = 64 * 1024;

/// Writes below this size say nothing about the traffic.
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

    /// Adapts to the next write: large payloads are slices of their own.
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
