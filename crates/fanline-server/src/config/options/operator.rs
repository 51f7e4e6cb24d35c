//! Operator mode: trusted operators and the account resolver.

use serde_json::{Value as Json, json};

use super::tls::{self, TlsBlock};
use super::{Entry, text_list};
use crate::config::operator::{self, Resolver, ResolverBlock};
use crate::config::table;
use crate::config::table::Kind::{Any, Block, Text, Texts};

pub(super) const OPTIONS: &[Entry] = &[
    Entry::new(
        "operator",
        Texts,
        |draft, given| {
            for text in given.texts()? {
                let token = operator::token(&text).map_err(|why| given.fault(why))?;
                draft.loaded.operator.operators.push(token);
            }
            Ok(())
        },
        |draft| text_list(&draft.loaded.operator.operators),
    )
    .alias(&["operators", "root", "roots", "root_operator", "root_operators"])
    .help("Trusted operators: JWTs, or files that hold one each."),
    Entry::new(
        "trusted_keys",
        Texts,
        |draft, given| {
            draft.loaded.operator.trusted_keys = given.texts()?;
            Ok(())
        },
        |draft| text_list(&draft.loaded.operator.trusted_keys),
    )
    .alias(&["trusted"])
    .help(
        "Keys of operators, instead of their JWTs. Users and a token have no effect with them; without \
         `resolver`, the only accounts are those of `resolver_preload`.",
    ),
    Entry::new(
        "resolver",
        Any,
        |draft, given| {
            draft.loaded.operator.resolver = Some(Resolver::read(given)?);
            Ok(())
        },
        |draft| match &draft.loaded.operator.resolver {
            None => Json::Null,
            Some(resolver) => resolver.show(),
        },
    )
    .block::<ResolverBlock>()
    .alias(&["account_resolver", "accounts_resolver"])
    .help("The source of accounts: `MEMORY`, `URL(…)`, or a block for a folder."),
    Entry::new(
        "resolver_preload",
        Block,
        |draft, given| {
            let preload = &mut draft.loaded.operator.preload;
            preload.extend(table::read(Preload::default(), given)?.0);
            Ok(())
        },
        |draft| {
            let preload = draft.loaded.operator.preload.iter();
            let accounts: serde_json::Map<String, Json> = preload
                .map(|(account, token)| (account.clone(), json!(token)))
                .collect();
            match accounts.is_empty() {
                true => Json::Null,
                false => accounts.into(),
            }
        },
    )
    .block::<Preload>()
    .reloads()
    .help("JWTs of preloaded accounts."),
    Entry::new(
        "resolver_tls",
        Block,
        |draft, given| {
            draft.loaded.operator.resolver_tls = Some(tls::read(given)?);
            Ok(())
        },
        |draft| {
            let tls = draft.loaded.operator.resolver_tls.as_ref();
            tls.map_or(Json::Null, tls::show)
        },
    )
    .block::<TlsBlock>()
    .dialer()
    .like("tls")
    .help("TLS to a resolver on a web server: `ca_file`, `cert_file`, `key_file`."),
    Entry::new(
        "resolver_pinned_accounts",
        Texts,
        |draft, given| {
            draft.loaded.operator.pinned_accounts = given.texts()?;
            Ok(())
        },
        |draft| text_list(&draft.loaded.operator.pinned_accounts),
    )
    .help("Keys of the only accounts whose users may connect, in addition to the system account."),
    Entry::text("default_sentinel", |d| &mut d.loaded.operator.default_sentinel)
    .secret()
    .reloads()
    .help("A bearer JWT for clients without one."),
];

/// The block `resolver_preload`: accounts with their tokens.
#[derive(Default)]
struct Preload(Vec<(String, String)>);

impl table::Block for Preload {
    const OPTIONS: &'static [table::Entry<Self>] =
        &[table::Entry::<Self>::unshown("*", Text, |preload, given| {
            let token = operator::token(given.text()?).map_err(|why| given.fault(why))?;
            preload.0.push((given.key.to_owned(), token));
            Ok(())
        })
        .help("A token, by its account.")];
}
