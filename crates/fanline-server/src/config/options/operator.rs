//! Operator mode: whose word is taken for what accounts there are, and where they are found.

use serde_json::{Value as Json, json};

use super::tls;
use crate::config::operator::{self, Resolver};
use crate::config::table::Kind::{Any, Block, Bool, Duration, Integer, Path, Text, Texts};
use crate::config::table::{Entry, within, works};

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "operator",
        Texts,
        |draft, given| {
            for text in given.texts()? {
                let token = operator::token(&text).map_err(|why| given.fault(why))?;
                draft.loaded.operator.operators.push(token);
            }
            Ok(())
        },
        |loaded| match loaded.operator.operators.as_slice() {
            [] => Json::Null,
            tokens => json!(tokens),
        },
    )
    .alias(&["operators", "root", "roots", "root_operator", "root_operators"])
    .help("Operators, whose accounts are those of this server: JWTs, or files that hold one each."),
    works(
        "trusted_keys",
        Texts,
        |draft, given| {
            draft.loaded.operator.trusted_keys = given.texts()?;
            Ok(())
        },
        |loaded| match loaded.operator.trusted_keys.as_slice() {
            [] => Json::Null,
            keys => json!(keys),
        },
    )
    .alias(&["trusted"])
    .help("Keys of operators, in place of their JWTs. Users and a token have no effect beside them; without `resolver`, the only accounts are those of `resolver_preload`."),
    works(
        "resolver",
        Any,
        |draft, given| {
            draft.loaded.operator.resolver = Some(Resolver::read(given)?);
            Ok(())
        },
        |loaded| match &loaded.operator.resolver {
            None => Json::Null,
            Some(resolver) => resolver.show(),
        },
    )
    .alias(&["account_resolver", "accounts_resolver"])
    .help("Where accounts are found: `MEMORY`, `URL(…)`, or a block about a folder."),
    within("resolver.type", Text)
        .limit("`memory`, `full`, `cache`")
        .help("Of what kind it is."),
    within("resolver.dir", Path).help("The folder: an account's JWT is in `<account>.jwt`."),
    within("resolver.allow_delete", Bool)
        .default("false")
        .help("JWTs may be deleted."),
    within("resolver.hard_delete", Bool)
        .default("false")
        .help("What is deleted is not kept beside."),
    within("resolver.interval", Duration).help("For clusters."),
    within("resolver.timeout", Duration).help("For clusters."),
    within("resolver.limit", Integer)
        .default("0")
        .help("The most JWTs; 0 is any number."),
    within("resolver.ttl", Duration).help("How long a JWT of a cache is good for."),
    works(
        "resolver_preload",
        Block,
        |draft, given| {
            for field in given.fields()? {
                let token = operator::token(field.text()?).map_err(|why| field.fault(why))?;
                let account = field.key.to_owned();
                draft.loaded.operator.preload.push((account, token));
            }
            Ok(())
        },
        |loaded| {
            let preload = loaded.operator.preload.iter();
            let accounts: serde_json::Map<String, Json> = preload
                .map(|(account, token)| (account.clone(), json!(token)))
                .collect();
            match accounts.is_empty() {
                true => Json::Null,
                false => accounts.into(),
            }
        },
    )
    .reloads()
    .help("JWTs of accounts that are known from the start."),
    within("resolver_preload.*", Text).help("One, by its account."),
    works(
        "resolver_tls",
        Block,
        |draft, given| {
            draft.loaded.operator.resolver_tls = Some(tls::read(given)?);
            Ok(())
        },
        |loaded| {
            let tls = loaded.operator.resolver_tls.as_ref();
            tls.map_or(Json::Null, tls::show)
        },
    )
    .like("tls")
    .help("TLS towards a web server with accounts: `ca_file`, `cert_file`, `key_file`."),
    works(
        "resolver_pinned_accounts",
        Texts,
        |draft, given| {
            draft.loaded.operator.pinned_accounts = given.texts()?;
            Ok(())
        },
        |loaded| match loaded.operator.pinned_accounts.as_slice() {
            [] => Json::Null,
            keys => json!(keys),
        },
    )
    .help("The only accounts, by their keys, whose users are let in; those of the system account are, too."),
    works(
        "default_sentinel",
        Text,
        |draft, given| {
            draft.loaded.operator.sentinel = given.some_text()?;
            Ok(())
        },
        |loaded| json!(loaded.operator.sentinel),
    )
    .secret()
    .reloads()
    .help("The JWT of those who show none: a bearer's."),
];
