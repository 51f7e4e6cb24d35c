//! Status messages of a consumer, which have headers and no payload.

use std::io::Write;

/// A status, as in the first line of a header block after `NATS/1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status<'a> {
    /// Heartbeat with the consumer's current position.
    IdleHeartbeat {
        consumer_sequence: u64,
        stream_sequence: u64,
        stalled: Option<&'a [u8]>,
    },
    /// Flow control request, which the subscriber must answer.
    FlowControlRequest,
    /// There are no records, and the request does not wait.
    NoMessages,
    /// The request has expired.
    RequestTimeout(Remaining),
    /// Earlier requests will receive all available records.
    RequestsPending,
    /// The next record is larger than the remaining bytes of the request.
    MessageSizeExceedsMaxBytes(Remaining),
    /// Too many requests wait.
    ExceededMaxWaiting,
    /// The request exceeds this maximum number of records.
    ExceededMaxRequestBatch(i64),
    /// The request exceeds the maximum waiting time, which the text contains.
    ExceededMaxRequestExpires(&'a str),
    /// The request exceeds this maximum number of bytes.
    ExceededMaxRequestMaxBytes(i64),
    /// The consumer was deleted.
    ConsumerDeleted,
    /// Another server delivers the consumer's records now.
    LeadershipChange,
    /// The server stops.
    ServerShutdown(Remaining),
    /// A pull request to a push consumer.
    ConsumerIsPushBased,
    /// The request is invalid, for this reason.
    BadRequest(&'a str),
    /// The request requires a newer API level.
    RequiredApiLevel,
    /// Another client is pinned.
    PinIdMismatch,
    /// The client of a waiting request is no longer pinned.
    WrongPinId(Remaining),
}

/// Records and bytes that a request has not received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Status<'_> {
    /// Writes the header block to `out`, replacing the content.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(b"NATS/1.0 ");
        // Writing to memory does not fail.
        let _ = self.write_line(out);
        out.extend_from_slice(b"\r\n");
        let _ = self.write_headers(out);
        out.extend_from_slice(b"\r\n");
    }

    fn write_line(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let text = match self {
            Status::IdleHeartbeat { .. } => "100 Idle Heartbeat",
            Status::FlowControlRequest => "100 FlowControl Request",
            Status::NoMessages => "404 No Messages",
            Status::RequestTimeout(_) => "408 Request Timeout",
            Status::RequestsPending => "408 Requests Pending",
            Status::MessageSizeExceedsMaxBytes(_) => "409 Message Size Exceeds MaxBytes",
            Status::ExceededMaxWaiting => "409 Exceeded MaxWaiting",
            Status::ExceededMaxRequestBatch(most) => {
                return write!(out, "409 Exceeded MaxRequestBatch of {most}");
            }
            Status::ExceededMaxRequestExpires(most) => {
                return write!(out, "409 Exceeded MaxRequestExpires of {most}");
            }
            Status::ExceededMaxRequestMaxBytes(most) => {
                return write!(out, "409 Exceeded MaxRequestMaxBytes of {most}");
            }
            Status::ConsumerDeleted => "409 Consumer Deleted",
            Status::LeadershipChange => "409 Leadership Change",
            Status::ServerShutdown(_) => "409 Server Shutdown",
            Status::ConsumerIsPushBased => "409 Consumer is push based",
            Status::BadRequest(why) => return write!(out, "400 Bad Request - {why}"),
            Status::RequiredApiLevel => "412 Required Api Level",
            Status::PinIdMismatch => "423 Nats-Pin-Id mismatch",
            Status::WrongPinId(_) => "423 Nats-Wrong-Pin-Id",
        };
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn write_headers(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Status::IdleHeartbeat {
                consumer_sequence,
                stream_sequence,
                stalled,
            } => {
                write!(
                    out,
                    "Nats-Last-Consumer: {consumer_sequence}\r\nNats-Last-Stream: {stream_sequence}\r\n"
                )?;
                if let Some(stalled) = stalled {
                    out.extend_from_slice(b"Nats-Consumer-Stalled: ");
                    out.extend_from_slice(stalled);
                    out.extend_from_slice(b"\r\n");
                }
                Ok(())
            }
            Status::RequestTimeout(remaining)
            | Status::ServerShutdown(remaining)
            | Status::MessageSizeExceedsMaxBytes(remaining)
            | Status::WrongPinId(remaining) => write!(
                out,
                "Nats-Pending-Messages: {}\r\nNats-Pending-Bytes: {}\r\n",
                remaining.messages, remaining.bytes
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Remaining = Remaining {
        messages: 5,
        bytes: 1,
    };

    /// Compares a status with the one that nats-server 2.15.2 sends.
    #[track_caller]
    fn check(status: Status<'_>, expected: &str) {
        let mut out = b"what was here before".to_vec();
        status.write(&mut out);
        let found = String::from_utf8(out).unwrap();
        assert_eq!(found.replace("\r\n", "|"), format!("NATS/1.0 {expected}||"));
    }

    #[test]
    fn statuses_without_headers_match_nats_server() {
        check(Status::FlowControlRequest, "100 FlowControl Request");
        check(Status::NoMessages, "404 No Messages");
        check(Status::RequestsPending, "408 Requests Pending");
        check(Status::ExceededMaxWaiting, "409 Exceeded MaxWaiting");
        check(
            Status::ExceededMaxRequestBatch(5),
            "409 Exceeded MaxRequestBatch of 5",
        );
        check(
            Status::ExceededMaxRequestExpires("5s"),
            "409 Exceeded MaxRequestExpires of 5s",
        );
        check(
            Status::ExceededMaxRequestMaxBytes(9),
            "409 Exceeded MaxRequestMaxBytes of 9",
        );
        check(Status::ConsumerDeleted, "409 Consumer Deleted");
        check(Status::LeadershipChange, "409 Leadership Change");
        check(Status::ConsumerIsPushBased, "409 Consumer is push based");
        check(
            Status::BadRequest("Priority Group missing"),
            "400 Bad Request - Priority Group missing",
        );
        check(Status::RequiredApiLevel, "412 Required Api Level");
        check(Status::PinIdMismatch, "423 Nats-Pin-Id mismatch");
    }

    #[test]
    fn statuses_with_headers_match_nats_server() {
        let remaining = "|Nats-Pending-Messages: 5|Nats-Pending-Bytes: 1";
        check(
            Status::RequestTimeout(LEFT),
            &format!("408 Request Timeout{remaining}"),
        );
        check(
            Status::ServerShutdown(LEFT),
            &format!("409 Server Shutdown{remaining}"),
        );
        let too_large = format!("409 Message Size Exceeds MaxBytes{remaining}");
        check(Status::MessageSizeExceedsMaxBytes(LEFT), &too_large);
        check(
            Status::WrongPinId(LEFT),
            &format!("423 Nats-Wrong-Pin-Id{remaining}"),
        );
        let beat = |stalled| Status::IdleHeartbeat {
            consumer_sequence: 7,
            stream_sequence: 9,
            stalled,
        };
        let expected = "100 Idle Heartbeat|Nats-Last-Consumer: 7|Nats-Last-Stream: 9";
        check(beat(None), expected);
        let stalled = format!("{expected}|Nats-Consumer-Stalled: $JS.FC.S.F.MzeF");
        check(beat(Some(b"$JS.FC.S.F.MzeF")), &stalled);
    }
}
