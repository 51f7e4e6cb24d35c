//! What the client of this library is told. The first byte says what the rest is: 0 to 127 what a server sends, cut into
//! pieces of so many bytes; else the content of a credentials file, and a list of addresses.

use fanline_server::client::{ConnectOptions, decode_all};

/// A server says the same wherever its bytes are cut; who somebody is and where servers are is read or refused, and
/// secrets are never shown.
pub fn check(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    if first < 128 {
        let whole = decode_all(std::iter::once(rest));
        assert_eq!(decode_all(rest.chunks(usize::from(first) + 1)), whole);
        return;
    }
    let text = String::from_utf8_lossy(rest);
    let _ = ConnectOptions::new(&text);
    for read in [
        ConnectOptions::default().credentials(&text),
        ConnectOptions::default().nkey(&text),
    ] {
        let shown = format!("{read:?}");
        let mut seeds = text
            .lines()
            .filter(|line| line.starts_with("SU") && line.len() >= 58);
        assert!(seeds.all(|seed| !shown.contains(seed)));
    }
}
