//! Header blocks of NATS messages: `NATS/1.0` with or without a status, lines of `Name: value`, and an empty
//! line.

const VERSION: &[u8] = b"NATS/1.0";
const LINE_END: &[u8] = b"\r\n";

/// Returns the lines after the first one, without their ends.
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (_, mut rest) = split_line(block);
    std::iter::from_fn(move || {
        let (line, after) = split_line(rest);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the name and the value of each header, in order. Names are unchanged; values have no leading
/// spaces.
pub(crate) fn each(block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(block).filter_map(|line| {
        let colon = line.iter().position(|b| *b == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii_start()))
    })
}

/// Returns the name and the value of each header that is UTF-8. Values are trimmed on both sides.
pub(crate) fn each_text(block: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    each(block).filter_map(|(name, value)| {
        let value = std::str::from_utf8(value).ok()?.trim();
        Some((std::str::from_utf8(name).ok()?, value))
    })
}

/// Returns the first value of a name, which contains no colon. The name is case-sensitive.
pub(crate) fn find<'a>(block: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = |line: &'a [u8]| line.strip_prefix(name)?.strip_prefix(b":");
    lines(block).find_map(value).map(<[u8]>::trim_ascii_start)
}

/// Returns the first line, and all bytes after it. A line ends with CRLF; a single CR or LF does not end it,
/// as in nats-server.
fn split_line(block: &[u8]) -> (&[u8], &[u8]) {
    let mut from = 0;
    while let Some(at) = block[from..].iter().position(|b| *b == b'\r') {
        let end = from + at;
        if block.get(end + 1) == Some(&b'\n') {
            return (&block[..end], &block[end + 2..]);
        }
        from = end + 1;
    }
    (block, &[])
}

/// Writes the `503` status that reports to a requester that its subject has no subscriber.
pub(crate) fn no_responders_status<'a>(buffer: &'a mut Vec<u8>, subject: &[u8]) -> &'a [u8] {
    let block = Block::with_status(buffer, "503");
    block.add("Nats-Subject", subject).end()
}

/// Appends a header line.
pub(crate) fn write_line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, LINE_END] {
        out.extend_from_slice(part);
    }
}

/// Writer of a header block. It replaces the contents of its buffer.
pub(crate) struct Block<'a>(&'a mut Vec<u8>);

impl<'a> Block<'a> {
    /// Begins an empty block.
    pub(crate) fn new(buffer: &'a mut Vec<u8>) -> Self {
        Block::begin(buffer, VERSION)
    }

    /// Begins a block with a status such as `503` or `100 Idle Heartbeat`.
    pub(crate) fn with_status(buffer: &'a mut Vec<u8>, status: &str) -> Self {
        buffer.clear();
        for part in [VERSION, b" ", status.as_bytes(), LINE_END] {
            buffer.extend_from_slice(part);
        }
        Block(buffer)
    }

    /// Begins a block with the first line of another block.
    pub(crate) fn like(buffer: &'a mut Vec<u8>, block: &[u8]) -> Self {
        match split_line(block) {
            (b"", _) => Block::new(buffer),
            (first, _) => Block::begin(buffer, first),
        }
    }

    /// Begins a block with all headers of another block.
    pub(crate) fn from(buffer: &'a mut Vec<u8>, block: &[u8]) -> Self {
        match block.strip_suffix(LINE_END) {
            Some(open) if open.ends_with(LINE_END) => {
                buffer.clear();
                buffer.extend_from_slice(open);
                Block(buffer)
            }
            _ => Block::new(buffer),
        }
    }

    /// Begins a block with the headers of another block whose names `keep` accepts.
    pub(crate) fn filtered(
        buffer: &'a mut Vec<u8>,
        block: &[u8],
        keep: impl Fn(&[u8]) -> bool,
    ) -> Self {
        Block::like(buffer, block).copy(block, keep)
    }

    fn begin(buffer: &'a mut Vec<u8>, first_line: &[u8]) -> Self {
        buffer.clear();
        buffer.extend_from_slice(first_line);
        buffer.extend_from_slice(LINE_END);
        Block(buffer)
    }

    /// Adds the headers of another block whose names `keep` accepts.
    pub(crate) fn copy(self, block: &[u8], keep: impl Fn(&[u8]) -> bool) -> Self {
        for line in lines(block) {
            let name = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            if keep(&line[..name]) {
                self.0.extend_from_slice(line);
                self.0.extend_from_slice(LINE_END);
            }
        }
        self
    }

    /// Adds a header.
    pub(crate) fn add(self, name: &str, value: &[u8]) -> Self {
        write_line(self.0, name, value);
        self
    }

    /// Adds a header whose value is a number.
    pub(crate) fn add_number(self, name: &str, value: u64) -> Self {
        let mut text = itoa::Buffer::new();
        self.add(name, text.format(value).as_bytes())
    }

    /// Ends the block.
    pub(crate) fn end(self) -> &'a [u8] {
        self.0.extend_from_slice(LINE_END);
        self.0
    }

    /// Ends the block. Returns no bytes if the block has no header and no status.
    pub(crate) fn end_or_empty(self) -> &'a [u8] {
        if self.0.len() == VERSION.len() + LINE_END.len() {
            return b"";
        }
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_over_headers() {
        let block = b"NATS/1.0 503\r\nA:  b \r\nno colon\r\nC:\rd\n\r\nE:\xff\r\n\r\nF: g\r\n";
        let all: Vec<_> = each(block).collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"A", b"b "), (b"C", b"d\n"), (b"E", b"\xff")];
        assert_eq!(all, expected);
        assert!(each_text(block).eq([("A", "b"), ("C", "d")]));
        assert_eq!(find(block, b"C"), Some(&b"d\n"[..]));
        assert_eq!(find(block, b"c"), None);
        assert_eq!(lines(block).count(), 4);
    }

    #[test]
    fn survives_broken_blocks() {
        for block in [
            &b""[..],
            b"NATS/1.0",
            b"NATS/1.0\r",
            b"\r\n\r\n",
            b"NATS/1.0\r\nA",
            b"NATS/1.0\r\nA\r",
        ] {
            assert_eq!(each(block).count(), 0);
            let mut buffer = Vec::new();
            let added = Block::from(&mut buffer, block).add("A", b"b").end();
            assert_eq!(find(added, b"A"), Some(&b"b"[..]));
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
            without(&mut buffer, b"NATS/1.0 503\r\nA: b\r\n\r\n", b"A"),
            b"NATS/1.0 503\r\n\r\n"
        );
        assert_eq!(
            Block::from(&mut buffer, b"").add("A", b"b").end(),
            b"NATS/1.0\r\nA: b\r\n\r\n"
        );
        assert_eq!(
            Block::with_status(&mut buffer, "404 No").end(),
            b"NATS/1.0 404 No\r\n\r\n"
        );
    }
}
