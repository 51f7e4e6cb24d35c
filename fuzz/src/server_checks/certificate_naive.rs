//! A naive writer and reader of certificates, after RFC 5280. The reader accepts only what the RFC allows.

use std::ops::Range;

use fanline_server::auth::certificate::CertificateNames;

/// Attributes of a subject: the name, and the object identifier in DER.
const ATTRIBUTES: [(&str, &[u8]); 12] = [
    ("CN", &[0x55, 4, 3]),
    ("SERIALNUMBER", &[0x55, 4, 5]),
    ("C", &[0x55, 4, 6]),
    ("L", &[0x55, 4, 7]),
    ("ST", &[0x55, 4, 8]),
    ("STREET", &[0x55, 4, 9]),
    ("O", &[0x55, 4, 10]),
    ("OU", &[0x55, 4, 11]),
    ("POSTALCODE", &[0x55, 4, 17]),
    (
        "UID",
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
    ),
    (
        "DC",
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
    ),
    (
        "1.2.840.113549.1.9.1",
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
    ),
];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
const ANY: &[u8] = &[0x55, 0x1d, 0x25, 0];

/// A certificate to write.
#[derive(Default)]
pub(super) struct Description {
    pub(super) emails: Vec<String>,
    pub(super) dns_names: Vec<String>,
    pub(super) uris: Vec<String>,
    /// The parts of the subject, each with its attributes: the index in [`ATTRIBUTES`], and the value.
    subject: Vec<Vec<(usize, String)>>,
    until: Option<String>,
    /// Purposes of the key: 1 for servers, 2 for clients, 4 for any.
    usage: Option<u8>,
}

impl Description {
    /// Adds a line of the input.
    pub(super) fn add(&mut self, line: &str) {
        let mut letters = line.chars();
        let first = letters.next();
        let rest = letters.as_str().to_owned();
        match first {
            Some('e') => self.emails.push(rest),
            Some('d') => self.dns_names.push(rest),
            Some('i') => self.uris.push(rest),
            Some('t') if is_time(&rest) => self.until = Some(rest),
            Some('k') => self.usage = rest.bytes().next(),
            Some(sign @ ('=' | '+')) => {
                let number = letters.next().map_or(0, |letter| letter as usize);
                let attribute = (number % ATTRIBUTES.len(), letters.as_str().to_owned());
                match self.subject.last_mut() {
                    Some(part) if sign == '+' => part.push(attribute),
                    _ => self.subject.push(vec![attribute]),
                }
            }
            _ => {}
        }
    }

    /// Returns the subject in the notation of RFC 2253.
    pub(super) fn subject(&self) -> String {
        let text = |(attribute, value): &(usize, String)| {
            format!("{}={}", ATTRIBUTES[*attribute].0, escaped(value))
        };
        let part = |part: &Vec<_>| part.iter().map(text).collect::<Vec<_>>().join("+");
        self.subject
            .iter()
            .rev()
            .map(part)
            .collect::<Vec<_>>()
            .join(",")
    }

    pub(super) fn to_der(&self) -> Vec<u8> {
        let attribute = |(attribute, value): &(usize, String)| {
            let id = element(6, ATTRIBUTES[*attribute].1);
            element(0x30, &[id, element(12, value.as_bytes())].concat())
        };
        let part =
            |part: &Vec<_>| element(0x31, &part.iter().flat_map(attribute).collect::<Vec<_>>());
        let subject: Vec<u8> = self.subject.iter().flat_map(part).collect();
        let until = self.until.as_deref().unwrap_or("261222170138Z");
        let until_tag = if until.len() == 13 { 23 } else { 24 };
        let validity = [
            element(23, b"200101000000Z"),
            element(until_tag, until.as_bytes()),
        ]
        .concat();
        let algorithm = element(0x30, &element(6, &[0x2b, 0x65, 0x70]));
        let key = [algorithm.clone(), element(3, &[0; 33])].concat();
        let mut body = [
            element(0xa0, &element(2, &[2])),
            element(2, &[7]),
            algorithm.clone(),
            element(0x30, &[]),
            element(0x30, &validity),
            element(0x30, &subject),
            element(0x30, &key),
        ]
        .concat();
        let extensions = self.extensions();
        if !extensions.is_empty() {
            body.extend(element(0xa3, &element(0x30, &extensions)));
        }
        element(
            0x30,
            &[element(0x30, &body), algorithm, element(3, &[0; 65])].concat(),
        )
    }

    fn extensions(&self) -> Vec<u8> {
        let mut names = Vec::new();
        for (tag, list) in [
            (0x81, &self.emails),
            (0x82, &self.dns_names),
            (0x86, &self.uris),
        ] {
            names.extend(list.iter().flat_map(|name| element(tag, name.as_bytes())));
        }
        let mut all = Vec::new();
        if !names.is_empty() {
            all.extend(extension(ALTERNATIVE_NAMES, &[], &names));
        }
        if let Some(bits) = self.usage {
            let purposes = [(1, SERVER), (2, CLIENT), (4, ANY)];
            let purposes = purposes.into_iter().filter(|(bit, _)| bits & bit != 0);
            let mut purposes: Vec<u8> = purposes.flat_map(|(_, id)| element(6, id)).collect();
            if purposes.is_empty() {
                purposes = element(6, SERVER);
            }
            all.extend(extension(KEY_USAGE, &element(1, &[0xff]), &purposes));
        }
        all
    }
}

fn extension(id: &[u8], critical: &[u8], content: &[u8]) -> Vec<u8> {
    let value = element(4, &element(0x30, content));
    element(0x30, &[&element(6, id)[..], critical, &value[..]].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let mut bytes = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 128 => bytes.push(short),
        _ => {
            let count = u8::try_from(length.len() - zeros).expect("at most eight bytes");
            bytes.push(0x80 | count);
            bytes.extend_from_slice(&length[zeros..]);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

fn escaped(value: &str) -> String {
    let letters: Vec<char> = value.chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let is_edge = at == 0 || at + 1 == letters.len();
        let is_special = match letter {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            ' ' => is_edge,
            '#' => at == 0,
            _ => false,
        };
        text.extend(is_special.then_some('\\'));
        text.push(*letter);
    }
    text
}

/// Returns the parts of a subject in this notation, sorted.
pub(super) fn parts(subject: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = subject.chars();
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("it begins with one");
        match letter {
            '\\' => {
                part.push(letter);
                part.extend(letters.next());
            }
            ',' | '+' => parts.push(String::new()),
            _ => part.push(letter),
        }
    }
    let mut parts: Vec<String> = parts.iter().map(|part| part.trim().to_owned()).collect();
    parts.sort();
    parts
}

fn is_time(text: &str) -> bool {
    let digits = text.strip_suffix('Z').unwrap_or_default();
    [12, 14].contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Facts of a certificate.
pub(super) struct Facts {
    pub(super) names: CertificateNames,
    pub(super) not_after: String,
    pub(super) may_be_a_client: bool,
}

/// An element of DER, with the ranges of the whole element and of its content.
struct Element {
    tag: u8,
    whole: Range<usize>,
    content: Range<usize>,
}

/// Splits a range of DER into its elements; `None` if it is not DER.
fn split(der: &[u8], range: Range<usize>) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let part = &der[at..range.end];
        let (tag, first) = (*part.first()?, *part.get(1)?);
        let (head, length) = match first {
            0..=127 => (2, usize::from(first)),
            // Lengths have no leading zeros, and the short form is used for short ones.
            0x81 => (
                3,
                usize::from(*part.get(2).filter(|length| **length >= 128)?),
            ),
            0x82 => {
                let high = *part.get(2).filter(|high| **high > 0)?;
                (4, (usize::from(high) << 8) | usize::from(*part.get(3)?))
            }
            _ => return None,
        };
        let end = at + head + length;
        if end > range.end {
            return None;
        }
        elements.push(Element {
            tag,
            whole: at..end,
            content: at + head..end,
        });
        at = end;
    }
    Some(elements)
}

/// Reads a certificate; `None` if it is invalid, or has names of a kind whose text the RFC does not define.
pub(super) fn read(der: &[u8]) -> Option<Facts> {
    let of = |element: &Element, tag: u8| {
        let content = (element.tag == tag).then(|| element.content.clone());
        split(der, content?)
    };
    let outer = split(der, 0..der.len())?;
    let [certificate] = &outer[..] else {
        return None;
    };
    let certificate = of(certificate, 0x30)?;
    let [body, algorithm, signature] = &certificate[..] else {
        return None;
    };
    if algorithm.tag != 0x30 || signature.tag != 3 {
        return None;
    }
    let body = of(body, 0x30)?;
    let body = match body.first()?.tag {
        0xa0 => &body[1..],
        _ => &body[..],
    };
    let (fixed, optional) = body.split_at_checked(6)?;
    let tags: Vec<u8> = fixed.iter().map(|element| element.tag).collect();
    if tags != [2, 0x30, 0x30, 0x30, 0x30, 0x30] {
        return None;
    }
    let validity = of(&fixed[3], 0x30)?;
    let [_, until] = &validity[..] else {
        return None;
    };
    let mut facts = Facts {
        names: CertificateNames {
            subject: read_subject(der, &fixed[4])?,
            public_key: fixed[5].whole.clone(),
            ..CertificateNames::default()
        },
        not_after: read_time(until.tag, &der[until.content.clone()])?,
        may_be_a_client: true,
    };
    match optional {
        [] => {}
        [extensions] if extensions.tag == 0xa3 => read_extensions(der, extensions, &mut facts)?,
        // Unique identifiers are obsolete.
        _ => return None,
    }
    Some(facts)
}

fn read_time(tag: u8, text: &[u8]) -> Option<String> {
    let text = str::from_utf8(text).ok().filter(|text| is_time(text))?;
    let text = match (tag, text.len()) {
        (23, 13) if text.as_bytes()[0] >= b'5' => format!("19{text}"),
        (23, 13) => format!("20{text}"),
        (24, 15) => text.to_owned(),
        _ => return None,
    };
    let part = |range: Range<usize>| text[range].to_owned();
    let date = [part(0..4), part(4..6), part(6..8)].join("-");
    let clock = [part(8..10), part(10..12), part(12..14)].join(":");
    Some(format!("{date}T{clock}Z"))
}

fn read_subject(der: &[u8], subject: &Element) -> Option<String> {
    let mut parts = Vec::new();
    for part in split(der, subject.content.clone())? {
        let mut values = Vec::new();
        for pair in split(der, part.content.clone())? {
            let elements = split(der, pair.content.clone())?;
            let [id, value] = &elements[..] else {
                return None;
            };
            let known = |(_, known): &&(&str, &[u8])| *known == &der[id.content.clone()];
            let name = ATTRIBUTES.iter().find(known)?.0;
            let text = str::from_utf8(&der[value.content.clone()]).ok()?;
            // UTF8String, PrintableString, and IA5String
            let is_text = value.tag == 12 || ([19, 22].contains(&value.tag) && text.is_ascii());
            if !is_text || id.tag != 6 || pair.tag != 0x30 {
                return None;
            }
            values.push(format!("{name}={}", escaped(text)));
        }
        if part.tag != 0x31 || values.is_empty() {
            return None;
        }
        parts.insert(0, values.join("+"));
    }
    Some(parts.join(","))
}

fn read_extensions(der: &[u8], element: &Element, facts: &mut Facts) -> Option<()> {
    let lists = split(der, element.content.clone())?;
    let [list] = &lists[..] else {
        return None;
    };
    let mut seen: Vec<&[u8]> = Vec::new();
    for extension in split(der, list.content.clone())? {
        let parts = split(der, extension.content.clone())?;
        let (id, value) = match &parts[..] {
            [id, value] => (id, value),
            [id, critical, value] if critical.tag == 1 => (id, value),
            _ => return None,
        };
        let tags = [list.tag, extension.tag, id.tag, value.tag];
        let id = &der[id.content.clone()];
        // An extension may be there once.
        if tags != [0x30, 0x30, 6, 4] || seen.contains(&id) {
            return None;
        }
        seen.push(id);
        if id != ALTERNATIVE_NAMES && id != KEY_USAGE {
            continue;
        }
        let content = split(der, value.content.clone())?;
        let [content] = &content[..] else {
            return None;
        };
        let items = split(der, content.content.clone())?;
        match content.tag {
            0x30 if id == KEY_USAGE => {
                if items.iter().any(|item| item.tag != 6) {
                    return None;
                }
                let mut purposes = items.iter().map(|item| &der[item.content.clone()]);
                facts.may_be_a_client = purposes.any(|id| id == CLIENT || id == ANY);
            }
            0x30 => read_names(der, &items, &mut facts.names)?,
            _ => return None,
        }
    }
    Some(())
}

fn read_names(der: &[u8], items: &[Element], names: &mut CertificateNames) -> Option<()> {
    for item in items {
        let list = match item.tag {
            0x81 => &mut names.emails,
            0x82 => &mut names.dns_names,
            0x86 => &mut names.uris,
            0xa0 | 0xa3 | 0xa4 | 0xa5 | 0x87 | 0x88 => continue,
            _ => return None,
        };
        list.push(str::from_utf8(&der[item.content.clone()]).ok()?.to_owned());
    }
    Some(())
}

/// Decodes the first certificate of a PEM file.
pub(super) fn first_certificate(file: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(file);
    let (_, after) = text.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = after.split_once("-----END CERTIFICATE-----")?;
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for letter in body.bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        (bits, count) = (((bits & 0xffff) << 6) | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).expect("a byte"));
        }
    }
    Some(bytes)
}

/// Reads an entry of `pinned_certs`.
pub(super) fn pin(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u32>> = text.chars().map(|letter| letter.to_digit(16)).collect();
    let digits = digits?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(16 * high + low).ok(),
        _ => None,
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes?.try_into().ok()
}
