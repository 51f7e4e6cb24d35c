//! Writes lines of the route protocol: interest, and messages that are not forwarded in their received form.

use crate::codec::line::{write_head_end, write_interest_end, write_receivers};

/// Appends a line of interest; a weight of 0 withdraws it. An empty account is omitted, as on a dedicated
/// connection. `origin` is the cluster of the leaf nodes that have the interest; empty for other interest.
pub fn write_interest(
    out: &mut Vec<u8>,
    origin: &[u8],
    account: &[u8],
    (filter, queue): (&[u8], &[u8]),
    weight: u32,
) {
    out.push(if origin.is_empty() { b'R' } else { b'L' });
    out.extend_from_slice(if weight > 0 { b"S+ " } else { b"S- " });
    write_unless_empty(out, origin);
    write_unless_empty(out, account);
    write_interest_end(out, filter, queue, weight);
}

/// Appends the start of a message's line: the verb, the account unless it is empty, and the subject.
pub fn write_start(out: &mut Vec<u8>, account: &[u8], subject: &[u8], header_bytes: usize) {
    out.extend_from_slice(if header_bytes > 0 { b"HMSG " } else { b"RMSG " });
    write_unless_empty(out, account);
    out.extend_from_slice(subject);
    out.push(b' ');
}

/// Appends the line of a message that comes from a leaf node of the cluster `origin`. `groups` are separated by spaces.
pub fn write_leaf_head(
    out: &mut Vec<u8>,
    origin: &[u8],
    account: &[u8],
    (subject, reply): (&[u8], &[u8]),
    groups: &[u8],
    header_bytes: usize,
    total: usize,
) {
    out.extend_from_slice(b"LMSG ");
    out.extend_from_slice(origin);
    out.push(b' ');
    write_unless_empty(out, account);
    out.extend_from_slice(subject);
    out.push(b' ');
    write_receivers(out, reply, groups);
    // This verb has both sizes in any case.
    out.extend_from_slice(itoa::Buffer::new().format(header_bytes).as_bytes());
    out.push(b' ');
    out.extend_from_slice(itoa::Buffer::new().format(total).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a message's line. `groups` are separated by spaces.
pub fn write_head(
    out: &mut Vec<u8>,
    account: &[u8],
    subject: &[u8],
    reply: &[u8],
    groups: &[u8],
    header_bytes: usize,
    total: usize,
) {
    write_start(out, account, subject, header_bytes);
    write_head_end(out, reply, groups, header_bytes, total);
}

/// Returns the groups of a message that was passed on, for its line: the first name is repeated at the end as often as the
/// message was passed on. Each name is followed by a space.
pub fn passed_on(groups: &[u8], times: u8) -> Vec<u8> {
    let name_bytes = groups.iter().position(|b| *b == b' ');
    let first = &groups[..name_bytes.map_or(groups.len(), |at| at + 1)];
    [groups, &first.repeat(times.into())].concat()
}

fn write_unless_empty(out: &mut Vec<u8>, argument: &[u8]) {
    if !argument.is_empty() {
        out.extend_from_slice(argument);
        out.push(b' ');
    }
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
        check(
            &|out| write_interest(out, b"", b"A", (b"a", b""), 1),
            "RS+ A a\r\n",
        );
        check(
            &|out| write_interest(out, b"", b"A", (b"a", b""), 0),
            "RS- A a\r\n",
        );
        check(
            &|out| write_interest(out, b"", b"A", (b"a", b"q"), 3),
            "RS+ A a q 3\r\n",
        );
        check(
            &|out| write_interest(out, b"", b"A", (b"a", b"q"), 0),
            "RS- A a q\r\n",
        );
        check(
            &|out| write_interest(out, b"", b"", (b"a", b"q"), 3),
            "RS+ a q 3\r\n",
        );
        check(
            &|out| write_head(out, b"A", b"a", b"", b"", 0, 2),
            "RMSG A a 2\r\n",
        );
        check(
            &|out| write_head(out, b"", b"a", b"r", b"", 0, 2),
            "RMSG a r 2\r\n",
        );
        check(
            &|out| write_head(out, b"A", b"a", b"r", b"q1 q2 ", 0, 2),
            "RMSG A a + r q1 q2 2\r\n",
        );
        check(
            &|out| write_head(out, b"A", b"a", b"", b"q ", 18, 20),
            "HMSG A a | q 18 20\r\n",
        );
        check(
            &|out| write_interest(out, b"c", b"A", (b"a", b"q"), 3),
            "LS+ c A a q 3\r\n",
        );
        check(
            &|out| write_interest(out, b"c", b"", (b"a", b""), 0),
            "LS- c a\r\n",
        );
        check(
            &|out| write_leaf_head(out, b"c", b"A", (b"a", b""), b"", 0, 2),
            "LMSG c A a 0 2\r\n",
        );
        check(
            &|out| write_leaf_head(out, b"c", b"", (b"a", b"r"), b"q1 q2 ", 18, 20),
            "LMSG c a + r q1 q2 18 20\r\n",
        );
    }
}
