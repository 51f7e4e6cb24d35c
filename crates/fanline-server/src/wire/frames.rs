//! WebSocket frames in both directions.

use std::io::{self, IoSlice};
use std::mem;
use std::task::{Context, Poll, ready};

use fanline_engine::codec::websocket::{
    BROWSER_FRAME_BYTES_MAX, COMPRESSED_BYTES_MIN, Compression, Deflater, Event, FrameHead,
    Inflater, Opcode, Unframer, Upgrade, Wrong, close_code, close_frame, control_frame, frame_head,
    mask_frame, message_bytes_max,
};
use fanline_engine::{CloseReason, Outbox};
use tokio::io::ReadBuf;

use super::{Below, Ended};
use crate::identity::random_u64;

/// Largest number of bytes that are compressed into one message.
const DEFLATED_BYTES_MAX: usize = 64 * 1024;
/// Largest frame to another server, in bytes. It is below the limit of any server.
const LEAF_FRAME_BYTES_MAX: usize = 64 * 1024;
/// Largest size of pending pongs in bytes.
const PONGS_BYTES_MAX: usize = 16 * 1024;
/// Size of one read in bytes if messages may be compressed.
const RAW_BYTES: usize = 16 * 1024;

/// The WebSocket framing of one connection.
pub(crate) struct Frames {
    unframer: Unframer,
    compression: Compression,
    frame_bytes_max: usize,
    message_bytes_max: usize,
    /// Whether this side masks its frames, like a client.
    masks: bool,
    /// Unparsed input, if messages may be compressed.
    raw: Vec<u8>,
    raw_at: usize,
    piece: Option<Piece>,
    inflater: Option<Box<Inflater>>,
    /// The reason why reading has ended.
    ended: Option<CloseReason>,
    end_is_reported: bool,
    /// The frame in progress: its header, the number of bytes of the header that are written, and the number
    /// of bytes of the outbox that belong to the frame and are not yet written.
    head: FrameHead,
    head_at: usize,
    frame_left: usize,
    /// The frame in progress if its payload is not in the outbox: a control frame, or a compressed copy of
    /// bytes of the outbox.
    separate_frame: Vec<u8>,
    separate_at: usize,
    separate_outbox_bytes: usize,
    /// Pending pong frames, in order.
    pongs: Vec<u8>,
    close_frame: Option<Vec<u8>>,
    close_is_sent: bool,
}

/// A part of a compressed message in `raw`.
#[derive(Clone, Copy)]
struct Piece {
    left: usize,
    ends_message: bool,
}

impl Frames {
    pub(crate) fn new(agreed: &Upgrade, payload_bytes_max: usize, early: Vec<u8>) -> Self {
        let message_bytes_max = message_bytes_max(payload_bytes_max);
        let is_deflate = agreed.compression == Compression::Deflate;
        let unframer = Unframer::new(agreed.is_masked, is_deflate, message_bytes_max);
        Frames {
            unframer: match agreed.is_mqtt {
                true => unframer.binary_only(),
                false => unframer,
            },
            compression: agreed.compression,
            frame_bytes_max: match (agreed.is_browser, agreed.is_leaf) {
                (_, true) => LEAF_FRAME_BYTES_MAX,
                (true, false) => BROWSER_FRAME_BYTES_MAX,
                (false, false) => usize::MAX,
            },
            message_bytes_max,
            masks: agreed.masks,
            raw: early,
            raw_at: 0,
            piece: None,
            inflater: None,
            ended: None,
            end_is_reported: false,
            head: FrameHead::default(),
            head_at: 0,
            frame_left: 0,
            separate_frame: Vec::new(),
            separate_at: 0,
            separate_outbox_bytes: 0,
            pongs: Vec::new(),
            close_frame: None,
            close_is_sent: false,
        }
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    pub(crate) fn has_pending_control(&self) -> bool {
        !self.pongs.is_empty() || !self.separate_frame.is_empty()
    }

    /// Queues a close frame with the reason, unless one was sent.
    pub(crate) fn queue_close(&mut self, reason: CloseReason) {
        if self.close_frame.is_none() && !self.close_is_sent {
            self.close_frame = Some(close_frame(close_code(reason), &reason.to_string()));
        }
    }

    /// Starts a frame if none is in progress and there is output.
    pub(crate) fn prepare(&mut self, out: &Outbox, deflater: &mut Deflater) {
        let is_busy = !self.separate_frame.is_empty() || self.frame_left > 0;
        if is_busy || self.close_is_sent {
            return;
        }
        if !self.pongs.is_empty() {
            self.separate_frame = mem::take(&mut self.pongs);
            return;
        }
        let bytes = out.pending_bytes().min(self.frame_bytes_max);
        if bytes == 0 {
            if let Some(close_frame) = self.close_frame.take() {
                self.begin_separate_frame(close_frame);
                self.close_is_sent = true;
            }
            return;
        }
        if self.compression == Compression::Deflate
            && bytes >= COMPRESSED_BYTES_MIN
            && self.compress(out, bytes.min(DEFLATED_BYTES_MAX), deflater)
        {
            return;
        }
        if self.masks {
            let mut frame = frame_head(Opcode::Binary, false, bytes).as_bytes().to_vec();
            out.slices(bytes)
                .for_each(|slice| frame.extend_from_slice(slice));
            self.begin_separate_frame(frame);
            self.separate_outbox_bytes = bytes;
            return;
        }
        self.head = frame_head(Opcode::Binary, false, bytes);
        self.head_at = 0;
        self.frame_left = bytes;
    }

    /// Compresses the first bytes of the outbox into one message. Returns false if that makes them no shorter.
    fn compress(&mut self, out: &Outbox, bytes: usize, deflater: &mut Deflater) -> bool {
        let mut body = Vec::with_capacity(bytes / 2);
        deflater.message(out.slices(bytes), &mut body);
        if body.len() >= bytes {
            return false;
        }
        let head = frame_head(Opcode::Binary, true, body.len());
        self.begin_separate_frame([head.as_bytes(), &body].concat());
        self.separate_outbox_bytes = bytes;
        true
    }

    /// Starts a frame that is not in the outbox.
    fn begin_separate_frame(&mut self, frame: Vec<u8>) {
        self.separate_frame = self.masked(frame);
    }

    /// Masks a frame if this side masks.
    fn masked(&self, mut frame: Vec<u8>) -> Vec<u8> {
        if self.masks {
            let [a, b, c, d, ..] = random_u64().to_le_bytes();
            mask_frame(&mut frame, [a, b, c, d]);
        }
        frame
    }

    /// Queues a pong. Too many pending pongs are replaced by the pong to the last ping (RFC 6455, section
    /// 5.5.3).
    fn answer_ping(&mut self, payload: &[u8]) {
        let pong = self.masked(control_frame(Opcode::Pong, payload));
        if self.pongs.len() + pong.len() > PONGS_BYTES_MAX {
            self.pongs.clear();
        }
        self.pongs.extend_from_slice(&pong);
    }

    /// Fills `parts` with the next bytes to write.
    pub(crate) fn parts<'a>(&'a self, out: &'a Outbox, parts: &mut [IoSlice<'a>]) -> usize {
        if !self.separate_frame.is_empty() {
            parts[0] = IoSlice::new(&self.separate_frame[self.separate_at..]);
            return 1;
        }
        if self.frame_left == 0 || out.is_empty() {
            return 0;
        }
        let head = &self.head.as_bytes()[self.head_at..];
        let from = usize::from(!head.is_empty());
        parts[0] = IoSlice::new(head);
        let slices = out.slices(self.frame_left);
        let scratch = parts[from..].iter_mut();
        let count = scratch
            .zip(slices)
            .map(|(part, slice)| *part = IoSlice::new(slice));
        from + count.count()
    }

    /// Counts bytes as written.
    pub(crate) fn advance(&mut self, out: &mut Outbox, written: usize) {
        if !self.separate_frame.is_empty() {
            self.separate_at += written;
            if self.separate_at >= self.separate_frame.len() {
                self.separate_frame = Vec::new();
                self.separate_at = 0;
                let outbox_bytes = mem::take(&mut self.separate_outbox_bytes);
                out.advance(outbox_bytes.min(out.pending_bytes()));
            }
            return;
        }
        let of_head = written.min(self.head.as_bytes().len() - self.head_at);
        self.head_at += of_head;
        let of_outbox = written - of_head;
        self.frame_left -= of_outbox;
        out.advance(of_outbox.min(out.pending_bytes()));
    }

    pub(crate) fn poll_read(
        &mut self,
        below: &mut Below<'_>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(reason) = self.ended {
            // Later reads only wait for the end of the stream.
            if mem::replace(&mut self.end_is_reported, true) {
                return below(context, buffer);
            }
            return Poll::Ready(Err(io::Error::other(Ended(reason))));
        }
        let before = buffer.filled().len();
        loop {
            let is_raw = self.compression == Compression::Deflate || !self.raw.is_empty();
            if is_raw && self.take_raw(buffer) {
                return Poll::Ready(Ok(()));
            }
            if let Some(reason) = self.ended {
                self.end_is_reported = true;
                return Poll::Ready(Err(io::Error::other(Ended(reason))));
            }
            if self.compression == Compression::Deflate {
                if !ready!(self.poll_raw(below, context))? {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            ready!(below(context, buffer))?;
            let end = buffer.filled().len();
            if end == before {
                return Poll::Ready(Ok(()));
            }
            let kept = self.unframe_in_place(&mut buffer.filled_mut()[before..]);
            buffer.set_filled(before + kept);
            if kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Moves the payload of all frames to the front. Returns its length.
    fn unframe_in_place(&mut self, bytes: &mut [u8]) -> usize {
        let (mut at, mut kept) = (0, 0);
        while at < bytes.len() && self.ended.is_none() {
            let (taken, event) = match self.unframer.next(&mut bytes[at..]) {
                Ok(next) => next,
                Err(wrong) => {
                    self.fail(wrong);
                    break;
                }
            };
            match event {
                Event::Data { range, .. } => {
                    let part = at + range.start..at + range.end;
                    kept += range.len();
                    bytes.copy_within(part, kept - range.len());
                }
                event => self.note(event),
            }
            at += taken;
        }
        kept
    }

    /// Reads input that may be compressed. Returns false at the end of the stream.
    fn poll_raw(
        &mut self,
        below: &mut Below<'_>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        self.raw.resize(RAW_BYTES, 0);
        let mut scratch = ReadBuf::new(&mut self.raw);
        let outcome = below(context, &mut scratch);
        let read = scratch.filled().len();
        self.raw.truncate(read);
        self.raw_at = 0;
        if outcome.is_pending() {
            self.raw = Vec::new();
        }
        outcome.map(|outcome| outcome.map(|()| read > 0))
    }

    /// Parses the input in `raw`. Returns whether there is payload for the session.
    fn take_raw(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let before = buffer.filled().len();
        while self.ended.is_none() && buffer.remaining() > 0 {
            if let Some(piece) = self.piece {
                if let Err(wrong) = self.inflate(piece, buffer) {
                    self.fail(wrong);
                }
                continue;
            }
            if self.raw_at == self.raw.len() {
                self.raw.clear();
                self.raw_at = 0;
                break;
            }
            let at = self.raw_at;
            // Uncompressed payload has to fit into `buffer`.
            let end = self.raw.len().min(at + buffer.remaining());
            match self.unframer.next(&mut self.raw[at..end]) {
                Ok((taken, event)) => {
                    self.raw_at += taken;
                    self.take_event(event, at, buffer);
                }
                Err(wrong) => self.fail(wrong),
            }
        }
        buffer.filled().len() > before
    }

    fn take_event(&mut self, event: Event, at: usize, buffer: &mut ReadBuf<'_>) {
        match event {
            Event::Data {
                range,
                is_compressed: true,
                ends_message,
            } => {
                // A frame without payload does not move the reading position.
                if !range.is_empty() {
                    self.raw_at = at + range.start;
                }
                self.piece = Some(Piece {
                    left: range.len(),
                    ends_message,
                });
            }
            Event::Data { range, .. } => {
                buffer.put_slice(&self.raw[at + range.start..at + range.end]);
            }
            event => self.note(event),
        }
    }

    /// Decompresses as much as fits into `buffer`.
    fn inflate(&mut self, piece: Piece, buffer: &mut ReadBuf<'_>) -> Result<(), Wrong> {
        let most = self.message_bytes_max;
        let inflater = self
            .inflater
            .get_or_insert_with(|| Box::new(Inflater::new(most)));
        let scratch = buffer.initialize_unfilled();
        if piece.left > 0 {
            let input = &self.raw[self.raw_at..self.raw_at + piece.left];
            let inflated = inflater.feed(input, scratch)?;
            self.raw_at += inflated.taken;
            self.piece = Some(Piece {
                left: piece.left - inflated.taken,
                ..piece
            });
            buffer.advance(inflated.written);
        } else if piece.ends_message {
            match inflater.finish(scratch)? {
                Some(written) => buffer.advance(written),
                None => {
                    self.piece = None;
                    self.inflater = None;
                }
            }
        } else {
            self.piece = None;
        }
        Ok(())
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Ping(payload) => self.answer_ping(&payload),
            Event::Close(payload) => {
                // The reply has the same code (RFC 6455, section 5.5.1).
                self.close_frame = Some(control_frame(Opcode::Close, &payload));
                self.ended = Some(CloseReason::ClientClosed);
            }
            Event::Data { .. } | Event::Pong | Event::Nothing => {}
        }
    }

    fn fail(&mut self, wrong: Wrong) {
        self.close_frame = Some(close_frame(wrong.code, &wrong.text));
        self.ended = Some(match wrong.code {
            1009 => CloseReason::MaximumPayloadExceeded,
            _ => CloseReason::ProtocolViolation,
        });
    }
}
