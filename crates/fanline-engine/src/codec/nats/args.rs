//! Arguments after the subject in a message's first line, which are the same for all receivers.

/// Appends `[reply ][header_bytes ]total_bytes\r\n`.
pub(crate) fn write_args(out: &mut Vec<u8>, reply: &[u8], header_bytes: usize, total_bytes: usize) {
    if !reply.is_empty() {
        out.extend_from_slice(reply);
        out.push(b' ');
    }
    write_sizes(out, header_bytes, total_bytes);
}

/// Appends `[header_bytes ]total_bytes\r\n`.
pub(crate) fn write_sizes(out: &mut Vec<u8>, header_bytes: usize, total_bytes: usize) {
    let mut digits = itoa::Buffer::new();
    if header_bytes > 0 {
        out.extend_from_slice(digits.format(header_bytes).as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(digits.format(total_bytes).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_size_is_written_only_with_headers() {
        let check = |reply: &str, header_bytes, total_bytes, expected: &str| {
            let mut out = Vec::new();
            write_args(&mut out, reply.as_bytes(), header_bytes, total_bytes);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check("", 0, 0, "0\r\n");
        check("", 0, 1_048_576, "1048576\r\n");
        check("", 12, 17, "12 17\r\n");
        check("back.here", 0, 5, "back.here 5\r\n");
        check("back.here", 12, 12, "back.here 12 12\r\n");
    }
}
