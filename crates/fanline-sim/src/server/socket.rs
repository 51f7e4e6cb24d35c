//! The bytes between one client and the server.

/// The two directions of a connection.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    /// Bytes that the client has written and the server has not read.
    pub(crate) to_server: Vec<u8>,
    /// Whether the client has closed its side.
    pub(crate) is_client_gone: bool,
    /// Bytes that the server has written and the client has not read.
    pub(crate) to_client: Vec<u8>,
    /// Whether the server has closed its side.
    pub(crate) is_server_gone: bool,
    /// Most bytes of `to_client`.
    pub(crate) room_bytes: usize,
}

impl Socket {
    /// Takes up to `bytes_max` of what the client has written.
    pub(crate) fn read_at_server(&mut self, bytes_max: usize) -> Vec<u8> {
        let length = bytes_max.min(self.to_server.len());
        self.to_server.drain(..length).collect()
    }

    /// Takes up to `bytes_max` of what the server has written.
    pub(crate) fn read_at_client(&mut self, bytes_max: usize) -> Vec<u8> {
        let length = bytes_max.min(self.to_client.len());
        self.to_client.drain(..length).collect()
    }

    /// Returns how many bytes the server can write now.
    pub(crate) fn room(&self) -> usize {
        self.room_bytes.saturating_sub(self.to_client.len())
    }
}
