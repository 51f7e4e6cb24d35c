//! The input is for the client crate. The first byte chooses the meaning of the rest. From 0 to 127, the rest
//! is bytes from a server, cut into chunks of that many bytes plus one. Otherwise it is the content of a
//! credentials file and a list of addresses.

use fanline_server::client::{ConnectOptions, decode_all};

/// Checks that a server's bytes decode to the same result wherever they are cut, that credentials and
/// addresses are read or rejected, and that secrets are never shown.
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
