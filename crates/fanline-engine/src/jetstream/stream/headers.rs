//! Headers of a publish that a stream interprets.

use crate::headers::each;

/// Maximum length of a header block in bytes. It is limited because two bytes store the length.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024 - 1;

/// Headers of a publish that a stream interprets. Headers with an empty value are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PublishHeaders<'a> {
    pub(super) msg_id: Option<&'a [u8]>,
    pub(super) expected_stream: Option<&'a [u8]>,
    pub(super) expected_last_sequence: Option<&'a [u8]>,
    pub(super) expected_last_subject_sequence: Option<&'a [u8]>,
    pub(super) expected_last_subject: Option<&'a [u8]>,
    pub(super) expected_last_msg_id: Option<&'a [u8]>,
    pub(super) rollup: Option<&'a [u8]>,
    pub(super) ttl: Option<&'a [u8]>,
    pub(super) increment: Option<&'a [u8]>,
    pub(super) batch_id: Option<&'a [u8]>,
    pub(super) batch_sequence: Option<&'a [u8]>,
    pub(super) schedule: Option<&'a [u8]>,
    pub(super) schedule_target: Option<&'a [u8]>,
    pub(super) schedule_source: Option<&'a [u8]>,
    pub(super) schedule_ttl: Option<&'a [u8]>,
    pub(super) schedule_rollup: Option<&'a [u8]>,
    pub(super) schedule_time_zone: Option<&'a [u8]>,
    pub(super) schedule_next: Option<&'a [u8]>,
    pub(super) scheduler: Option<&'a [u8]>,
    pub(super) stream_source: Option<&'a [u8]>,
    /// Information on the publisher of a message from another account.
    pub(super) request_info: Option<&'a [u8]>,
}

/// The value for a message without headers.
pub(super) static NO_HEADERS: PublishHeaders<'static> = PublishHeaders {
    msg_id: None,
    expected_stream: None,
    expected_last_sequence: None,
    expected_last_subject_sequence: None,
    expected_last_subject: None,
    expected_last_msg_id: None,
    rollup: None,
    ttl: None,
    increment: None,
    batch_id: None,
    batch_sequence: None,
    schedule: None,
    schedule_target: None,
    schedule_source: None,
    schedule_ttl: None,
    schedule_rollup: None,
    schedule_time_zone: None,
    schedule_next: None,
    scheduler: None,
    stream_source: None,
    request_info: None,
};

impl<'a> PublishHeaders<'a> {
    /// Parses a block in one pass. If a header occurs several times, the first one counts.
    pub(super) fn parse(block: &'a [u8]) -> Self {
        let mut found = PublishHeaders::default();
        for (name, value) in each(block) {
            // Most headers are not for the stream.
            let Some(name) = name.strip_prefix(b"Nats-") else {
                continue;
            };
            if let Some(field) = found.field(name)
                && field.is_none()
                && !value.is_empty()
            {
                *field = Some(value);
            }
        }
        found
    }

    fn field(&mut self, name: &[u8]) -> Option<&mut Option<&'a [u8]>> {
        Some(match name {
            b"Msg-Id" => &mut self.msg_id,
            b"Expected-Stream" => &mut self.expected_stream,
            b"Expected-Last-Sequence" => &mut self.expected_last_sequence,
            b"Expected-Last-Subject-Sequence" => &mut self.expected_last_subject_sequence,
            b"Expected-Last-Subject-Sequence-Subject" => &mut self.expected_last_subject,
            b"Expected-Last-Msg-Id" => &mut self.expected_last_msg_id,
            b"Rollup" => &mut self.rollup,
            b"TTL" => &mut self.ttl,
            b"Incr" => &mut self.increment,
            b"Batch-Id" => &mut self.batch_id,
            b"Batch-Sequence" => &mut self.batch_sequence,
            b"Schedule" => &mut self.schedule,
            b"Schedule-Target" => &mut self.schedule_target,
            b"Schedule-Source" => &mut self.schedule_source,
            b"Schedule-TTL" => &mut self.schedule_ttl,
            b"Schedule-Rollup" => &mut self.schedule_rollup,
            b"Schedule-Time-Zone" => &mut self.schedule_time_zone,
            b"Schedule-Next" => &mut self.schedule_next,
            b"Scheduler" => &mut self.scheduler,
            b"Stream-Source" => &mut self.stream_source,
            b"Request-Info" => &mut self.request_info,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_finds_stream_headers() {
        let block =
            b"NATS/1.0\r\nNats-Msg-Id: 1\r\nMine: x\r\nNats-Msg-Id: 2\r\nnats-rollup: all\r\n\
            Nats-TTL:  5 \r\nNats-Expected-Stream:\r\nNats-Other: 9\r\nno colon\r\n\r\n";
        let expected = PublishHeaders {
            msg_id: Some(b"1"),
            ttl: Some(b"5 "),
            ..PublishHeaders::default()
        };
        assert_eq!(PublishHeaders::parse(block), expected);
    }

    #[test]
    fn parse_accepts_any_bytes() {
        for block in [
            &b""[..],
            b"NATS/1.0",
            b"NATS/1.0\r",
            b"\r\n\r\n",
            b"NATS/1.0\r\nA",
            b"x\r\n:\r\n",
        ] {
            assert_eq!(PublishHeaders::parse(block), PublishHeaders::default());
        }
    }
}
