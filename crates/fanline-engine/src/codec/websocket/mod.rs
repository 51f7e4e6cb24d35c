//! WebSocket (RFC 6455) as a transport: upgrade, frames, compression (RFC 7692), and close codes. Like the
//! rest of the engine, it works on bytes and never waits.
//!
//! A connection transports a sequence of bytes. The boundaries of messages and frames have no meaning in
//! either direction.

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

/// Largest size of a message after decompression, as a multiple of the largest payload; [`MESSAGE_BYTES_MAX`]
/// applies too. A connection with a larger message is closed with code 1009.
pub const MESSAGE_PAYLOADS_MAX: usize = 8;
/// Largest message in bytes, for any payload limit.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Smallest message in bytes that is worth compressing.
pub const COMPRESSED_BYTES_MIN: usize = 64;
/// Largest frame to a browser in bytes. Browsers deliver only complete frames.
pub const BROWSER_FRAME_BYTES_MAX: usize = 4096;

/// Returns the largest message in bytes, given the largest payload.
pub fn message_bytes_max(payload_bytes_max: usize) -> usize {
    payload_bytes_max
        .saturating_mul(MESSAGE_PAYLOADS_MAX)
        .min(MESSAGE_BYTES_MAX)
}
