//! `auth_callout { issuer: A…, account: AUTH, auth_users: [ auth ] }`.

use fanline_engine::auth::nkey::{KeyKind, PublicKey};
use fanline_engine::auth::{Callout, GLOBAL_ACCOUNT};
use serde_json::{Value as Json, json};

use crate::config::read::{Given, Read};
use crate::config::table::Kind::Text;
use crate::config::table::{self, Entry, set};

/// The block `auth_callout`.
#[derive(Default)]
pub(in crate::config) struct CalloutBlock {
    issuer: Option<PublicKey>,
    account: Option<String>,
    auth_users: Vec<String>,
    allowed_accounts: Vec<String>,
    xkey: Option<PublicKey>,
}

impl table::Block for CalloutBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "issuer",
            Text,
            |callout, given| {
                let key = key(
                    given,
                    KeyKind::Account,
                    "user to be a valid public account nkey",
                );
                set(&mut callout.issuer, key)
            },
            |callout| json!(callout.issuer.map(|key| key.encode())),
        )
        .help("The public key of the account that signs the service's responses."),
        Entry::<Self>::text("account", |callout| &mut callout.account)
            .alias(&["acc"])
            .default("$G")
            .help("The account of the service."),
        Entry::<Self>::texts("auth_users", |callout| &mut callout.auth_users)
            .alias(&["users"])
            .help("The service's own users, which need no request."),
        Entry::<Self>::texts("allowed_accounts", |callout| &mut callout.allowed_accounts)
            .default("all")
            .help(
                "Accounts that the service may place users in, and whose users it authenticates.",
            ),
        Entry::<Self>::new(
            "xkey",
            Text,
            |callout, given| {
                let key = key(given, KeyKind::Curve, "xkey to be a valid public xkey");
                set(&mut callout.xkey, key)
            },
            |callout| json!(callout.xkey.map(|key| key.encode())),
        )
        .alias(&["key"])
        .help("The service's public key (`X…`), to encrypt requests for."),
    ];
}

/// Reads the settings of auth callout.
pub(in crate::config) fn callout(given: &Given<'_>) -> Read<Callout> {
    let block = table::read(CalloutBlock::default(), given)?;
    let Some(issuer) = block.issuer else {
        return Err(given.fault("Authorization callouts require an issuer to be specified"));
    };
    if block.auth_users.is_empty() {
        return Err(given.fault("Authorization callouts require authorized users to be specified"));
    }
    Ok(Callout {
        issuer,
        account: block.account.unwrap_or_else(|| GLOBAL_ACCOUNT.into()),
        auth_users: block.auth_users,
        allowed_accounts: block.allowed_accounts,
        xkey: block.xkey,
    })
}

/// Returns the settings of auth callout as JSON.
pub(in crate::config) fn show_callout(callout: &Callout) -> Json {
    table::show(CalloutBlock {
        issuer: Some(callout.issuer),
        account: Some(callout.account.clone()),
        auth_users: callout.auth_users.clone(),
        allowed_accounts: callout.allowed_accounts.clone(),
        xkey: callout.xkey,
    })
}

fn key(given: &Given<'_>, kind: KeyKind, what: &str) -> Read<Option<PublicKey>> {
    let text = given.text()?;
    let wrong = || given.fault(format!("Expected callout {what}, got {text:?}"));
    PublicKey::parse_as(kind, text).ok_or_else(wrong).map(Some)
}
