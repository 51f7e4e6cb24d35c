//! Verification of client certificates.
//!
//! Following RFC 5280, rustls rejects a certificate authority (CA) as a client. But a certificate from
//! `openssl req -x509` is a CA, and nats-server accepts it as a client if the file of authorities contains
//! it. So this verifier also accepts a certificate that is in that file, byte for byte. rustls checks
//! everything else: the validity, the usage, and the signature.

use std::sync::Arc;

use fanline_engine::auth::certificate::may_be_a_client;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// rustls's verifier, and the authorities that are accepted as clients.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    usual: Arc<dyn ClientCertVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl ClientVerifier {
    pub(super) fn new(
        usual: Arc<dyn ClientCertVerifier>,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Self {
        ClientVerifier { usual, authorities }
    }

    fn is_known_authority(&self, certificate: &CertificateDer<'_>) -> bool {
        let is_it = |known: &CertificateDer<'_>| known.as_ref() == certificate.as_ref();
        self.authorities.iter().any(is_it) && may_be_a_client(certificate)
    }
}

/// Returns whether a certificate was rejected because it is a certificate authority. rustls checks the
/// validity before this.
fn is_for_being_an_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else {
        return false;
    };
    other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

impl ClientCertVerifier for ClientVerifier {
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self
            .usual
            .verify_client_cert(end_entity, intermediates, now)
        {
            Err(error)
                if is_for_being_an_authority(&error) && self.is_known_authority(end_entity) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            // The issuer has the name of a known authority, and another key. Clients of nats-server expect the alert
            // for an unknown authority.
            Err(Error::InvalidCertificate(CertificateError::BadSignature)) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            decided => decided,
        }
    }

    fn offer_client_auth(&self) -> bool {
        self.usual.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.usual.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
