//! Names and keys in certificates, which identify users. The TLS layer has already validated the
//! certificates.

use std::fmt::Write as _;
use std::ops::Range;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// 2.5.29.17, subjectAltName.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.29.37, extKeyUsage.
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
/// 1.3.6.1.5.5.7.3.2, id-kp-clientAuth.
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
/// 2.5.29.37.0, anyExtendedKeyUsage.
const ANY_PURPOSE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];

/// Names and public key of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// Email addresses among the alternative names.
    pub emails: Vec<String>,
    /// Host names among the alternative names.
    pub dns_names: Vec<String>,
    /// URIs among the alternative names.
    pub uris: Vec<String>,
    /// The subject in the notation of RFC 2253: `CN=ada,O=Example`.
    pub subject: String,
    /// Byte range of the public key (SPKI) in the certificate.
    pub public_key: Range<usize>,
}

impl CertificateNames {
    /// Returns whether a name is one of the certificate's names. The parts of a distinguished name match in any order.
    pub(crate) fn identify(&self, name: &str) -> bool {
        let alternatives = self.emails.iter().chain(&self.dns_names);
        let mut alternatives = alternatives.chain(&self.uris);
        alternatives.any(|known| known == name)
            || name.contains('=') && parts(name) == parts(&self.subject)
    }
}

/// Returns the parts of a distinguished name, sorted.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut escaped = false;
    for letter in name.chars() {
        if !escaped && matches!(letter, ',' | '+') {
            parts.push(part.trim().to_owned());
            part.clear();
        } else {
            part.push(letter);
        }
        escaped = letter == '\\' && !escaped;
    }
    parts.push(part.trim().to_owned());
    parts.sort();
    parts
}

/// Parses a certificate in DER; `None` if it is invalid.
pub fn certificate_names(der: &[u8]) -> Option<CertificateNames> {
    let (_, after) = take(from_validity(der)?, SEQUENCE)?;
    let (subject, after) = take(after, SEQUENCE)?;
    let key_at = der.len() - trailing(der, after)?;
    let (_, after_key) = take(after, SEQUENCE)?;
    let key_end = der.len() - trailing(der, after_key)?;
    let mut names = CertificateNames {
        subject: distinguished_name(subject)?,
        public_key: key_at..key_end,
        ..CertificateNames::default()
    };
    let mut rest = after_key;
    while let Some((tag, content, after)) = element(rest) {
        if tag == EXTENSIONS {
            let (extensions, _) = take(content, SEQUENCE)?;
            read_extensions(extensions, &mut names)?;
        }
        rest = after;
    }
    Some(names)
}

/// Returns the time at which a DER certificate expires, in RFC 3339; `None` if it cannot be parsed.
pub fn not_after(der: &[u8]) -> Option<String> {
    let (validity, _) = take(from_validity(der)?, SEQUENCE)?;
    let (_, _, until) = element(validity)?;
    let (tag, time, _) = element(until)?;
    let time = std::str::from_utf8(time).ok()?.strip_suffix('Z')?;
    // RFC 5280, 4.1.2.5: a year of two digits is between 1950 and 2049.
    let time = match tag {
        UTC_TIME if time < "50" => format!("20{time}"),
        UTC_TIME => format!("19{time}"),
        GENERALIZED_TIME => time.to_owned(),
        _ => return None,
    };
    if time.len() != 14 || !time.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (date, clock) = time.split_at(8);
    Some(format!(
        "{}-{}-{}T{}:{}:{}Z",
        &date[..4],
        &date[4..6],
        &date[6..],
        &clock[..2],
        &clock[2..4],
        &clock[4..]
    ))
}

/// Returns whether a client may use a certificate: its extended key usage is missing, or includes client
/// authentication or any purpose. Returns false if the certificate cannot be parsed.
pub fn may_be_a_client(der: &[u8]) -> bool {
    match extended_key_usage(der) {
        Some(None) => true,
        Some(Some(purposes)) => names_clients(purposes).unwrap_or(false),
        None => false,
    }
}

/// Returns the extended key usage of a certificate; `Some(None)` if it has none.
#[expect(clippy::option_option, reason = "no certificate, none named, some")]
fn extended_key_usage(der: &[u8]) -> Option<Option<&[u8]>> {
    let (certificate, _) = take(der, SEQUENCE)?;
    let (mut rest, _) = take(certificate, SEQUENCE)?;
    while !rest.is_empty() {
        let (tag, content, after) = element(rest)?;
        rest = after;
        if tag != EXTENSIONS {
            continue;
        }
        let (mut extensions, _) = take(content, SEQUENCE)?;
        while !extensions.is_empty() {
            let (extension, after) = take(extensions, SEQUENCE)?;
            extensions = after;
            let (id, value) = take(extension, OBJECT_ID)?;
            if id == EXTENDED_KEY_USAGE {
                let value = take(value, BOOLEAN).map_or(value, |(_, after)| after);
                let (octets, _) = take(value, OCTETS)?;
                let (purposes, _) = take(octets, SEQUENCE)?;
                return Some(Some(purposes));
            }
        }
    }
    Some(None)
}

fn names_clients(mut purposes: &[u8]) -> Option<bool> {
    while !purposes.is_empty() {
        let (purpose, after) = take(purposes, OBJECT_ID)?;
        if [CLIENT_AUTH, ANY_PURPOSE].contains(&purpose) {
            return Some(true);
        }
        purposes = after;
    }
    Some(false)
}

/// Returns the part of a certificate that begins with its validity, after serial number, signature algorithm,
/// and issuer.
fn from_validity(der: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = take(der, SEQUENCE)?;
    let (mut rest, _) = take(certificate, SEQUENCE)?;
    if let Some((_, after)) = take(rest, VERSION) {
        rest = after;
    }
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    Some(rest)
}

/// Returns the number of bytes from the start of `part` to the end of `whole`.
fn trailing(whole: &[u8], part: &[u8]) -> Option<usize> {
    let range = whole.as_ptr_range();
    let at = part.as_ptr();
    range
        .contains(&at)
        .then(|| range.end as usize - at as usize)
        .or_else(|| part.is_empty().then_some(0))
}

fn read_extensions(mut rest: &[u8], names: &mut CertificateNames) -> Option<()> {
    while !rest.is_empty() {
        let (extension, after) = take(rest, SEQUENCE)?;
        rest = after;
        let (id, value) = take(extension, OBJECT_ID)?;
        let value = take(value, BOOLEAN).map_or(value, |(_, after)| after);
        if id == ALTERNATIVE_NAMES {
            let (octets, _) = take(value, OCTETS)?;
            let (mut alternatives, _) = take(octets, SEQUENCE)?;
            while let Some((tag, content, after)) = element(alternatives) {
                let list = match tag {
                    0x81 => &mut names.emails,
                    0x82 => &mut names.dns_names,
                    0x86 => &mut names.uris,
                    _ => {
                        alternatives = after;
                        continue;
                    }
                };
                list.push(String::from_utf8_lossy(content).into_owned());
                alternatives = after;
            }
        }
    }
    Some(())
}

/// Formats a name as in RFC 2253, the last part first.
fn distinguished_name(mut rest: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (mut set, after) = take(rest, SET)?;
        rest = after;
        let mut values = Vec::new();
        while !set.is_empty() {
            let (pair, after) = take(set, SEQUENCE)?;
            set = after;
            let (id, value) = take(pair, OBJECT_ID)?;
            let (_, value, _) = element(value)?;
            let name = attribute_name(id);
            values.push(format!(
                "{name}={}",
                escaped(&String::from_utf8_lossy(value))
            ));
        }
        parts.push(values.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

fn attribute_name(id: &[u8]) -> String {
    let known = match id {
        [0x55, 0x04, last] => match last {
            3 => "CN",
            5 => "SERIALNUMBER",
            6 => "C",
            7 => "L",
            8 => "ST",
            9 => "STREET",
            10 => "O",
            11 => "OU",
            17 => "POSTALCODE",
            _ => "",
        },
        // 0.9.2342.19200300.100.1
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 1] => "UID",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 25] => "DC",
        _ => "",
    };
    match known {
        "" => dotted(id),
        known => known.into(),
    }
}

/// Formats an object identifier in dotted notation.
fn dotted(id: &[u8]) -> String {
    let mut text = String::new();
    let mut number = 0u64;
    let mut is_first = true;
    for byte in id {
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = match is_first {
            true => {
                let root = (number / 40).min(2);
                write!(text, "{root}.{}", number - 40 * root)
            }
            false => write!(text, ".{number}"),
        };
        (is_first, number) = (false, 0);
    }
    text
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let is_special = ",+\"\\<>;".contains(c)
            || (at == 0 && (c == '#' || c == ' '))
            || (at == last && c == ' ');
        if is_special {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// Returns the content of the first element and the bytes after it, if the element has the tag `wanted`.
fn take(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, after) = element(bytes)?;
    (tag == wanted).then_some((content, after))
}

/// Returns the first element's tag, its content, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&short, mut rest) = rest.split_first()?;
    let mut len = usize::from(short);
    if short & 0x80 != 0 {
        let count = usize::from(short & 0x7f);
        if !(1..=4).contains(&count) {
            return None;
        }
        let (long, after) = rest.split_at_checked(count)?;
        len = long
            .iter()
            .fold(0, |len, byte| (len << 8) | usize::from(*byte));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(len)?;
    Some((tag, content, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut bytes = vec![tag];
        match content.len() {
            len @ 0..=127 => bytes.push(u8::try_from(len).unwrap()),
            len => {
                bytes.push(0x82);
                bytes.extend(u16::try_from(len).unwrap().to_be_bytes());
            }
        }
        bytes.extend(content);
        bytes
    }

    fn attribute(last: u8, value: &str) -> Vec<u8> {
        let id = der(OBJECT_ID, &[&[0x55, 0x04, last]]);
        let pair = der(SEQUENCE, &[&id, &der(0x0c, &[value.as_bytes()])]);
        der(SET, &[&pair])
    }

    fn certificate(key: &[u8]) -> Vec<u8> {
        certificate_until(key, &der(UTC_TIME, &[b"261222170138Z"]))
    }

    fn certificate_until(key: &[u8], until: &[u8]) -> Vec<u8> {
        let validity = der(SEQUENCE, &[&der(UTC_TIME, &[b"200101000000Z"]), until]);
        let any = der(SEQUENCE, &[]);
        let subject = der(
            SEQUENCE,
            &[
                &attribute(6, "DE"),
                &attribute(10, "A, B"),
                &attribute(3, "ada"),
            ],
        );
        let alternatives = der(
            SEQUENCE,
            &[
                &der(0x82, &[b"ada.example"]),
                &der(0x81, &[b"ada@example.org"]),
                &der(0x86, &[b"spiffe://example/ada"]),
                &der(0x87, &[&[127, 0, 0, 1]]),
            ],
        );
        let extension = der(
            SEQUENCE,
            &[
                &der(OBJECT_ID, &[ALTERNATIVE_NAMES]),
                &der(OCTETS, &[&alternatives]),
            ],
        );
        let body = der(
            SEQUENCE,
            &[
                &der(VERSION, &[&[2, 1, 2]]),
                &[2, 1, 7],
                &any,
                &any,
                &validity,
                &subject,
                &der(SEQUENCE, &[key]),
                &der(EXTENSIONS, &[&der(SEQUENCE, &[&extension])]),
            ],
        );
        der(SEQUENCE, &[&body, &any, &[3, 1, 0]])
    }

    #[test]
    fn names_and_key_are_parsed() {
        let bytes = certificate(&[9; 300]);
        let names = certificate_names(&bytes).unwrap();
        assert_eq!(names.subject, "CN=ada,O=A\\, B,C=DE");
        assert_eq!(names.emails, ["ada@example.org"]);
        assert_eq!(names.dns_names, ["ada.example"]);
        assert_eq!(names.uris, ["spiffe://example/ada"]);
        assert_eq!(bytes[names.public_key.clone()], der(SEQUENCE, &[&[9; 300]]));
        for (name, expected) in [
            ("ada@example.org", true),
            ("ada.example", true),
            ("spiffe://example/ada", true),
            ("CN=ada,O=A\\, B,C=DE", true),
            ("C=DE,O=A\\, B,CN=ada", true),
            ("CN=ada", false),
            ("ada", false),
            ("", false),
        ] {
            assert_eq!(names.identify(name), expected, "{name}");
        }
    }

    #[test]
    fn end_of_validity_is_parsed() {
        for (tag, text, expected) in [
            (UTC_TIME, "261222170138Z", Some("2026-12-22T17:01:38Z")),
            (UTC_TIME, "991231235959Z", Some("1999-12-31T23:59:59Z")),
            (
                GENERALIZED_TIME,
                "40960101000000Z",
                Some("4096-01-01T00:00:00Z"),
            ),
            (GENERALIZED_TIME, "261222170138Z", None),
            (UTC_TIME, "2612221701é8Z", None),
            (UTC_TIME, "261222170138", None),
            (OCTETS, "261222170138Z", None),
        ] {
            let bytes = certificate_until(&[9; 20], &der(tag, &[text.as_bytes()]));
            assert_eq!(not_after(&bytes).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn object_ids_are_dotted() {
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1]),
            "1.2.840.113549.1.9.1"
        );
        assert_eq!(dotted(&[0x55, 0x04, 0x2a]), "2.5.4.42");
    }

    proptest! {
        #[test]
        fn damaged_certificates_do_not_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
            let mut bytes = certificate(&[9; 20]);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = (certificate_names(&bytes), not_after(&bytes));
            let _ = certificate_names(&bytes[..end.index(bytes.len())]);
        }
    }
}
