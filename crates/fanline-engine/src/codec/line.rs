//! Arguments of a line, as servers send them to each other.

use super::nats::args::write_sizes;

/// Returns the first argument, and the rest of the line. Both may be empty.
pub(super) fn first(line: &[u8]) -> (&[u8], &[u8]) {
    let from = line.iter().take_while(|b| is_blank(b)).count();
    let len = line[from..].iter().take_while(|b| !is_blank(b)).count();
    let rest = &line[from + len..];
    (&line[from..from + len], trim_start(rest))
}

/// Returns the part before the last argument, and the last argument.
pub(super) fn last(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii_end();
    let len = line.iter().rev().take_while(|b| !is_blank(b)).count();
    line.split_at(line.len() - len)
}

/// Returns the text of an `-ERR` without its quotes.
pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"'").unwrap_or(text);
    text.strip_suffix(b"'").unwrap_or(text)
}

/// Returns whether the input begins like one of these names, which are in lower case. Other input is refused
/// at once.
pub(super) fn may_be_any_of(names: &[&[u8]], input: &[u8]) -> bool {
    names.iter().any(|name| {
        let given = &input[..input.len().min(name.len())];
        given.eq_ignore_ascii_case(&name[..given.len()])
    })
}

/// Appends the end of a line of interest. Only a queue group has a weight, and a weight of 0 withdraws it.
pub(super) fn write_interest_end(out: &mut Vec<u8>, filter: &[u8], queue: &[u8], weight: u32) {
    out.extend_from_slice(filter);
    if !queue.is_empty() {
        out.push(b' ');
        out.extend_from_slice(queue);
        if weight > 0 {
            out.push(b' ');
            out.extend_from_slice(itoa::Buffer::new().format(weight).as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a message's line, after the subject. the groups are separated by spaces.
pub(super) fn write_head_end(
    out: &mut Vec<u8>,
    reply: &[u8],
    groups: &[u8],
    header_bytes: usize,
    total: usize,
) {
    write_receivers(out, reply, groups);
    write_sizes(out, header_bytes, total);
}

/// Appends the reply subject and the groups of a message, with their mark. The groups are separated by spaces.
pub(super) fn write_receivers(out: &mut Vec<u8>, reply: &[u8], groups: &[u8]) {
    let groups = groups.trim_ascii();
    if !groups.is_empty() {
        out.extend_from_slice(if reply.is_empty() { b"| " } else { b"+ " });
    }
    for part in [reply, groups] {
        if !part.is_empty() {
            out.extend_from_slice(part);
            out.push(b' ');
        }
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

fn trim_start(line: &[u8]) -> &[u8] {
    &line[line.iter().take_while(|b| is_blank(b)).count()..]
}
