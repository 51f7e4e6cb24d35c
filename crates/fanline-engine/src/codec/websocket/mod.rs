//! WebSocket (RFC 6455) as a way to carry a connection's bytes: the upgrade, frames, compression
//! (RFC 7692) and close codes. Like the rest of the engine it is handed bytes and waits for nothing.
//!
//! What goes through a connection is one sequence of bytes: where messages and frames begin and
//! end in it has no meaning, in either direction.

mod client;
mod close;
mod deflate;
mod frame;
mod handshake;
mod unframe;

pub use client::{Answered, Asking};
pub use close::{close_code, close_frame};
pub use deflate::{Deflater, Inflated, Inflater};
pub use frame::{FrameHead, Opcode, control_frame, frame_head, mask_frame, unmask};
pub use handshake::{
    Asked, Compression, CookieNames, Origin, Refusal, UPGRADE_BYTES_MAX, Upgrade, UpgradeRules,
    upgrade,
};
pub use unframe::{CONTROL_BYTES_MAX, Event, Unframer, Wrong};

/// The most bytes of one message, after decompression: this many times the largest payload, but
/// not more than [`MESSAGE_BYTES_MAX`]. More: closed with 1009.
pub const MESSAGE_PAYLOADS_MAX: usize = 8;
/// The most bytes of one message, whatever the largest payload is.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Less than this is not worth compressing.
pub const COMPRESSED_BYTES_MIN: usize = 64;
/// The most bytes of a frame to a browser, which hands out frames only when they are whole.
pub const BROWSER_FRAME_BYTES_MAX: usize = 4096;

/// How long a message may be on a connection whose payloads may have this many bytes.
pub fn message_bytes_max(payload_bytes_max: usize) -> usize {
    payload_bytes_max
        .saturating_mul(MESSAGE_PAYLOADS_MAX)
        .min(MESSAGE_BYTES_MAX)
}
