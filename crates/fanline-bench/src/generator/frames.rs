//! The bytes of a run: published and expected frames. They are built before the run.

/// Number of bytes of one write of a publisher. Official clients flush at 32 to 64 KiB.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// A PING, which a server may send between two messages at any time.
pub(crate) const PING: &[u8] = b"PING\r\n";
/// The response to [`PING`], in both directions.
pub(crate) const PONG: &[u8] = b"PONG\r\n";

/// Returns a payload in which every byte differs from the byte six or twelve positions later. So inserted
/// bytes (such as a PING or PONG) are detected at any later position. The payload never looks like a protocol
/// verb.
pub(crate) fn payload(bytes: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(bytes).collect()
}

/// Returns the bytes that a publisher writes for one message.
pub(crate) fn publish(subject: &str, payload: &[u8]) -> Vec<u8> {
    message(&format!("PUB {subject}"), payload)
}

/// Returns the bytes that a publisher writes for one message with a reply subject.
pub(crate) fn request(subject: &str, reply: &str, payload: &[u8]) -> Vec<u8> {
    message(&format!("PUB {subject} {reply}"), payload)
}

/// Returns the bytes that a subscriber with subscription ID `sid` reads for one message.
pub(crate) fn delivery(subject: &str, sid: u32, payload: &[u8]) -> Vec<u8> {
    message(&format!("MSG {subject} {sid}"), payload)
}

/// Returns one message in the form that leaf nodes and their hubs exchange.
pub(crate) fn across_link(subject: &str, payload: &[u8]) -> Vec<u8> {
    message(&format!("LMSG {subject}"), payload)
}

/// Returns the bytes that a service with subscription ID `sid` reads for one request.
pub(crate) fn delivery_of_request(subject: &str, sid: u32, reply: &str, payload: &[u8]) -> Vec<u8> {
    message(&format!("MSG {subject} {sid} {reply}"), payload)
}

/// Returns as many whole copies of `frame` as fit into `chunk_bytes`, but at least one, and the number of
/// copies.
pub(crate) fn repeat_to(frame: &[u8], chunk_bytes: usize) -> (Vec<u8>, u64) {
    let copies = (chunk_bytes / frame.len()).max(1);
    (frame.repeat(copies), copies as u64)
}

fn message(head: &str, payload: &[u8]) -> Vec<u8> {
    let line = format!("{head} {}\r\n", payload.len());
    [line.as_bytes(), payload, b"\r\n"].concat()
}
