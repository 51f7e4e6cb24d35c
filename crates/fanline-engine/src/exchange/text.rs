//! Bytes as text, for logs and traces.

/// A line as it may stand in a log: what a peer sends must not steer a terminal.
pub(crate) fn first_line(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len());
    text(bytes[..end].trim_ascii_end()).replace(char::is_control, "\u{fffd}")
}

/// Bytes as text; what is not UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
