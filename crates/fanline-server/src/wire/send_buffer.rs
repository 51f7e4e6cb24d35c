//! How much the system holds for a hub on this machine.

use std::io::IoSlice;

use super::Socket;
use super::socket::LOCAL_SEND_BUFFER_BYTES;

/// So much while messages are small: their publisher waits sooner, and the hub gets its share of the cores.
const SMALL_MESSAGES_BYTES: usize = 64 * 1024;

/// Less than this tells nothing of what flows.
const TELLING_BYTES: usize = 32 * 1024;

/// A send buffer that follows what is sent.
pub(crate) struct SendBuffer {
    bytes: usize,
}

impl SendBuffer {
    pub(crate) fn new() -> Self {
        SendBuffer {
            bytes: LOCAL_SEND_BUFFER_BYTES,
        }
    }

    /// Looks at what is about to be written: large bodies are parts of their own.
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
