//! Writes lines of the leaf protocol: interest, and messages that are not forwarded in their received form.

use crate::codec::line::{write_head_end, write_interest_end};

/// Appends a line of interest; a weight of 0 withdraws it.
pub(crate) fn write_interest(out: &mut Vec<u8>, filter: &[u8], queue: &[u8], weight: u32) {
    out.extend_from_slice(if weight > 0 { b"LS+ " } else { b"LS- " });
    write_interest_end(out, filter, queue, weight);
}

/// Appends the start of a message's line: the verb and the subject.
pub(crate) fn write_start(out: &mut Vec<u8>, subject: &[u8], header_bytes: usize) {
    out.extend_from_slice(if header_bytes > 0 { b"HMSG " } else { b"LMSG " });
    out.extend_from_slice(subject);
    out.push(b' ');
}

/// Appends a message's line. `groups` are separated by spaces.
pub(crate) fn write_head(
    out: &mut Vec<u8>,
    subject: &[u8],
    reply: &[u8],
    groups: &[u8],
    header_bytes: usize,
    total: usize,
) {
    write_start(out, subject, header_bytes);
    write_head_end(out, reply, groups, header_bytes, total);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_nats_server_writes_them() {
        let check = |write: &dyn Fn(&mut Vec<u8>), expected: &str| {
            let mut out = Vec::new();
            write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(&|out| write_interest(out, b"a", b"", 1), "LS+ a\r\n");
        check(&|out| write_interest(out, b"a", b"", 0), "LS- a\r\n");
        check(&|out| write_interest(out, b"a", b"q", 3), "LS+ a q 3\r\n");
        check(&|out| write_interest(out, b"a", b"q", 0), "LS- a q\r\n");
        check(&|out| write_head(out, b"a", b"", b"", 0, 2), "LMSG a 2\r\n");
        check(
            &|out| write_head(out, b"a", b"r", b"", 0, 2),
            "LMSG a r 2\r\n",
        );
        check(
            &|out| write_head(out, b"a", b"r", b"q1 q2 ", 0, 2),
            "LMSG a + r q1 q2 2\r\n",
        );
        check(
            &|out| write_head(out, b"a", b"", b"q ", 18, 20),
            "HMSG a | q 18 20\r\n",
        );
    }
}
