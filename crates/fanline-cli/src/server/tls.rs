//! TLS options from flags, for `fanline serve` and the nats-server front end.

use std::path::PathBuf;

use fanline_server::{Certificate, ClientCertificates, TlsOptions};

/// TLS flags for NATS clients. Missing flags leave the configuration file's values unchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFlags {
    /// `Some(false)` disables TLS, even if other flags are set.
    pub(crate) is_on: Option<bool>,
    /// Whether clients need a certificate.
    pub(crate) verifies: Option<bool>,
    /// The certificate chain; requires the key.
    pub(crate) cert_file: Option<PathBuf>,
    /// The key; requires the chain.
    pub(crate) key_file: Option<PathBuf>,
    /// The authorities of client certificates.
    pub(crate) ca_file: Option<PathBuf>,
}

impl TlsFlags {
    /// Applies the flags on top of the file's options. With certificate files but no `--tls`, nats-server
    /// starts without TLS. Here, certificate files enable TLS, because a server with a certificate should not
    /// be unencrypted.
    ///
    /// # Errors
    ///
    /// Fails if the certificate or the key is missing. The error is nats-server's text.
    pub(crate) fn apply(&self, tls: &mut Option<TlsOptions>) -> Result<(), &'static str> {
        if self.is_on == Some(false) {
            *tls = None;
            return Ok(());
        }
        let names_files =
            self.cert_file.is_some() || self.key_file.is_some() || self.ca_file.is_some();
        if self.is_on.is_none() && self.verifies != Some(true) && !names_files && tls.is_none() {
            return Ok(());
        }
        let tls = tls.get_or_insert_default();
        match (&self.cert_file, &self.key_file) {
            (Some(cert_file), Some(key_file)) => {
                tls.certificates = vec![Certificate {
                    cert_file: cert_file.clone(),
                    key_file: key_file.clone(),
                }];
            }
            (Some(_), None) => return Err("TLS Server private key must be present and valid"),
            (None, Some(_)) => return Err("TLS Server certificate must be present and valid"),
            (None, None) if tls.certificates.is_empty() => {
                return Err("TLS Server certificate must be present and valid");
            }
            (None, None) => {}
        }
        if self.ca_file.is_some() {
            tls.ca_file.clone_from(&self.ca_file);
        }
        match self.verifies {
            Some(true) if !tls.client_certificates.is_required() => {
                tls.client_certificates = ClientCertificates::Required;
            }
            Some(false) => tls.client_certificates = ClientCertificates::NotAsked,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str) -> Certificate {
        Certificate {
            cert_file: format!("{name}.pem").into(),
            key_file: format!("{name}.key").into(),
        }
    }

    fn of_file() -> Option<TlsOptions> {
        Some(TlsOptions {
            certificates: vec![pair("file"), pair("second")],
            client_certificates: ClientCertificates::RequiredAndMapped,
            ..TlsOptions::default()
        })
    }

    #[test]
    fn flags_override_the_file() {
        let named = TlsFlags {
            cert_file: Some("flag.pem".into()),
            key_file: Some("flag.key".into()),
            ..TlsFlags::default()
        };
        let mut tls = None;
        named.apply(&mut tls).unwrap();
        assert_eq!(tls.unwrap().certificates, [pair("flag")]);
        let mut tls = of_file();
        named.apply(&mut tls).unwrap();
        let tls = tls.unwrap();
        assert_eq!(tls.certificates, [pair("flag")]);
        let mapped = ClientCertificates::RequiredAndMapped;
        assert_eq!(tls.client_certificates, mapped);
        for (verifies, expected) in [(true, mapped), (false, ClientCertificates::NotAsked)] {
            let flags = TlsFlags {
                verifies: Some(verifies),
                ..TlsFlags::default()
            };
            let mut tls = of_file();
            flags.apply(&mut tls).unwrap();
            assert_eq!(tls.unwrap().client_certificates, expected);
        }
        let off = TlsFlags {
            is_on: Some(false),
            ..named
        };
        let mut tls = of_file();
        off.apply(&mut tls).unwrap();
        assert_eq!(tls, None);
    }

    #[test]
    fn missing_flags_change_nothing() {
        for before in [None, of_file()] {
            let mut tls = before.clone();
            TlsFlags::default().apply(&mut tls).unwrap();
            assert_eq!(tls, before);
        }
    }

    #[test]
    fn certificate_needs_a_key() {
        let on = TlsFlags {
            is_on: Some(true),
            ..TlsFlags::default()
        };
        let verifies = TlsFlags {
            verifies: Some(true),
            ..TlsFlags::default()
        };
        let bare = TlsFlags {
            cert_file: Some("a.pem".into()),
            ..TlsFlags::default()
        };
        let key = TlsFlags {
            key_file: Some("a.key".into()),
            ..TlsFlags::default()
        };
        for (flags, missing) in [
            (on, "certificate"),
            (verifies, "certificate"),
            (bare, "private key"),
            (key, "certificate"),
        ] {
            let why = flags.apply(&mut None).unwrap_err();
            assert!(why.contains(missing), "{why}");
        }
    }
}
