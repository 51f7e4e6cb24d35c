//! Certificates and keys from PEM files, and their selection by host name.

use std::path::Path;
use std::sync::Arc;

use fanline_engine::auth::certificate::{certificate_names, not_after};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::TlsError;
use crate::options::Certificate;

/// The certificates of one listener, at least one.
#[derive(Debug)]
pub(super) struct Certificates(Vec<NamedCertificate>);

#[derive(Debug)]
struct NamedCertificate {
    key: Arc<CertifiedKey>,
    /// Host names, in lower case.
    names: Vec<String>,
}

impl Certificates {
    pub(super) fn read(files: &[Certificate], provider: &CryptoProvider) -> Result<Self, TlsError> {
        let certificates: Result<Vec<NamedCertificate>, TlsError> =
            files.iter().map(|files| read(files, provider)).collect();
        match certificates? {
            none if none.is_empty() => Err(TlsError::Option(
                "TLS needs a certificate and its key".into(),
            )),
            certificates => Ok(Certificates(certificates)),
        }
    }

    /// Returns the expiry of the first certificate.
    pub(super) fn not_after(&self) -> Option<String> {
        let first = self.0.first()?;
        not_after(first.key.cert.first()?)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let fits = |certificate: &&NamedCertificate| {
            let mut names = certificate.names.iter();
            name.as_ref()
                .is_some_and(|name| names.any(|known| matches(known, name)))
        };
        // Several certificates for one name may have keys of different kinds.
        let can_sign = |certificate: &&NamedCertificate| {
            let offered = hello.signature_schemes();
            certificate.key.key.choose_scheme(offered).is_some()
        };
        let best = self.0.iter().filter(fits).find(can_sign);
        best.or_else(|| self.0.iter().find(can_sign))
            .or_else(|| self.0.first())
            .map(|certificate| Arc::clone(&certificate.key))
    }
}

/// Returns whether a certificate's name, which may begin with `*.`, covers a host name.
fn matches(known: &str, name: &str) -> bool {
    known == name
        || known.strip_prefix("*.").is_some_and(|parent| {
            name.split_once('.')
                .is_some_and(|(first, rest)| !first.is_empty() && rest == parent)
        })
}

fn read(files: &Certificate, provider: &CryptoProvider) -> Result<NamedCertificate, TlsError> {
    let (chain, key) = read_chain_and_key(&files.cert_file, &files.key_file)?;
    let content = |what: String| TlsError::Content {
        path: files.key_file.clone(),
        what,
    };
    let names = chain
        .first()
        .and_then(|own| certificate_names(own))
        .map_or_else(Vec::new, |names| names.dns_names);
    let certified = CertifiedKey::from_der(chain, key, provider)
        .map_err(|error| content(format!("the key cannot be used: {error}")))?;
    Ok(NamedCertificate {
        key: Arc::new(certified),
        names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
    })
}

/// Reads a certificate chain, and a key in PKCS#8, SEC1, or PKCS#1.
pub(super) fn read_chain_and_key(
    chain: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let certificates = read_certificates(chain)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error))?;
    Ok((certificates, key))
}

/// Reads the certificates of a PEM file, at least one.
pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(path, error))?;
    let certificates: Result<Vec<_>, _> = found.collect();
    let certificates = certificates.map_err(|error| failed(path, error))?;
    match certificates.is_empty() {
        true => Err(failed(path, PemError::NoItemsFound)),
        false => Ok(certificates),
    }
}

fn failed(path: &Path, error: PemError) -> TlsError {
    match error {
        PemError::Io(source) => TlsError::File {
            path: path.into(),
            source,
        },
        PemError::NoItemsFound => TlsError::Content {
            path: path.into(),
            what: "no certificate or key is in it".into(),
        },
        error => TlsError::Content {
            path: path.into(),
            what: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_matches_one_label() {
        for (known, name, expected) in [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", "a.b.example", false),
            ("*.example", ".example", false),
        ] {
            assert_eq!(matches(known, name), expected, "{known} {name}");
        }
    }
}
