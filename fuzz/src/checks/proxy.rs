//! The input is the first bytes of a connection, which may be a PROXY header.

use fanline_engine::codec::proxy::{PROXY_BYTES_MAX, Proxied, proxied};

/// Checks that the first bytes are a header, no header, or invalid. The result must be known after a bounded
/// number of bytes, and must not change with more bytes.
pub fn check(data: &[u8]) {
    let whole = proxied(data);
    if let Proxied::Header { bytes, .. } = whole {
        assert!(bytes <= data.len() && bytes <= PROXY_BYTES_MAX);
    }
    assert!(whole != Proxied::Partial || data.len() < PROXY_BYTES_MAX);
    for end in 0..data.len().min(PROXY_BYTES_MAX) {
        let early = proxied(&data[..end]);
        assert!(
            early == Proxied::Partial || early == whole,
            "{early:?} {whole:?}"
        );
    }
}
