//! Cipher suites and curves by the names that configurations use.

use rustls::crypto::{SupportedKxGroup, ring as provider};
use rustls::{CipherSuite, SupportedCipherSuite};

use super::TlsError;

/// Returns the suite of this name.
pub(super) fn suite(name: &str) -> Result<SupportedCipherSuite, TlsError> {
    let mut all = provider::ALL_CIPHER_SUITES.iter();
    let wanted = name.to_ascii_uppercase();
    // `name` may be an older name without the hash.
    let with_hash = format!("{wanted}_SHA256");
    all.find(|suite| [&wanted, &with_hash].contains(&&suite_name(suite.suite())))
        .copied()
        .ok_or_else(|| TlsError::Option(format!("unrecognized cipher {name}")))
}

/// Returns the curve of this name.
pub(super) fn curve(name: &str) -> Result<&'static dyn SupportedKxGroup, TlsError> {
    match name.to_ascii_lowercase().as_str() {
        "x25519" => Ok(provider::kx_group::X25519),
        "curvep256" => Ok(provider::kx_group::SECP256R1),
        "curvep384" => Ok(provider::kx_group::SECP384R1),
        _ => Err(TlsError::Option(format!(
            "unrecognized curve preference {name}"
        ))),
    }
}

/// Returns the IANA name of a suite.
pub(super) fn suite_name(suite: CipherSuite) -> String {
    suite.as_str().map_or_else(
        || format!("{suite:?}"),
        |name| name.replace("TLS13_", "TLS_"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_and_curves_have_the_usual_names() {
        for name in [
            "TLS_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        ] {
            assert_eq!(suite_name(suite(name).unwrap().suite()), name);
        }
        assert!(suite("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305").is_ok());
        assert!(suite("TLS_RSA_WITH_RC4_128_SHA").is_err());
        assert!(curve("CurveP256").is_ok());
        assert!(curve("X25519").is_ok());
        assert!(curve("P999").is_err());
    }
}
