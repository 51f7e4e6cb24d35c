//! Shows users and accounts. Passwords are there: who shows them to anybody masks them.

use fanline_engine::auth::{
    AccessConfig, Account, Allowed, ExportKind, Identity, ImportKind, Password, Pattern,
    Permissions, User,
};
use serde_json::{Value as Json, json};

/// Shows everything that is set.
pub(in crate::config) fn show(access: &AccessConfig) -> Json {
    let accounts = access.accounts.iter();
    let accounts: serde_json::Map<String, Json> = accounts
        .map(|account| (account.name.clone(), show_account(account)))
        .collect();
    json!({
        "token": access.token.as_ref().map(show_password),
        "accounts": accounts,
        "proxies": (!access.proxies.is_empty()).then(|| {
            let keys = access.proxies.iter().map(|key| json!({ "key": key.encode() }));
            json!({ "trusted": keys.collect::<Vec<_>>() })
        }),
        "auth_callout": access.callout.as_ref().map(|callout| json!({
            "issuer": callout.issuer.encode(),
            "account": callout.account,
            "auth_users": callout.auth_users,
            "allowed_accounts": callout.allowed_accounts,
            "xkey": callout.xkey.map(|xkey| xkey.encode()),
        })),
    })
}

fn show_account(account: &Account) -> Json {
    json!({
        "nkey": account.nkey,
        "users": account.users.iter().map(show_user).collect::<Vec<_>>(),
        "default_permissions": account.default_permissions.as_ref().map(show_permissions),
        "limits": {
            "max_connections": account.limits.connections_max,
            "max_subscriptions": account.limits.subscriptions_max,
            "max_payload": account.limits.payload_bytes_max,
            "max_leafnodes": account.limits.leafnodes_max,
        },
        "jetstream": account.jetstream.as_ref().map(|limits| format!("{limits:?}")),
        "exports": account.exports.iter().map(|export| json!({
            "kind": match export.kind {
                ExportKind::Stream => "stream".into(),
                ExportKind::Service { .. } => format!("{:?}", export.kind),
            },
            "subject": export.subject,
            "accounts": export.accounts,
            "account_token_position": export.account_token_position,
            "allow_trace": export.allow_trace,
        })).collect::<Vec<_>>(),
        "imports": account.imports.iter().map(|import| json!({
            "kind": if import.kind == ImportKind::Stream { "stream" } else { "service" },
            "share": import.kind == (ImportKind::Service { share: true }),
            "account": import.account,
            "subject": import.subject,
            "to": import.to,
            "allow_trace": import.allow_trace,
        })).collect::<Vec<_>>(),
        "mappings": account.mappings.iter().map(|mapping| json!({
            "source": mapping.source(),
            "destinations": mapping.destinations().iter().map(|destination| json!({
                "destination": String::from_utf8_lossy(destination.transform.destination()),
                "weight": destination.weight,
                "cluster": destination.cluster,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "msg_trace": account.trace.as_ref().map(|to| json!({"dest": to.dest, "sampling": to.percent})),
    })
}

/// Shows a user with its password.
pub(in crate::config) fn show_user(user: &User) -> Json {
    let (name, password, nkey) = match &user.identity {
        Identity::Name(name, password) => (Some(name), Some(show_password(password)), None),
        Identity::Nkey(nkey) => (None, None, Some(nkey)),
    };
    let kinds = user.connection_kinds.iter();
    json!({
        "user": name,
        "password": password,
        "nkey": nkey,
        "permissions": user.permissions.as_ref().map(show_permissions),
        "allowed_connection_types": kinds.map(|kind| kind.name()).collect::<Vec<_>>(),
        "proxy_required": user.proxy_required,
    })
}

fn show_password(password: &Password) -> &str {
    match password {
        Password::Plain(text) | Password::Bcrypt(text) => text,
    }
}

fn show_permissions(permissions: &Permissions) -> Json {
    json!({
        "publish": show_allowed(&permissions.publish),
        "subscribe": show_allowed(&permissions.subscribe),
        "allow_responses": permissions.responses.map(|responses| json!({
            "max": responses.max,
            "expires": responses.expires.map(crate::config::show::duration),
        })),
    })
}

fn show_allowed(allowed: &Allowed) -> Json {
    let texts = |patterns: &[Pattern]| -> Vec<String> {
        let text = |pattern: &Pattern| match pattern.queue() {
            Some(queue) => format!("{} {queue}", pattern.subject()),
            None => pattern.subject().to_owned(),
        };
        patterns.iter().map(text).collect()
    };
    json!({
        "allow": allowed.allow.as_deref().map(texts),
        "deny": texts(&allowed.deny),
    })
}
