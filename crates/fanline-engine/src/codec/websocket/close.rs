//! Close codes of WebSocket connections (RFC 6455, section 7.4).

use super::frame::{Opcode, frame_head};
use crate::codec::nats::error::CloseReason;

/// Longest reason in a close frame in bytes, after the code.
const REASON_BYTES_MAX: usize = super::CONTROL_BYTES_MAX - 2;

/// Returns the close code that nats-server uses for a reason.
pub fn close_code(reason: CloseReason) -> u16 {
    match reason {
        CloseReason::ClientClosed => 1000,
        CloseReason::AuthenticationTimeout
        | CloseReason::AuthenticationExpired
        | CloseReason::AuthenticationFailure
        | CloseReason::CredentialsRevoked
        | CloseReason::ProxyRequired
        | CloseReason::ProxyNotTrusted
        | CloseReason::SlowConsumerPendingBytes
        | CloseReason::SlowConsumerWriteDeadline
        | CloseReason::MaximumConnectionsExceeded
        | CloseReason::MaximumAccountConnectionsExceeded
        | CloseReason::MaximumControlLineExceeded
        | CloseReason::MissingAccount => 1008,
        CloseReason::ParseError
        | CloseReason::ProtocolViolation
        | CloseReason::BadClientProtocolVersion
        | CloseReason::NoRespondersRequiresHeaders => 1002,
        CloseReason::MaximumPayloadExceeded => 1009,
        CloseReason::WriteError
        | CloseReason::ReadError
        | CloseReason::StaleConnection
        | CloseReason::DuplicateClientId
        | CloseReason::ServerShutdown => 1001,
        CloseReason::InternalError => 1011,
        #[allow(unreachable_patterns, reason = "reasons to come")]
        _ => 1011,
    }
}

/// Returns a close frame.
pub fn close_frame(code: u16, reason: &str) -> Vec<u8> {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = &reason[..end];
    let mut frame = frame_head(Opcode::Close, false, 2 + reason.len())
        .as_bytes()
        .to_vec();
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame
}

/// Returns whether a peer may send this code (RFC 6455, sections 7.4.1 and 7.4.2).
pub(super) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_frame_is_a_control_frame() {
        assert_eq!(close_frame(1000, "bye"), b"\x88\x05\x03\xe8bye");
        let long = "ä".repeat(100);
        let frame = close_frame(1011, &long);
        assert_eq!(frame.len(), 2 + 2 + 122);
        assert!(std::str::from_utf8(&frame[4..]).is_ok());
    }

    #[test]
    fn reserved_codes_must_not_be_sent() {
        for (code, expected) in [
            (999, false),
            (1000, true),
            (1004, false),
            (1005, false),
            (1006, false),
            (1011, true),
            (1015, false),
            (2999, false),
            (3000, true),
            (4999, true),
            (5000, false),
        ] {
            assert_eq!(may_be_sent(code), expected, "{code}");
        }
    }
}
