//! Reason codes (2.4), and protocol violations of a peer.

/// A reason code of 5.0. 3.1.1 has fewer codes, in CONNACK and SUBACK only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(u8);

#[allow(missing_docs, reason = "named as in the table of section 2.4")]
impl Reason {
    pub const SUCCESS: Reason = Reason(0x00);
    pub const DISCONNECT_WITH_WILL: Reason = Reason(0x04);
    pub const NO_MATCHING_SUBSCRIBERS: Reason = Reason(0x10);
    pub const NO_SUBSCRIPTION_EXISTED: Reason = Reason(0x11);
    pub const UNSPECIFIED_ERROR: Reason = Reason(0x80);
    pub const MALFORMED_PACKET: Reason = Reason(0x81);
    pub const PROTOCOL_ERROR: Reason = Reason(0x82);
    pub const IMPLEMENTATION_SPECIFIC_ERROR: Reason = Reason(0x83);
    pub const UNSUPPORTED_PROTOCOL_VERSION: Reason = Reason(0x84);
    pub const CLIENT_ID_NOT_VALID: Reason = Reason(0x85);
    pub const BAD_USER_NAME_OR_PASSWORD: Reason = Reason(0x86);
    pub const NOT_AUTHORIZED: Reason = Reason(0x87);
    pub const SERVER_UNAVAILABLE: Reason = Reason(0x88);
    pub const SERVER_BUSY: Reason = Reason(0x89);
    pub const SERVER_SHUTTING_DOWN: Reason = Reason(0x8B);
    pub const BAD_AUTHENTICATION_METHOD: Reason = Reason(0x8C);
    pub const KEEP_ALIVE_TIMEOUT: Reason = Reason(0x8D);
    pub const SESSION_TAKEN_OVER: Reason = Reason(0x8E);
    pub const TOPIC_FILTER_INVALID: Reason = Reason(0x8F);
    pub const TOPIC_NAME_INVALID: Reason = Reason(0x90);
    pub const PACKET_ID_IN_USE: Reason = Reason(0x91);
    pub const PACKET_ID_NOT_FOUND: Reason = Reason(0x92);
    pub const RECEIVE_MAXIMUM_EXCEEDED: Reason = Reason(0x93);
    pub const TOPIC_ALIAS_INVALID: Reason = Reason(0x94);
    pub const PACKET_TOO_LARGE: Reason = Reason(0x95);
    pub const QUOTA_EXCEEDED: Reason = Reason(0x97);
    pub const ADMINISTRATIVE_ACTION: Reason = Reason(0x98);
    pub const PAYLOAD_FORMAT_INVALID: Reason = Reason(0x99);
    pub const QOS_NOT_SUPPORTED: Reason = Reason(0x9B);

    /// Wraps any byte that a peer may send.
    pub fn from_byte(byte: u8) -> Self {
        Reason(byte)
    }

    /// Returns the byte in a packet.
    pub fn byte(self) -> u8 {
        self.0
    }

    /// Returns whether the code reports a failure (2.4).
    pub fn is_failure(self) -> bool {
        self.0 >= 0x80
    }

    /// Returns the reason code of a granted QoS (3.9.3).
    pub fn granted(qos: super::Qos) -> Self {
        Reason(qos.bits())
    }

    /// Returns the return code for a CONNACK of 3.1.1 (3.2.2.3 of 3.1.1). A reason without its own return
    /// code becomes "server unavailable".
    pub fn connect_return_code(self) -> u8 {
        match self {
            Reason::SUCCESS => 0,
            Reason::UNSUPPORTED_PROTOCOL_VERSION => 1,
            Reason::CLIENT_ID_NOT_VALID => 2,
            // nats-server sends 5 after a wrong password too.
            Reason::NOT_AUTHORIZED
            | Reason::BAD_USER_NAME_OR_PASSWORD
            | Reason::BAD_AUTHENTICATION_METHOD
            | Reason::QOS_NOT_SUPPORTED => 5,
            _ => 3,
        }
    }
}

/// A protocol violation that ends the peer's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (0x{:02x})", .reason.byte())]
pub struct Wrong {
    /// The reason code in 5.0.
    pub reason: Reason,
    /// Description for the log and the reason string.
    pub message: &'static str,
}

impl Wrong {
    /// Creates the error for bytes that are no valid packet (1.2, "Malformed Packet").
    pub(super) const fn malformed(message: &'static str) -> Self {
        Wrong {
            reason: Reason::MALFORMED_PACKET,
            message,
        }
    }

    /// Creates the error for a valid packet that is not allowed in this form or at this time.
    pub(super) const fn protocol(message: &'static str) -> Self {
        Wrong {
            reason: Reason::PROTOCOL_ERROR,
            message,
        }
    }

    /// Creates an error with another reason code.
    pub(super) const fn because(reason: Reason, message: &'static str) -> Self {
        Wrong { reason, message }
    }
}
