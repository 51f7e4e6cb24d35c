//! `proxies { trusted: [ { key: U… } ] }`.

use fanline_engine::auth::nkey::PublicKey;
use serde_json::json;

use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Blocks, Text};
use crate::config::table::{self, Entry};

/// The block `proxies`: keys of trusted proxies.
#[derive(Default)]
pub(in crate::config) struct Proxies(pub(in crate::config) Vec<PublicKey>);

impl table::Block for Proxies {
    const OPTIONS: &'static [Entry<Self>] = &[Entry::<Self>::new(
        "trusted",
        Blocks,
        |proxies, given| {
            for given in given.items()? {
                let proxy = table::read(Proxy::default(), &given)?;
                proxies.0.extend(proxy.0);
            }
            Ok(())
        },
        |proxies| {
            let proxies = proxies.0.iter();
            proxies.map(|key| table::show(Proxy(vec![*key]))).collect()
        },
    )
    .block::<Proxy>()
    .help("Keys of trusted proxies.")];
}

/// An entry of `trusted`.
#[derive(Default)]
struct Proxy(Vec<PublicKey>);

impl table::Block for Proxy {
    const OPTIONS: &'static [Entry<Self>] = &[Entry::<Self>::new(
        "key",
        Text,
        |proxy, given| {
            let text = given.text()?;
            let key = PublicKey::parse(text);
            let wrong = || given.fault(format!("invalid proxy key {text:?}"));
            proxy.0.push(key.ok_or_else(wrong)?);
            Ok(())
        },
        |proxy| json!(proxy.0.first().map(|key| key.encode())),
    )
    .alias(&["public_key"])
    .help("The public key of a proxy.")];
}

/// Reads the trusted proxies.
pub(in crate::config) fn proxies(given: &Given<'_>) -> Read<Vec<PublicKey>> {
    Ok(table::read(Proxies::default(), given)?.0)
}
