//! The input is what a connection begins with.

use fanline_engine::codec::proxy::{PROXY_BYTES_MAX, Proxied, proxied};

/// A beginning is a header, none, or wrong; once that is known, more bytes do not change it, and it
/// is known after a bounded number of them.
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
