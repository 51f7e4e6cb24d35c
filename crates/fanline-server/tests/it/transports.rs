//! Common parts of TLS and WebSocket tests: certificates, and a peer that sends bytes and waits for expected
//! bytes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanline_server::{Certificate, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData as _, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::folder::TempFolder;
use crate::raw::WAIT_MAX;

/// An authority that writes signed certificates to a folder.
pub(crate) struct Authority {
    pub(crate) folder: TempFolder,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = TempFolder::new("authority");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let certificate = params.self_signed(&key).expect("a certificate");
        std::fs::write(folder.path("ca.pem"), certificate.pem()).expect("a file");
        let issuer = Issuer::new(params, key);
        Authority { folder, issuer }
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.path("ca.pem")
    }

    /// Returns a certificate for a host.
    pub(crate) fn host(&self, host: &str) -> Certificate {
        let params = CertificateParams::new(vec![host.to_owned()]).expect("a name");
        self.sign(host, params).0
    }

    /// Returns a certificate for a user, and the SHA-256 of its key.
    pub(crate) fn user(&self, name: &str) -> (Certificate, [u8; 32]) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let mail = format!("{name}@example.org");
        let mail = mail.try_into().expect("an address");
        params.subject_alt_names.push(SanType::Rfc822Name(mail));
        self.sign(name, params)
    }

    /// Returns a self-signed certificate for a user, as `openssl req -x509` creates it.
    pub(crate) fn own(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let certificate = params.self_signed(&key).expect("a certificate");
        let files = Certificate {
            cert_file: self.folder.path(&format!("{name}.pem")),
            key_file: self.folder.path(&format!("{name}.key")),
        };
        std::fs::write(&files.cert_file, certificate.pem()).expect("a file");
        std::fs::write(&files.key_file, key.serialize_pem()).expect("a file");
        files
    }

    fn sign(&self, name: &str, params: CertificateParams) -> (Certificate, [u8; 32]) {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let name = name.replace('*', "star");
        let files = Certificate {
            cert_file: self.folder.path(&format!("{name}.pem")),
            key_file: self.folder.path(&format!("{name}.key")),
        };
        std::fs::write(&files.cert_file, certificate.pem()).expect("a file");
        std::fs::write(&files.key_file, key.serialize_pem()).expect("a file");
        let hash = ring::digest::digest(&ring::digest::SHA256, &key.subject_public_key_info());
        let hash = hash.as_ref().try_into().expect("32 bytes");
        (files, hash)
    }

    /// Returns TLS options with a certificate for `localhost`.
    pub(crate) fn tls(&self) -> TlsOptions {
        TlsOptions {
            certificates: vec![self.host("localhost")],
            timeout: WAIT_MAX,
            ..TlsOptions::default()
        }
    }
}

/// TLS settings of a client.
pub(crate) struct TlsClient<'a> {
    pub(crate) ca: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) certificate: Option<&'a Certificate>,
    pub(crate) versions: Vec<&'static rustls::SupportedProtocolVersion>,
}

impl<'a> TlsClient<'a> {
    pub(crate) fn new(ca: &'a Path) -> Self {
        TlsClient {
            ca,
            name: "localhost",
            certificate: None,
            versions: rustls::ALL_VERSIONS.to_vec(),
        }
    }

    /// Wraps a stream. The handshake takes place at the first read or write.
    pub(crate) fn over<S: Read + Write>(&self, stream: S) -> StreamOwned<ClientConnection, S> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(self.ca).expect("a certificate");
        roots.add(ca).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .expect("versions")
            .with_root_certificates(roots);
        let config = match self.certificate {
            None => config.with_no_client_auth(),
            Some(files) => {
                let own = CertificateDer::from_pem_file(&files.cert_file).expect("a certificate");
                let key = PrivateKeyDer::from_pem_file(&files.key_file).expect("a key");
                let config = config.with_client_auth_cert(vec![own], key);
                config.expect("a certificate with its key")
            }
        };
        let name = ServerName::try_from(self.name.to_owned()).expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        StreamOwned::new(session, stream)
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    stream.set_write_timeout(Some(WAIT_MAX)).expect("a socket");
    stream
}

/// A peer that sends bytes, and waits for texts in the input.
pub(crate) struct ByteClient<S> {
    pub(crate) stream: S,
    pub(crate) received: Vec<u8>,
}

impl<S: Read + Write> ByteClient<S> {
    pub(crate) fn new(stream: S) -> Self {
        ByteClient {
            stream,
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("it reads");
        self.stream.flush().expect("it reads");
    }

    /// Consumes input up to and including a text.
    #[track_caller]
    pub(crate) fn read_until(&mut self, wanted: &str) -> String {
        let wanted = wanted.as_bytes();
        let mut scanned = 0;
        loop {
            let rest = &self.received[scanned..];
            if let Some(at) = rest.windows(wanted.len()).position(|w| w == wanted) {
                let taken: Vec<u8> = self.received.drain(..scanned + at + wanted.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            scanned = self.received.len().saturating_sub(wanted.len());
            let more = self.read_more().expect("there is more");
            assert!(
                more,
                "ended after {:?}",
                String::from_utf8_lossy(&self.received)
            );
        }
    }

    /// Returns all input until the end of the connection, including a reset.
    pub(crate) fn read_to_end(&mut self) -> String {
        while let Ok(true) = self.read_more() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.received)).into_owned()
    }

    /// Reads more input. Returns false at the end of the stream.
    fn read_more(&mut self) -> io::Result<bool> {
        let mut room = [0; 16 * 1024];
        let read = self.stream.read(&mut room)?;
        self.received.extend_from_slice(&room[..read]);
        Ok(read > 0)
    }

    /// Reads INFO, connects, and waits for the PONG. Returns the INFO.
    #[track_caller]
    pub(crate) fn greet(&mut self) -> String {
        let info = self.read_until("\r\n");
        assert!(info.starts_with("INFO {"), "{info}");
        self.connect();
        info
    }

    #[track_caller]
    pub(crate) fn connect(&mut self) {
        self.send("CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n");
        self.read_until("PONG\r\n");
    }
}
