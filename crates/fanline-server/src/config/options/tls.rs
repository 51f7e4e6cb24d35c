//! TLS: one block, used by several listeners.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::duration_text;
use crate::config::error::Fault;
use crate::config::read::{Given, Read, fields, go_duration};
use crate::config::table::Kind::{Any, Block, Blocks, Bool, Integer, Path, Text, Texts};
use crate::config::table::{Entry, refused, warned, within, works};
use crate::config::value::{Map, Value};
use crate::{Certificate, ClientCertificates, TlsHandshake, TlsOptions, TlsVersion};

/// How long a client has for `handshake_first: auto`.
const HANDSHAKE_AUTO: Duration = Duration::from_millis(50);
/// Parts of the names of cipher suites that rustls does not implement.
const OLD_CIPHERS: [&str; 3] = ["_CBC_", "_RC4_", "_3DES_"];
const OTHER_CURVES: [&str; 4] = [
    "CurveP521",
    "X25519MLKEM768",
    "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024",
];
const WINDOWS: &str = "without effect: it is for certificate stores of Windows";

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "tls",
        Block,
        |draft, given| {
            draft.loaded.options.tls = Some(read(given)?);
            Ok(())
        },
        |loaded| loaded.options.tls.as_ref().map_or(Json::Null, show),
    )
    .flags("--tls, --tlscert, --tlskey, --tlscacert, --tlsverify")
    .default("off")
    .reloads()
    .help("TLS for NATS clients. A reload turns it on or off, changes it, and reads its files again, for connections that come later."),
    works(
        "allow_non_tls",
        Bool,
        |draft, given| {
            draft.loaded.options.allow_non_tls = given.boolean()?;
            Ok(())
        },
        |loaded| json!(loaded.options.allow_non_tls),
    )
    .default("false")
    .reloads()
    .help("Clients may come without TLS although there is some."),
    within("tls.cert_file", Path).help("The certificates, the server's own first (PEM)."),
    within("tls.key_file", Path).help("The key of the first one (PEM)."),
    within("tls.certs", Blocks)
        .alias(&["certificates"])
        .help("Several pairs; the client's SNI says which."),
    within("tls.certs.cert_file", Path).help("As `tls.cert_file`."),
    within("tls.certs.key_file", Path).help("As `tls.key_file`."),
    within("tls.ca_file", Path).help("The authorities of client certificates (PEM)."),
    within("tls.verify", Bool)
        .default("false")
        .help("Clients must show a valid certificate."),
    within("tls.verify_and_map", Bool)
        .default("false")
        .help("The same, and it says which user they are."),
    within("tls.timeout", Any)
        .default("2s")
        .help("How long a handshake may take: seconds or a duration."),
    within("tls.min_version", Text)
        .default("1.2")
        .limit("1.2, 1.3")
        .help("The oldest version that is spoken."),
    within("tls.cipher_suites", Texts).help("Cipher suites by name, best first. Those of nats-server that Fanline does not have are left out with a warning; at least one must remain."),
    within("tls.curve_preferences", Texts).help("Curves by name, best first; as `cipher_suites`."),
    within("tls.pinned_certs", Texts)
        .limit("64 hexadecimal digits each")
        .help("SHA-256 of the keys of the client certificates that are let in."),
    within("tls.handshake_first", Any)
        .alias(&["first", "immediate"])
        .default("false")
        .limit("a boolean, `auto`, `auto_fallback` or a duration")
        .help("Whether the handshake comes before INFO."),
    within("tls.connection_rate_limit", Integer).help("Handshakes in a second, at most."),
    within("tls.insecure", Bool)
        .default("false")
        .help("Without effect: Fanline checks the certificate of every server that it connects to. Name the authority in `ca_file`."),
    within("tls.allow_insecure_cipher_suites", Bool)
        .default("false")
        .help("Insecure cipher suites may be named. Fanline has none: they are left out."),
    refused(
        "tls.verify_cert_and_check_known_urls",
        Bool,
        "clustering is not supported by Fanline yet",
    )
    .help("For routes and gateways."),
    refused("tls.ocsp_peer", Any, "OCSP is not supported by Fanline")
        .help("Whether client certificates were revoked."),
    refused("tls.cert_store", Text, "it is for Windows").help("A certificate store of Windows."),
    refused("tls.cert_match_by", Text, "it is for Windows").help("The same."),
    warned("tls.cert_match", Text, WINDOWS).help("The same."),
    warned("tls.cert_match_skip_invalid", Bool, WINDOWS).help("The same."),
    warned("tls.ca_certs_match", Texts, WINDOWS).help("The same."),
];

/// Returns a warning for each option of a block `tls` that has no effect. `is_dialler`: the block is about servers
/// that this one connects to.
pub(in crate::config) fn warnings(map: &Map, is_dialler: bool) -> Vec<Fault> {
    let mut warnings = Vec::new();
    for field in fields(map) {
        let reason = match field.key.to_ascii_lowercase().as_str() {
            "insecure" if is_dialler && field.boolean().unwrap_or(false) => {
                "insecure: without effect: Fanline checks the certificates of servers that it connects to; name \
                 their authority in ca_file"
                    .into()
            }
            "cipher_suites" => left_out(&field, is_other_suite),
            "curve_preferences" => left_out(&field, is_other_curve),
            _ => String::new(),
        };
        if !reason.is_empty() {
            warnings.push(Fault {
                place: Some(field.place.clone()),
                reason,
            });
        }
    }
    warnings
}

fn left_out(field: &Given<'_>, is_other: fn(&str) -> bool) -> String {
    let mut names = field.texts().unwrap_or_default();
    names.retain(|name| is_other(name));
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "{}: left out, Fanline does not have them: {}",
            field.key,
            names.join(", ")
        ),
    }
}

/// Whether nats-server has this cipher suite and Fanline does not: suites with CBC, RC4, 3DES, or without forward
/// secrecy.
fn is_other_suite(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("TLS_RSA_WITH_")
        || (name.starts_with("TLS_ECDHE_") && OLD_CIPHERS.iter().any(|old| name.contains(old)))
}

/// Whether nats-server has this curve and Fanline does not.
fn is_other_curve(name: &str) -> bool {
    OTHER_CURVES
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether nats-server accepts this cipher suite only with `allow_insecure_cipher_suites`.
fn is_insecure(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    is_other_suite(&name)
        && !(name.ends_with("_CBC_SHA") && name.contains("_AES_") && name.starts_with("TLS_ECDHE_"))
}

/// Reads a block `tls`.
pub(super) fn read(given: &Given<'_>) -> Read<TlsOptions> {
    let mut tls = TlsOptions::default();
    let (mut cert_file, mut key_file) = (None, None);
    let (mut suites, mut allows_insecure) = (Vec::new(), false);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "cert_file" => cert_file = field.path()?,
            "key_file" => key_file = field.path()?,
            "certs" | "certificates" => {
                for pair in field.items()? {
                    tls.certificates.push(certificate(&pair)?);
                }
            }
            "ca_file" => tls.ca_file = field.path()?,
            "verify" if field.boolean()? => {
                tls.client_certificates = match tls.client_certificates {
                    ClientCertificates::NotAsked => ClientCertificates::Required,
                    more => more,
                }
            }
            "verify_and_map" if field.boolean()? => {
                tls.client_certificates = ClientCertificates::RequiredAndMapped;
            }
            "timeout" => tls.timeout = timeout(&field)?,
            "min_version" => {
                tls.min_version = match field.text()? {
                    "1.2" => TlsVersion::V1_2,
                    "1.3" => TlsVersion::V1_3,
                    other => {
                        return Err(
                            field.fault(format!("unsupported minimum TLS version: {other}"))
                        );
                    }
                }
            }
            "cipher_suites" => suites = names(&field)?,
            "allow_insecure_cipher_suites" => allows_insecure = field.boolean()?,
            "curve_preferences" => {
                tls.curve_preferences = remaining(names(&field)?, is_other_curve)
            }
            "pinned_certs" => {
                for item in field.items()? {
                    tls.pinned_certs.insert(pin(&item)?);
                }
            }
            "handshake_first" | "first" | "immediate" => tls.handshake = handshake(&field)?,
            "connection_rate_limit" => {
                tls.connection_rate_limit = match field.integer()? {
                    ..=0 => None,
                    _ => Some(field.count()?),
                };
            }
            // A switch that is off, or what was refused before.
            _ => {}
        }
    }
    tls.cipher_suites = cipher_suites(given, suites, allows_insecure)?;
    if cert_file.is_some() && !tls.certificates.is_empty() {
        let reason =
            "error parsing tls config, cannot combine 'cert_file' option with 'certs' option";
        return Err(given.fault(reason));
    }
    tls.certificates
        .extend(own_pair(given, cert_file, key_file)?);
    Ok(tls)
}

/// Returns the certificate that stands in the block itself, with its key.
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

/// Returns the cipher suites that Fanline has of those named.
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

/// Removes names that Fanline does not have. Returns the list as it is if none would remain, because an empty list
/// allows everything.
fn remaining(names: Vec<String>, is_other: fn(&str) -> bool) -> Vec<String> {
    let known: Vec<String> = names
        .iter()
        .filter(|name| !is_other(name))
        .cloned()
        .collect();
    if known.is_empty() { names } else { known }
}

/// Names of which there is at least one: an empty list would allow nothing.
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

fn certificate(pair: &Given<'_>) -> Read<Certificate> {
    let (mut cert_file, mut key_file) = (None, None);
    for field in pair.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "cert_file" => cert_file = field.path()?,
            _ => key_file = field.path()?,
        }
    }
    match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Ok(Certificate {
            cert_file,
            key_file,
        }),
        _ => {
            Err(pair
                .fault("error parsing certificates config: both cert_file and key_file are needed"))
        }
    }
}

fn pin(item: &Given<'_>) -> Read<[u8; 32]> {
    let text = item.text()?;
    let wrong = || {
        item.fault(format!(
            "error parsing 'pinned_certs' key {text}: it has 64 hexadecimal digits"
        ))
    };
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut hash = [0; 32];
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
    }
    Ok(hash)
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

/// Seconds, with a fraction or without, or a duration.
pub(super) fn timeout(field: &Given<'_>) -> Read<Duration> {
    match field.node.value {
        Value::Float(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| field.fault(format!("{}: {seconds} is no duration", field.key))),
        _ => field.duration(),
    }
}

/// Shows a block `tls`.
pub(super) fn show(tls: &TlsOptions) -> Json {
    let certificates: Vec<Json> = tls
        .certificates
        .iter()
        .map(|pair| json!({ "cert_file": pair.cert_file, "key_file": pair.key_file }))
        .collect();
    let pinned: Vec<String> = tls
        .pinned_certs
        .iter()
        .map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    json!({
        "certs": certificates,
        "ca_file": tls.ca_file,
        "verify": tls.client_certificates.is_required(),
        "verify_and_map": tls.client_certificates == ClientCertificates::RequiredAndMapped,
        "timeout": duration_text(tls.timeout),
        "min_version": match tls.min_version {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        },
        "cipher_suites": tls.cipher_suites,
        "curve_preferences": tls.curve_preferences,
        "pinned_certs": pinned,
        "handshake_first": match tls.handshake {
            TlsHandshake::AfterInfo => json!(false),
            TlsHandshake::First => json!(true),
            TlsHandshake::FirstWithin(time) => duration_text(time),
        },
        "connection_rate_limit": tls.connection_rate_limit,
    })
}
