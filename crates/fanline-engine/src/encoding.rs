//! Compression of the server's responses for requests with the header `Accept-Encoding`.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Request header that lists the encodings that the requester accepts.
pub const ACCEPT_ENCODING: &str = "Accept-Encoding";
/// Response header that names the encoding of the body.
pub const CONTENT_ENCODING: &str = "Content-Encoding";

/// The encoding of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// gzip, RFC 1952.
    Gzip,
    /// Uncompressed.
    Identity,
}

impl Encoding {
    /// Returns the encoding for the value of an `Accept-Encoding` header: gzip if it is accepted, else
    /// identity.
    pub fn wanted(accepted: &str) -> Self {
        match accepted.to_ascii_lowercase().contains("gzip") {
            true => Encoding::Gzip,
            false => Encoding::Identity,
        }
    }

    /// Returns the encoding's name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Identity => "identity",
        }
    }

    /// Encodes a body.
    pub fn pack(self, body: Vec<u8>) -> Vec<u8> {
        match self {
            Encoding::Identity => body,
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                // Writing to memory cannot fail.
                (encoder.write_all(&body).and_then(|()| encoder.finish())).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn gzip_is_used_only_if_accepted() {
        for (accepted, name) in [
            ("gzip", "gzip"),
            ("GZIP", "gzip"),
            ("br, gzip", "gzip"),
            ("snappy", "identity"),
            ("", "identity"),
        ] {
            assert_eq!(Encoding::wanted(accepted).name(), name, "{accepted}");
        }
        let body = b"{\"a\":1}".repeat(100);
        assert_eq!(Encoding::Identity.pack(body.clone()), body);
        let packed = Encoding::Gzip.pack(body.clone());
        assert!(packed.len() < body.len());
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(&*packed);
        reader.read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, body);
    }
}
