//! Operator mode in a configuration, and the source of its accounts.

use fanline_engine::Access;
use fanline_engine::auth::{AccessConfig, OperatorError, Operators};
use serde_json::{Value as Json, json};

use super::read::{Given, Read};
use super::table::{self, Entry, Kind};
use super::value::Value;
use crate::account_directory::read_token;
use crate::clock::unix_seconds;
use crate::{DirectoryOptions, ResolverOptions, TlsOptions, UrlOptions};

/// The beginning of every token: `{"` in base64url.
const TOKEN_BEGIN: &str = "eyJ";

/// Options of operator mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorOptions {
    /// Tokens of operators.
    pub operators: Vec<String>,
    /// Keys of operators.
    pub trusted_keys: Vec<String>,
    /// Preloaded accounts: key and token.
    pub preload: Vec<(String, String)>,
    /// Token of clients that send none.
    pub default_sentinel: Option<String>,
    /// Keys of the accounts whose users may connect. If empty, users of all accounts may connect.
    pub pinned_accounts: Vec<String>,
    /// TLS options of a resolver on a web server.
    pub resolver_tls: Option<TlsOptions>,
    /// The source of accounts that are not preloaded.
    pub(super) resolver: Option<Resolver>,
}

/// A source of accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolver(pub(super) ResolverOptions);

impl OperatorOptions {
    /// Returns whether operator mode is on.
    pub(super) fn is_on(&self) -> bool {
        !self.operators.is_empty() || !self.trusted_keys.is_empty()
    }

    /// Returns the trusted operators.
    pub(super) fn trusted(&self) -> Result<Operators, OperatorError> {
        let mut operators = Operators::default();
        for token in &self.operators {
            operators.trust(token, unix_seconds())?;
        }
        for key in &self.trusted_keys {
            operators.trust_key(key)?;
        }
        if let Some(sentinel) = &self.default_sentinel {
            operators.set_sentinel(sentinel)?;
        }
        operators.pin_accounts(&self.pinned_accounts)?;
        Ok(operators)
    }

    /// Returns the users and accounts of operator mode, with the preloaded accounts.
    pub(super) fn access(&self, config: AccessConfig) -> Result<Access, OperatorError> {
        let tokens: Vec<&str> = self
            .preload
            .iter()
            .map(|(_, token)| token.as_str())
            .collect();
        let access = Access::new(config)?.with_accounts(&tokens, unix_seconds())?;
        for (account, _) in &self.preload {
            if !access.knows_authority(account) {
                let other = "another account".to_owned();
                return Err(OperatorError::Other(other, account.clone()));
            }
        }
        Ok(access)
    }
}

impl Resolver {
    /// Parses `MEMORY`, `URL(…)`, or a block.
    pub(super) fn read(given: &Given<'_>) -> Read<Self> {
        let Value::Text(text) = &given.node.value else {
            return Self::read_block(given);
        };
        let text = text.trim();
        if text.eq_ignore_ascii_case("memory") || text.eq_ignore_ascii_case("mem") {
            return Ok(Resolver(ResolverOptions::Memory));
        }
        let is_url = text
            .get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case("url("));
        let url = text.get(4..).filter(|_| is_url);
        let url = url.and_then(|url| url.strip_suffix(')'));
        let url = url.map(|url| url.trim().trim_matches(['"', '\'']));
        match url {
            Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(Resolver(ResolverOptions::Url(UrlOptions {
                    url: url.into(),
                    tls: None,
                })))
            }
            _ => Err(given.fault("missing account resolver type, should be MEMORY or URL")),
        }
    }

    fn read_block(given: &Given<'_>) -> Read<Self> {
        let ResolverBlock { kind, mut options } = table::read(ResolverBlock::default(), given)?;
        options.is_cache = match kind.as_deref() {
            Some("memory" | "mem") => return Ok(Resolver(ResolverOptions::Memory)),
            Some("full") => false,
            Some("cache") => true,
            _ => return Err(given.fault("resolver type must be memory, full or cache")),
        };
        if options.dir.as_os_str().is_empty() {
            return Err(given.fault("dir needs to be specified for this resolver"));
        }
        if options.is_cache && (options.allow_delete || options.hard_delete) {
            return Err(given.fault("CACHE does not accept allow_delete or hard_delete"));
        }
        if !options.is_cache && options.ttl.is_some() {
            return Err(given.fault("FULL does not accept ttl"));
        }
        if options.hard_delete && !options.allow_delete {
            return Err(given.fault("hard_delete has no effect without delete"));
        }
        Ok(Resolver(ResolverOptions::Directory(options)))
    }

    pub(super) fn show(&self) -> Json {
        match &self.0 {
            ResolverOptions::Memory => json!("MEMORY"),
            ResolverOptions::Url(own) => json!(format!("URL({})", own.url)),
            ResolverOptions::Directory(options) => {
                let kind = if options.is_cache { "cache" } else { "full" };
                table::show(ResolverBlock {
                    kind: Some(kind.into()),
                    options: options.clone(),
                })
            }
        }
    }
}

/// The block `resolver`, which describes a folder of accounts.
#[derive(Default)]
pub(super) struct ResolverBlock {
    kind: Option<String>,
    options: DirectoryOptions,
}

impl table::Block for ResolverBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "type",
            Kind::Text,
            |block, given| {
                block.kind = Some(given.text()?.to_ascii_lowercase());
                Ok(())
            },
            |block| json!(block.kind),
        )
        .limit("`memory`, `full`, `cache`")
        .help("Kind of resolver."),
        Entry::<Self>::new(
            "dir",
            Kind::Path,
            |block, given| {
                block.options.dir = given.path()?.unwrap_or_default();
                Ok(())
            },
            |block| json!(block.options.dir.display().to_string()),
        )
        .help("Folder of JWTs, in files `<account>.jwt`."),
        Entry::<Self>::flag("allow_delete", |block| &mut block.options.allow_delete)
            .default("false")
            .help("Allow deletion of JWTs."),
        Entry::<Self>::flag("hard_delete", |block| &mut block.options.hard_delete)
            .default("false")
            .help("Delete the files of deleted JWTs, instead of renaming them."),
        Entry::checked("interval", Kind::Duration).help("For clusters only."),
        Entry::checked("timeout", Kind::Duration).help("For clusters only."),
        Entry::<Self>::new(
            "limit",
            Kind::Integer,
            |block, given| {
                let most: usize = given.count()?;
                block.options.tokens_max = (most > 0).then_some(most);
                Ok(())
            },
            |block| json!(block.options.tokens_max.unwrap_or(0)),
        )
        .default("0")
        .help("Largest number of JWTs; 0 is unlimited."),
        Entry::<Self>::maybe_duration("ttl", |block| &mut block.options.ttl)
            .help("Time to live of a cached JWT."),
    ];
}

/// Returns `text` if it is a token. Otherwise `text` is the name of a file, whose token is returned. The file
/// may have comment lines around the token.
pub(super) fn token(text: &str) -> Result<String, String> {
    if text.starts_with(TOKEN_BEGIN) {
        return Ok(text.trim().into());
    }
    let content = read_token(text.as_ref()).map_err(|error| format!("{text}: {error}"))?;
    let mut lines = content.lines().map(str::trim);
    let found = lines.find(|line| line.starts_with(TOKEN_BEGIN));
    found
        .map(String::from)
        .ok_or_else(|| format!("{text}: no JWT found"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Node;
    use crate::config::{Loaded, Place};
    use fanline_engine::auth::jwt::sign;
    use fanline_engine::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};

    fn key(kind: KeyKind, number: u8) -> SecretKey {
        SecretKey::new(kind, [number; KEY_BYTES])
    }

    fn resolver(text: &str) -> Read<Resolver> {
        let place = Place {
            file: "c.conf".into(),
            line: 1,
            column: 1,
        };
        let node = Node {
            value: Value::Text(text.into()),
            place: place.clone(),
        };
        Resolver::read(&Given {
            key: "resolver",
            place: &place,
            node: &node,
            is_variable: false,
        })
    }

    #[test]
    fn resolvers_are_named() {
        for text in ["MEMORY", "memory"] {
            assert_eq!(
                resolver(text),
                Ok(Resolver(ResolverOptions::Memory)),
                "{text}"
            );
        }
        let url = Resolver(ResolverOptions::Url(UrlOptions {
            url: "http://a/jwt/".into(),
            tls: None,
        }));
        for text in [
            "URL(http://a/jwt/)",
            "url(\"http://a/jwt/\")",
            "URL( http://a/jwt/ )",
        ] {
            assert_eq!(resolver(text), Ok(url.clone()), "{text}");
        }
        for text in ["", "URL", "URL()", "URL(ftp://a)", "URL(http://a", "DISK"] {
            assert!(resolver(text).is_err(), "{text}");
        }
    }

    #[test]
    fn preloaded_token_must_match_its_account() {
        let account = key(KeyKind::Account, 2).public().encode();
        let nats = json!({"type": "account", "version": 2});
        let token = sign(
            json!({"sub": account, "nats": nats}),
            &key(KeyKind::Operator, 1),
        );
        let access = |name: &str| -> Result<Access, OperatorError> {
            let operator = OperatorOptions {
                trusted_keys: vec![key(KeyKind::Operator, 1).public().encode()],
                preload: vec![(name.into(), token.clone())],
                ..Loaded::default().operator
            };
            let config = AccessConfig {
                operators: Some(operator.trusted()?),
                ..AccessConfig::default()
            };
            operator.access(config)
        };
        assert!(access(&account).is_ok_and(|access| access.knows_authority(&account)));
        let other = key(KeyKind::Account, 3).public().encode();
        assert!(matches!(access(&other), Err(OperatorError::Other(..))));
    }
}
