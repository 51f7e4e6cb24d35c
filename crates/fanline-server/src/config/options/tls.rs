//! TLS: one block, used by several listeners.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::duration_text;
use crate::config::read::{Given, Read, go_duration};
use crate::config::table::Kind::{Any, Block, Blocks, Bool, Integer, Text, Texts};
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;
use crate::{Certificate, ClientCertificates, TlsHandshake, TlsOptions, TlsVersion};

/// Time that the server waits for a client to start TLS before it sends INFO (`handshake_first: auto`).
const HANDSHAKE_AUTO: Duration = Duration::from_millis(50);
/// Parts of the names of cipher suites that rustls does not implement.
const OLD_CIPHERS: [&str; 3] = ["_CBC_", "_RC4_", "_3DES_"];
const OTHER_CURVES: [&str; 4] = [
    "CurveP521",
    "X25519MLKEM768",
    "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024",
];
const INSECURE: &str = "insecure: without effect: Fanline checks the certificates of servers that it connects to; name \
     their authority in ca_file";
const WINDOWS: &str = "without effect: it is for certificate stores of Windows";

pub(super) const OPTIONS: &[super::Entry] = &[
    super::Entry::new(
        "tls",
        Block,
        |draft, given| set(&mut draft.loaded.options.tls, read(given).map(Some)),
        |draft| draft.loaded.options.tls.as_ref().map_or(Json::Null, show),
    )
    .block::<TlsBlock>()
    .flags("--tls, --tlscert, --tlskey, --tlscacert, --tlsverify")
    .default("off")
    .reloads()
    .help("TLS for NATS clients. A reload turns it on or off, changes it, and reads its files again, for new connections."),
    super::Entry::flag("allow_non_tls", |d| &mut d.loaded.options.allow_non_tls)
        .default("false")
        .reloads()
        .help("Clients may connect without TLS even if it is configured."),
];

/// Returns the warning about names that Fanline does not support.
fn left_out(field: &Given<'_>, is_other: fn(&str) -> bool) -> Option<String> {
    let mut names = field.texts().unwrap_or_default();
    names.retain(|name| is_other(name));
    (!names.is_empty()).then(|| {
        format!(
            "{}: ignored, because Fanline does not support them: {}",
            field.key,
            names.join(", ")
        )
    })
}

/// Returns whether nats-server supports this cipher suite and Fanline does not. These are suites with CBC,
/// RC4, or 3DES, and suites without forward secrecy.
fn is_other_suite(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("TLS_RSA_WITH_")
        || (name.starts_with("TLS_ECDHE_") && OLD_CIPHERS.iter().any(|old| name.contains(old)))
}

/// Returns whether nats-server supports this curve and Fanline does not.
fn is_other_curve(name: &str) -> bool {
    OTHER_CURVES
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other))
}

/// Returns whether nats-server accepts this cipher suite only with `allow_insecure_cipher_suites`.
fn is_insecure(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    is_other_suite(&name)
        && !(name.ends_with("_CBC_SHA") && name.contains("_AES_") && name.starts_with("TLS_ECDHE_"))
}

/// The block `tls`.
#[derive(Default)]
pub(super) struct TlsBlock {
    tls: TlsOptions,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    verify: bool,
    verify_and_map: bool,
    allows_insecure: bool,
}

impl table::Block for TlsBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::path("cert_file", |block| &mut block.cert_file)
            .shown_elsewhere()
            .help("The server's certificate chain (PEM)."),
        Entry::<Self>::path("key_file", |block| &mut block.key_file)
            .shown_elsewhere()
            .help("Key of the certificate (PEM)."),
        Entry::<Self>::new(
            "certs",
            Blocks,
            |block, given| {
                let pairs: Read<Vec<_>> = given.items()?.iter().map(certificate).collect();
                set(&mut block.tls.certificates, pairs)
            },
            |block| block.tls.certificates.iter().map(show_certificate).collect(),
        )
        .alias(&["certificates"])
        .block::<Pair>()
        .help("Several certificates, selected by the client's SNI."),
        Entry::<Self>::path("ca_file", |block| &mut block.tls.ca_file)
            .help("Authorities of client certificates (PEM)."),
        Entry::<Self>::flag("verify", |block| &mut block.verify)
            .default("false")
            .help("Clients need a valid certificate."),
        Entry::<Self>::flag("verify_and_map", |block| &mut block.verify_and_map)
            .default("false")
            .help("Require client certificates, and take the user from them."),
        Entry::<Self>::new(
            "timeout",
            Any,
            |block, given| set(&mut block.tls.timeout, timeout(given)),
            |block| duration_text(block.tls.timeout),
        )
        .default("2s")
        .help("Time limit of a handshake: seconds or a duration."),
        Entry::<Self>::new(
            "min_version",
            Text,
            |block, given| {
                block.tls.min_version = match given.text()? {
                    "1.2" => TlsVersion::V1_2,
                    "1.3" => TlsVersion::V1_3,
                    other => {
                        return Err(given.fault(format!("unsupported minimum TLS version: {other}")));
                    }
                };
                Ok(())
            },
            |block| match block.tls.min_version {
                TlsVersion::V1_2 => json!("1.2"),
                TlsVersion::V1_3 => json!("1.3"),
            },
        )
        .default("1.2")
        .limit("1.2, 1.3")
        .help("The oldest supported version."),
        Entry::<Self>::new(
            "cipher_suites",
            Texts,
            |block, given| set(&mut block.tls.cipher_suites, names(given)),
            |block| json!(block.tls.cipher_suites),
        )
        .warns(|given, _| left_out(given, is_other_suite))
        .help("Cipher suites by name, best first. Suites of nats-server that Fanline does not support are ignored with a warning; at least one must remain."),
        Entry::<Self>::new(
            "curve_preferences",
            Texts,
            |block, given| {
                let curves = names(given).map(|names| remaining(names, is_other_curve));
                set(&mut block.tls.curve_preferences, curves)
            },
            |block| json!(block.tls.curve_preferences),
        )
        .warns(|given, _| left_out(given, is_other_curve))
        .help("Curves by name, best first; like `cipher_suites`."),
        Entry::<Self>::new(
            "pinned_certs",
            Texts,
            |block, given| {
                let pins: Read<_> = given.items()?.iter().map(pin).collect();
                set(&mut block.tls.pinned_certs, pins)
            },
            |block| block.tls.pinned_certs.iter().map(show_pin).collect(),
        )
        .limit("64 hexadecimal digits each")
        .help("SHA-256 of the keys of accepted client certificates."),
        Entry::<Self>::new(
            "handshake_first",
            Any,
            |block, given| set(&mut block.tls.handshake, handshake(given)),
            |block| match block.tls.handshake {
                TlsHandshake::AfterInfo => json!(false),
                TlsHandshake::First => json!(true),
                TlsHandshake::FirstWithin(time) => duration_text(time),
            },
        )
        .alias(&["first", "immediate"])
        .default("false")
        .limit("a boolean, `auto`, `auto_fallback` or a duration")
        .help("Whether the handshake precedes INFO."),
        Entry::<Self>::new(
            "connection_rate_limit",
            Integer,
            |block, given| {
                block.tls.connection_rate_limit = match given.integer()? {
                    ..=0 => None,
                    _ => Some(given.count()?),
                };
                Ok(())
            },
            |block| json!(block.tls.connection_rate_limit),
        )
        .help("Handshakes started in one second."),
        Entry::ignored("insecure", Bool)
            .warns(|given, is_dialer| {
                (is_dialer && given.boolean().unwrap_or(false)).then(|| INSECURE.into())
            })
            .default("false")
            .help(
                "Without effect: Fanline verifies the certificate of every server that it connects to. Name the \
                 authority in `ca_file`.",
            ),
        Entry::<Self>::flag("allow_insecure_cipher_suites", |block| &mut block.allows_insecure)
            .shown_elsewhere()
            .default("false")
            .help("Permits insecure cipher suites. Fanline has none, so they are ignored."),
        Entry::<Self>::flag("verify_cert_and_check_known_urls", |block| {
            &mut block.tls.checks_known_urls
        })
        .default("false")
        .help(
            "Of routes only: a certificate for a host name among `routes` authorizes another server, instead of user \
             name and password.",
        ),
        Entry::refused("ocsp_peer", Any, "OCSP is not supported by Fanline")
            .help("Whether client certificates were revoked."),
        Entry::refused("cert_store", Text, "it is for Windows")
            .help("Certificate store of Windows."),
        Entry::refused("cert_match_by", Text, "it is for Windows").help("Certificate store of Windows."),
        Entry::warned("cert_match", Text, WINDOWS).help("Certificate store of Windows."),
        Entry::warned("cert_match_skip_invalid", Bool, WINDOWS).help("Certificate store of Windows."),
        Entry::warned("ca_certs_match", Texts, WINDOWS).help("Certificate store of Windows."),
    ];
}

/// Reads a block `tls` of another listener than that for routes.
pub(super) fn read(given: &Given<'_>) -> Read<TlsOptions> {
    let tls = read_of_routes(given)?;
    if tls.checks_known_urls {
        let reason = "verify_cert_and_check_known_urls not supported in this context";
        return Err(given.fault(reason));
    }
    Ok(tls)
}

/// Reads a block `tls` of routes.
pub(super) fn read_of_routes(given: &Given<'_>) -> Read<TlsOptions> {
    let block = table::read(TlsBlock::default(), given)?;
    let mut tls = block.tls;
    tls.client_certificates = match (block.verify_and_map, block.verify) {
        (true, _) => ClientCertificates::RequiredAndMapped,
        (false, true) => ClientCertificates::Required,
        (false, false) => ClientCertificates::NotAsked,
    };
    tls.cipher_suites = cipher_suites(given, tls.cipher_suites, block.allows_insecure)?;
    if block.cert_file.is_some() && !tls.certificates.is_empty() {
        let reason =
            "error parsing tls config, cannot combine 'cert_file' option with 'certs' option";
        return Err(given.fault(reason));
    }
    let own = own_pair(given, block.cert_file, block.key_file)?;
    tls.certificates.extend(own);
    Ok(tls)
}

/// Returns a block `tls` as JSON.
pub(super) fn show(tls: &TlsOptions) -> Json {
    table::show(TlsBlock {
        verify: tls.client_certificates.is_required(),
        verify_and_map: tls.client_certificates == ClientCertificates::RequiredAndMapped,
        tls: tls.clone(),
        ..TlsBlock::default()
    })
}

/// Returns the certificate and key named in the block itself.
fn own_pair(
    given: &Given<'_>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
) -> Read<Option<Certificate>> {
    match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Ok(Some(Certificate {
            cert_file,
            key_file,
        })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(given.fault("missing 'cert_file' in TLS configuration")),
        (Some(_), None) => Err(given.fault("missing 'key_file' in TLS configuration")),
    }
}

/// Returns the named cipher suites without those that Fanline does not support.
fn cipher_suites(
    given: &Given<'_>,
    names: Vec<String>,
    allows_insecure: bool,
) -> Read<Vec<String>> {
    match names.iter().find(|name| is_insecure(name)) {
        Some(name) if !allows_insecure => Err(given.fault(format!(
            "insecure cipher suites configured without 'allow_insecure_cipher_suites' option set: {name}"
        ))),
        _ => Ok(remaining(names, is_other_suite)),
    }
}

/// Removes unsupported names. Returns the whole list if no name would remain, because an empty list allows
/// everything.
fn remaining(names: Vec<String>, is_other: fn(&str) -> bool) -> Vec<String> {
    let known: Vec<String> = names
        .iter()
        .filter(|name| !is_other(name))
        .cloned()
        .collect();
    if known.is_empty() { names } else { known }
}

/// Reads a list of names, which must not be empty, as in nats-server.
fn names(field: &Given<'_>) -> Read<Vec<String>> {
    let names = field.texts()?;
    match names.is_empty() {
        false => Ok(names),
        true => {
            let reason = format!("error parsing tls config, '{}' cannot be empty", field.key);
            Err(field.fault(reason))
        }
    }
}

/// An entry of `certs`.
#[derive(Default)]
struct Pair {
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl table::Block for Pair {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::path("cert_file", |pair| &mut pair.cert_file).help("Like `tls.cert_file`."),
        Entry::<Self>::path("key_file", |pair| &mut pair.key_file).help("Like `tls.key_file`."),
    ];
}

fn certificate(given: &Given<'_>) -> Read<Certificate> {
    let pair = table::read(Pair::default(), given)?;
    match (pair.cert_file, pair.key_file) {
        (Some(cert_file), Some(key_file)) => Ok(Certificate {
            cert_file,
            key_file,
        }),
        _ => Err(given
            .fault("error parsing certificates config: both cert_file and key_file are needed")),
    }
}

fn show_certificate(certificate: &Certificate) -> Json {
    table::show(Pair {
        cert_file: Some(certificate.cert_file.clone()),
        key_file: Some(certificate.key_file.clone()),
    })
}

fn pin(item: &Given<'_>) -> Read<[u8; 32]> {
    let text = item.text()?;
    let wrong = || {
        item.fault(format!(
            "error parsing 'pinned_certs' key {text}: expected 64 hexadecimal digits"
        ))
    };
    // The conversion below accepts a plus sign.
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut hash = [0; 32];
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}

fn show_pin(pin: &[u8; 32]) -> String {
    pin.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn handshake(field: &Given<'_>) -> Read<TlsHandshake> {
    match &field.node.value {
        Value::Bool(false) => Ok(TlsHandshake::AfterInfo),
        Value::Bool(true) => Ok(TlsHandshake::First),
        Value::Text(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "on" => Ok(TlsHandshake::First),
            "false" | "off" => Ok(TlsHandshake::AfterInfo),
            "auto" | "auto_fallback" => Ok(TlsHandshake::FirstWithin(HANDSHAKE_AUTO)),
            _ => go_duration(text)
                .map(TlsHandshake::FirstWithin)
                .map_err(|_| field.fault(format!("field's value \"{text}\" is invalid"))),
        },
        _ => Err(field.fault("field should be a boolean or a string, got neither")),
    }
}

/// Reads a duration, or a number of seconds with or without a fraction.
pub(super) fn timeout(field: &Given<'_>) -> Read<Duration> {
    match field.node.value {
        Value::Float(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| field.fault(format!("{}: {seconds} is not a duration", field.key))),
        _ => field.duration(),
    }
}
