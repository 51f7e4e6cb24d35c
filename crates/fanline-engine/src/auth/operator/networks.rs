//! Networks that users may connect from.

use std::net::IpAddr;

/// Returns whether an address is in one of the networks, such as `10.0.0.0/8`. An empty list allows every
/// address. If the address is unknown, any other list denies it. An invalid network contains no address.
pub(super) fn allow(networks: &[String], address: &str) -> bool {
    let Ok(address) = address.parse::<IpAddr>() else {
        return networks.is_empty();
    };
    let contains_address =
        |network: &String| contains(network, address.to_canonical()).unwrap_or(false);
    networks.is_empty() || networks.iter().any(contains_address)
}

fn contains(network: &str, address: IpAddr) -> Option<bool> {
    let (base, bits) = network.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    let base: IpAddr = base.parse().ok()?;
    let (base, address, width) = match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => (
            u128::from(base.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (IpAddr::V6(base), IpAddr::V6(address)) => (base.to_bits(), address.to_bits(), 128),
        _ => return Some(false),
    };
    let ignored = u32::checked_sub(width, bits)?;
    // If all 128 bits are ignored, `checked_shr` returns `None`, and every address matches.
    let differs = (base ^ address).checked_shr(ignored).unwrap_or(0);
    Some(differs == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_networks() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("192.168.1.7/32", "192.168.1.7", true),
            ("192.168.1.7/32", "192.168.1.8", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "2001:db8::1", true),
            ("10.0.0.0/33", "10.0.0.0", false),
            ("10.0.0.0", "10.0.0.0", false),
            ("x/8", "10.0.0.0", false),
            ("10.0.0.0/8", "", false),
        ] {
            let allowed = allow(&[network.into()], address);
            assert_eq!(allowed, expected, "{address} in {network}");
        }
        assert!(allow(&[], "") && allow(&[], "10.0.0.1"));
        let two: [String; 2] = ["10.0.0.0/8".into(), "127.0.0.1/32".into()];
        assert!(allow(&two, "127.0.0.1") && !allow(&two, "127.0.0.2"));
    }
}
