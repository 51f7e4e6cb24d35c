//! Bytes as text, for logs and traces.

/// Returns the first line, with control characters replaced, so that bytes of a peer cannot control a
/// terminal.
pub(crate) fn first_line(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len());
    text(bytes[..end].trim_ascii_end()).replace(char::is_control, "\u{fffd}")
}

/// Returns bytes as text, with invalid UTF-8 replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
