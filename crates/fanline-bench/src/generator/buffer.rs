//! The bytes of one socket that were read and not processed yet.

use std::io::Read;
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

pub(crate) struct Buffer<'a> {
    pub(crate) stream: &'a TcpStream,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl<'a> Buffer<'a> {
    /// Creates an empty buffer of `bytes` bytes, which is the size of the largest accepted message.
    pub(crate) fn new(stream: &'a TcpStream, bytes: usize) -> Self {
        Self {
            stream,
            bytes: vec![0; bytes],
            start: 0,
            end: 0,
        }
    }

    /// Performs one read, and blocks until there are bytes. The caller must have taken all complete messages
    /// before.
    pub(crate) fn read(&mut self) -> Result<()> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        ensure!(self.end < self.bytes.len(), "a message too large");
        let mut stream = self.stream;
        let read = stream.read(&mut self.bytes[self.end..]);
        let count = read.context("nothing more from the server")?;
        ensure!(count > 0, "the server closed the connection");
        self.end += count;
        Ok(())
    }

    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn take(&mut self, count: usize) -> &[u8] {
        let from = self.start;
        self.start += count;
        &self.bytes[from..self.start]
    }
}
