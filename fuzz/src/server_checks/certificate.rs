//! The first byte of the input determines the meaning of the rest:
//!
//! - `n`: lines that describe a certificate and the users of a server with `verify_and_map`. `e`, `d`, and `i` add
//!   an alternative name (email, DNS name, URI), `=` and an attribute's number begin a part of the subject, `+` and a
//!   number continue it, `t` is the expiry, `k` the extended key usage, and `u` a user.
//! - `p`: a PEM file, which the server uses as certificate, key, and authorities.
//! - `h`: an entry of `pinned_certs`.
//! - Otherwise the whole input is a certificate in DER.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fanline_server::auth::certificate::{
    CertificateNames, certificate_names, may_be_a_client, not_after,
};
use fanline_server::auth::{
    Access, AccessConfig, ConnectionKind, Credentials, Decision, Peer, TlsPeer, User,
};
use fanline_server::config::{ConfigError, Loaded, Source, load_over};

use super::certificate_naive::{self as naive, Description};

/// Checks that the reader agrees with a naive one on valid certificates, that a certificate identifies the same
/// user as a comparison with each of its names, and that invalid files and pins are refused with a reason.
pub fn check(data: &[u8]) {
    match data {
        [b'n', lines @ ..] => check_described(&String::from_utf8_lossy(lines)),
        [b'p', file @ ..] => check_file(file),
        [b'h', pin @ ..] => check_pin(&String::from_utf8_lossy(pin)),
        der => check_der(der),
    }
}

fn check_der(der: &[u8]) {
    let (names, until) = (certificate_names(der), not_after(der));
    if let Some(names) = &names {
        let key = der.get(names.public_key.clone());
        assert_eq!(key.and_then(<[u8]>::first), Some(&0x30), "{names:?}");
    }
    if let Some(until) = &until {
        assert_eq!(until.len(), "2026-12-22T17:01:38Z".len(), "{until}");
    }
    let is_client = may_be_a_client(der);
    // The reader may accept more, because the TLS layer has validated the certificate.
    if let Some(expected) = naive::read(der) {
        assert_eq!(names, Some(expected.names));
        assert_eq!(until, Some(expected.not_after));
        assert_eq!(is_client, expected.may_be_a_client);
        check_cuts(der, names.as_ref());
    }
}

/// Checks that a part of a certificate is refused, and that bytes after a certificate change nothing.
fn check_cuts(der: &[u8], names: Option<&CertificateNames>) {
    for end in [0, 1, der.len() / 2, der.len() - 1] {
        assert_eq!(certificate_names(&der[..end]), None, "{end} bytes");
    }
    assert_eq!(
        certificate_names(&[der, b"0\x02ab"].concat()).as_ref(),
        names
    );
}

fn check_described(lines: &str) {
    let mut description = Description::default();
    let mut users = Vec::new();
    for line in lines.lines().take(40) {
        match line.strip_prefix('u') {
            Some(user) if !users.contains(&user) => users.push(user),
            Some(_) => {}
            None => description.add(line),
        }
    }
    let der = description.to_der();
    let names = certificate_names(&der).expect("the certificate is valid");
    assert_eq!(
        (&names.emails, &names.dns_names),
        (&description.emails, &description.dns_names)
    );
    assert_eq!(
        (&names.uris, &names.subject),
        (&description.uris, &description.subject())
    );
    check_der(&der);
    assert!(naive::read(&der).is_some(), "the naive reader accepts it");
    check_mapping(names, &users);
}

/// Checks which user a certificate identifies.
fn check_mapping(names: CertificateNames, users: &[&str]) {
    let expected = expected_users(&names, users);
    let mut config = AccessConfig {
        certificate_kinds: vec![ConnectionKind::Standard],
        ..AccessConfig::default()
    };
    let account = config.account_mut("A");
    account.users = users.iter().map(|name| User::new(*name, "")).collect();
    // Without users, everybody is admitted.
    account
        .users
        .push(User::new("a user of no certificate", "pw"));
    let Ok(access) = Access::new(config) else {
        return;
    };
    let tls = TlsPeer {
        names: Some(names),
        ..TlsPeer::default()
    };
    let peer = Peer {
        tls: Some(Box::new(tls)),
        ..Peer::default()
    };
    match access.admit(&Credentials::default(), &peer) {
        Decision::Admitted(grant) => assert!(expected.contains(&&*grant.user), "{}", grant.user),
        Decision::Refused => assert!(expected.is_empty(), "one of {expected:?} is refused"),
        Decision::Later(check) => panic!("{check:?}"),
    }
}

/// Returns the users, one of which is identified: the first alternative name that is a user's, otherwise the
/// subject. Several users may have the same subject in different orders.
fn expected_users<'a>(names: &CertificateNames, users: &[&'a str]) -> Vec<&'a str> {
    let alternatives = [&names.emails, &names.dns_names, &names.uris];
    for name in alternatives.into_iter().flatten().chain([&names.subject]) {
        if let Some(user) = users.iter().find(|user| *user == name) {
            return vec![*user];
        }
    }
    let parts = naive::parts(&names.subject);
    let has_them = |user: &&&str| user.contains('=') && naive::parts(user) == parts;
    users.iter().filter(has_them).copied().collect()
}

/// A configuration, without other files.
struct Text(String);

const NAME: &str = "fuzz.conf";

impl Source for Text {
    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path == Path::new(NAME) {
            true => Ok(self.0.clone().into_bytes()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn load(text: String) -> Result<Loaded, ConfigError> {
    load_over(NAME.as_ref(), Loaded::default(), &Text(text))
}

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn with(content: &[u8]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fanline-certificate-{}-{number}.pem", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).expect("the folder of temporary files is writable");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn check_file(content: &[u8]) {
    let file = Scratch::with(content);
    let path = file.0.display().to_string();
    let text = format!(
        "tls {{ cert_file: \"{path}\", key_file: \"{path}\", ca_file: \"{path}\", verify: true }}"
    );
    let loaded = load(text).expect("the configuration is valid");
    match loaded.check_files() {
        Ok(()) => {
            // rustls does not read the subject, so the certificate may still be invalid.
            check_der(&naive::first_certificate(content).expect("a certificate in PEM"));
        }
        Err(ConfigError::Values(faults)) => {
            assert_eq!(faults.len(), 1, "{faults:?}");
            let reason = &faults[0].reason;
            let is_of_verifier = reason.starts_with("tls: client certificates: ");
            assert!(reason.contains(&path) || is_of_verifier, "{reason}");
        }
        Err(error) => panic!("{error}"),
    }
}

fn check_pin(pin: &str) {
    if pin.contains(['"', '\\', '\n', '\r', '\0']) {
        return;
    }
    let text = format!("tls {{ cert_file: \"a\", key_file: \"b\", pinned_certs: [\"{pin}\"] }}");
    let expected = naive::pin(pin);
    match load(text) {
        Ok(loaded) => {
            let tls = loaded.options.tls.expect("the block is there");
            let pins: Vec<[u8; 32]> = tls.pinned_certs.into_iter().collect();
            assert_eq!(Some(pins), expected.map(|pin| vec![pin]), "{pin:?}");
        }
        Err(error) => {
            assert_eq!(expected, None, "{error}");
            assert!(error.to_string().contains("pinned_certs"), "{error}");
        }
    }
}
