//! Polling of many sockets, to find those that are readable.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use anyhow::{Result, bail};
use rustix::event::{Timespec, epoll};

use super::connection::STALL_LIMIT;

/// The sockets that one thread reads. A single socket blocks in its read. Several sockets share an epoll
/// instance.
pub(crate) struct Poller<'a> {
    streams: Vec<&'a TcpStream>,
    /// `None` for a single socket, which then needs no second system call.
    epoll: Option<OwnedFd>,
    events: Vec<epoll::Event>,
}

impl<'a> Poller<'a> {
    /// Creates a poller for the sockets. Several sockets become nonblocking.
    pub(crate) fn new(streams: Vec<&'a TcpStream>) -> Result<Self> {
        let mut ready_list = None;
        if streams.len() > 1 {
            let list = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            for (index, stream) in streams.iter().enumerate() {
                stream.set_nonblocking(true)?;
                let data = epoll::EventData::new_u64(index as u64);
                epoll::add(&list, stream, data, epoll::EventFlags::IN)?;
            }
            ready_list = Some(list);
        }
        Ok(Self {
            streams,
            epoll: ready_list,
            events: Vec::with_capacity(256),
        })
    }

    /// Waits, and stores the indices of readable sockets in `ready`.
    ///
    /// Fails if no socket becomes readable within [`STALL_LIMIT`]. For a single socket, the read fails
    /// instead.
    pub(crate) fn wait(&mut self, ready: &mut Vec<usize>) -> Result<()> {
        ready.clear();
        let Some(ready_list) = &self.epoll else {
            ready.push(0);
            return Ok(());
        };
        self.events.clear();
        let limit = Timespec::try_from(STALL_LIMIT)?;
        let room = rustix::buffer::spare_capacity(&mut self.events);
        epoll::wait(ready_list, room, Some(&limit))?;
        if self.events.is_empty() {
            bail!("no data for {} s", STALL_LIMIT.as_secs());
        }
        for event in &self.events {
            ready.push(usize::try_from(event.data.u64())?);
        }
        Ok(())
    }

    /// Reads from one of the sockets. Returns `None` if there was no data.
    pub(crate) fn read(&self, index: usize, buffer: &mut [u8]) -> Result<Option<usize>> {
        match (&mut self.stream(index)).read(buffer) {
            Ok(count) => Ok(Some(count)),
            // A blocking socket returns this error when its timeout is over.
            Err(error) if error.kind() == ErrorKind::WouldBlock => match self.epoll {
                Some(_) => Ok(None),
                None => bail!("no data for {} s", STALL_LIMIT.as_secs()),
            },
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn stream(&self, index: usize) -> &'a TcpStream {
        self.streams[index]
    }
}
