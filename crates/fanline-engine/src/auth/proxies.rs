//! Trusted proxies. A proxy signs the client's nonce to prove that the client connects through it.

use super::Access;
use super::admit::Grant;
use super::check::decode;
use super::nkey::PublicKey;

impl Access {
    /// Returns the keys of trusted proxies.
    pub fn proxies(&self) -> &[PublicKey] {
        &self.proxies
    }

    /// Returns the proxy that signed a nonce. Verifies up to one signature per trusted proxy.
    pub(crate) fn proxy_that_signed(&self, nonce: &str, signature: &str) -> Option<PublicKey> {
        let signature = decode(signature).filter(|_| !nonce.is_empty())?;
        let mut proxies = self.proxies.iter();
        let signed = proxies.find(|key| key.verifies(nonce.as_bytes(), &signature));
        signed.copied()
    }

    /// Returns whether a client with these rights must connect through a proxy.
    pub fn needs_proxy(&self, grant: &Grant) -> bool {
        self.proxy_required || grant.needs_proxy
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use crate::auth::AccessConfig;
    use crate::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};

    #[test]
    fn only_trusted_proxies_are_accepted() {
        let key = |number| SecretKey::new(KeyKind::User, [number; KEY_BYTES]);
        let config = AccessConfig {
            proxies: vec![key(1).public(), key(2).public()],
            ..AccessConfig::default()
        };
        let access = Access::new(config).unwrap();
        assert!(access.needs_nonce());
        let signature = |number: u8| URL_SAFE_NO_PAD.encode(key(number).sign(b"nonce"));
        for (number, nonce, is_believed) in [
            (1, "nonce", true),
            (2, "nonce", true),
            (3, "nonce", false),
            (1, "other", false),
            (1, "", false),
        ] {
            let found = access.proxy_that_signed(nonce, &signature(number));
            let expected = is_believed.then(|| key(number).public());
            assert_eq!(found, expected, "{number} {nonce}");
        }
        assert_eq!(access.proxy_that_signed("nonce", "?"), None);
    }
}
