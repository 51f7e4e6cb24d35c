//! `proxies { trusted: [ { key: U… } ] }`.

use fanline_engine::auth::nkey::PublicKey;

use crate::config::read::{Given, Read};

/// Reads which proxies are believed.
pub(in crate::config) fn proxies(given: &Given<'_>) -> Read<Vec<PublicKey>> {
    let mut keys = Vec::new();
    let fields = given.fields()?.into_iter();
    for trusted in fields.filter(|field| field.key.eq_ignore_ascii_case("trusted")) {
        for proxy in trusted.items()? {
            for field in proxy.fields()? {
                let names = ["key", "public_key"];
                if names
                    .iter()
                    .any(|name| field.key.eq_ignore_ascii_case(name))
                {
                    let text = field.text()?;
                    let key = PublicKey::parse(text);
                    keys.push(
                        key.ok_or_else(|| field.fault(format!("invalid proxy key {text:?}")))?,
                    );
                }
            }
        }
    }
    Ok(keys)
}
