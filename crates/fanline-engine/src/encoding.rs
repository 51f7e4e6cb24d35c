//! How answers of the server are packed for whoever asks with the header `Accept-Encoding`.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The header of a request that says what may come back.
pub const ACCEPT_ENCODING: &str = "Accept-Encoding";
/// The header of an answer that says what did.
pub const CONTENT_ENCODING: &str = "Content-Encoding";

/// What can be made of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// gzip, as RFC 1952 has it.
    Gzip,
    /// As it is.
    Identity,
}

impl Encoding {
    /// What whoever takes this gets: what he does not get packed, he gets as it is.
    pub fn wanted(accepted: &str) -> Self {
        match accepted.to_ascii_lowercase().contains("gzip") {
            true => Encoding::Gzip,
            false => Encoding::Identity,
        }
    }

    /// Its name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Identity => "identity",
        }
    }

    /// Packs an answer.
    pub fn pack(self, body: Vec<u8>) -> Vec<u8> {
        match self {
            Encoding::Identity => body,
            Encoding::Gzip => {
                let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
                // Writing into memory cannot fail.
                let packed = packer.write_all(&body).and_then(|()| packer.finish());
                packed.unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn who_takes_it_gets_it_packed() {
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
