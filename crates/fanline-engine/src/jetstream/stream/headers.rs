//! The headers of a message: what they ask of a stream, and how a block of them is changed.

/// How long a block of headers may be, so that its length fits two bytes.
pub(super) const HEADER_BYTES_MAX: usize = 64 * 1024 - 1;

const FIRST_LINE: &[u8] = b"NATS/1.0\r\n";

/// What the headers of a publish ask of a stream. A header without a value asks for nothing.
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
    /// Who published it, of a message from another account.
    pub(super) request_info: Option<&'a [u8]>,
}

/// What a message without headers asks for.
pub(super) static NOTHING_ASKED: PublishHeaders<'static> = PublishHeaders {
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
    /// One pass over the block. The first of several headers of a name counts.
    pub(super) fn parse(block: &'a [u8]) -> Self {
        let mut found = PublishHeaders::default();
        for (name, value) in each(block) {
            // Nearly all headers are the publisher's own.
            let Some(name) = name.strip_prefix(b"Nats-") else {
                continue;
            };
            if let Some(place) = found.place(name)
                && place.is_none()
                && !value.is_empty()
            {
                *place = Some(value);
            }
        }
        found
    }

    fn place(&mut self, name: &[u8]) -> Option<&mut Option<&'a [u8]>> {
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

/// The headers of a block, in order: name and value, without the spaces before the value.
pub(super) fn each(block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(block).filter_map(|line| {
        let colon = line.iter().position(|b| *b == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii_start()))
    })
}

/// The first value of a name.
pub(super) fn find<'a>(block: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    each(block)
        .find(|(name, _)| *name == wanted)
        .map(|(_, value)| value)
}

/// The lines after the first one, without their ends.
fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = after_line(block);
    std::iter::from_fn(move || {
        let line = &rest[..line_bytes(rest)];
        rest = after_line(rest);
        (!line.is_empty()).then_some(line)
    })
}

fn line_bytes(block: &[u8]) -> usize {
    let end = block.iter().position(|b| *b == b'\r');
    end.unwrap_or(block.len())
}

fn after_line(block: &[u8]) -> &[u8] {
    block.get(line_bytes(block) + 2..).unwrap_or_default()
}

/// A block of headers that is being written, in a buffer that is used again and again.
pub(super) struct Block<'a>(&'a mut Vec<u8>);

impl<'a> Block<'a> {
    /// Begins with the headers of another block, those that `keep` says.
    pub(super) fn filtered(
        buffer: &'a mut Vec<u8>,
        block: &[u8],
        keep: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let begun = Block::from(buffer, b"");
        for line in lines(block) {
            let name = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            if keep(&line[..name]) {
                begun.0.extend_from_slice(line);
                begun.0.extend_from_slice(b"\r\n");
            }
        }
        begun
    }

    /// Begins with all headers of another block.
    pub(super) fn from(buffer: &'a mut Vec<u8>, block: &[u8]) -> Self {
        buffer.clear();
        match block.strip_suffix(b"\r\n") {
            Some(open) => buffer.extend_from_slice(open),
            None => buffer.extend_from_slice(FIRST_LINE),
        }
        Block(buffer)
    }

    /// Adds a header.
    pub(super) fn add(self, name: &str, value: &[u8]) -> Self {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b": ");
        self.0.extend_from_slice(value);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// Adds a header whose value is a number.
    pub(super) fn add_number(self, name: &str, value: u64) -> Self {
        let mut text = itoa::Buffer::new();
        self.add(name, text.format(value).as_bytes())
    }

    /// Ends the block.
    pub(super) fn end(self) -> &'a [u8] {
        self.0.extend_from_slice(b"\r\n");
        self.0
    }

    /// Ends the block; empty when no header is in it.
    pub(super) fn end_or_empty(self) -> &'a [u8] {
        if self.0 == FIRST_LINE {
            return b"";
        }
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_asked_of_a_stream() {
        let block =
            b"NATS/1.0\r\nNats-Msg-Id: 1\r\nMine: x\r\nNats-Msg-Id: 2\r\nnats-rollup: all\r\n\
            Nats-TTL:  5 \r\nNats-Expected-Stream:\r\nNats-Other: 9\r\nno colon\r\n\r\n";
        let expected = PublishHeaders {
            msg_id: Some(b"1"),
            ttl: Some(b"5 "),
            ..PublishHeaders::default()
        };
        assert_eq!(PublishHeaders::parse(block), expected);
        assert_eq!(find(block, b"Mine"), Some(&b"x"[..]));
        assert_eq!(find(block, b"mine"), None);
    }

    #[test]
    fn whatever_the_bytes_are_nothing_breaks() {
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

    #[test]
    fn blocks_are_changed() {
        let mut buffer = Vec::new();
        let block = b"NATS/1.0\r\nA: b\r\nNats-TTL: 1\r\n\r\n";
        assert_eq!(
            Block::from(&mut buffer, block).add_number("N", 7).end(),
            b"NATS/1.0\r\nA: b\r\nNats-TTL: 1\r\nN: 7\r\n\r\n"
        );
        let without = |buffer: &mut Vec<u8>, block: &[u8], name: &[u8]| {
            Block::filtered(buffer, block, |n| n != name)
                .end_or_empty()
                .to_vec()
        };
        assert_eq!(
            without(&mut buffer, block, b"Nats-TTL"),
            b"NATS/1.0\r\nA: b\r\n\r\n"
        );
        assert_eq!(without(&mut buffer, b"NATS/1.0\r\nA: b\r\n\r\n", b"A"), b"");
        assert_eq!(
            Block::from(&mut buffer, b"").add("A", b"b").end(),
            b"NATS/1.0\r\nA: b\r\n\r\n"
        );
    }
}
