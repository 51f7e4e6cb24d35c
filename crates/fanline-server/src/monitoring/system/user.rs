//! `$SYS.REQ.USER.INFO`: the requester's user and permissions.

use fanline_engine::auth::{Access, Account, Allowed, Permissions};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Headers;
use crate::config::pattern_texts;

/// Header with the requester's identity. The import adds it to requests from other accounts.
const REQUEST_INFO: &str = "Nats-Request-Info";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requester {
    acc: Option<String>,
    user: String,
    /// The user's name in its token.
    user_name: Option<String>,
    /// The permissions as reported to the user.
    permissions: Option<Value>,
    /// Remaining lifetime in nanoseconds.
    expires: Option<u64>,
}

impl Requester {
    fn read(headers: Option<&Headers>) -> Self {
        let info = headers.and_then(|headers| headers.get(REQUEST_INFO));
        let requester = info.and_then(|info| serde_json::from_str(info).ok());
        requester.unwrap_or_default()
    }
}

/// Returns the requester's account, if the request came from another account.
pub(super) fn account_of_asker(headers: Option<&Headers>) -> Option<String> {
    Requester::read(headers).acc
}

/// Returns the identity and permissions of an account's user.
pub(super) fn info(access: &Access, account: &str, headers: Option<&Headers>) -> Value {
    let requester = Requester::read(headers);
    let user = requester.user;
    let known = access.account_id(account).and_then(|id| access.account(id));
    let tag = known.map_or(account, Account::tag);
    let mut info = json!({ "user": user, "account": account, "account_name": tag });
    // Configured permissions are shown as they are configured. Permissions of a token are shown as the header
    // reports them.
    let configured = permissions_of(access, account, &user).map(show);
    if let Some(permissions) = configured.or(requester.permissions) {
        info["permissions"] = permissions;
    }
    if let Some(name) = requester.user_name {
        info["user_name"] = name.into();
    }
    if let Some(left) = requester.expires {
        info["expires"] = left.into();
    }
    info
}

/// Returns the configured permissions of a user. Returns `None` if the user has none, which permits
/// everything.
fn permissions_of<'a>(access: &'a Access, account: &str, user: &str) -> Option<&'a Permissions> {
    let account = access.account(access.account_id(account)?)?;
    let user = account.users.iter().find(|known| known.name() == user)?;
    let own = user.permissions.as_ref();
    let permissions = own.or(account.default_permissions.as_ref())?;
    (*permissions != Permissions::default()).then_some(permissions)
}

/// Formats permissions as nats-server does: no limit is -1, times are in nanoseconds.
fn show(permissions: &Permissions) -> Value {
    let mut shown = json!({});
    let both = [
        ("publish", &permissions.publish),
        ("subscribe", &permissions.subscribe),
    ];
    for (name, allowed) in both {
        if *allowed != Allowed::default() {
            shown[name] = show_allowed(allowed);
        }
    }
    if let Some(responses) = permissions.responses {
        let number = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
        let max = responses.max.map_or(-1, |max| number(max.into()));
        let ttl = responses.expires.map_or(-1, |ttl| number(ttl.as_nanos()));
        shown["responses"] = json!({ "max": max, "ttl": ttl });
    }
    shown
}

fn show_allowed(allowed: &Allowed) -> Value {
    let mut shown = json!({});
    if let Some(allow) = &allowed.allow {
        shown["allow"] = pattern_texts(allow).into();
    }
    if !allowed.deny.is_empty() {
        shown["deny"] = pattern_texts(&allowed.deny).into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use fanline_engine::auth::{AccessConfig, AllowResponses, User};

    use super::*;

    #[test]
    fn permissions_are_those_of_the_user_or_its_account() {
        let mut config = AccessConfig::default();
        let mut ada = User::new("ada", "pw");
        ada.permissions = Some(Permissions {
            publish: Allowed::publish(Some(&["a.>"]), &["a.b"]).expect("subjects"),
            subscribe: Allowed::subscribe(None, &["jobs day"]).expect("subjects"),
            responses: Some(AllowResponses::default()),
        });
        let account = config.account_mut("A");
        account.users = vec![ada, User::new("bob", "pw")];
        account.default_permissions = Some(Permissions {
            publish: Allowed::publish(Some(&[]), &[]).expect("subjects"),
            ..Permissions::default()
        });
        let access = Access::new(config).expect("a directory");
        let shown = |user: &str, account: &str| {
            let mut headers = Headers::new();
            let requester = json!({ "acc": "elsewhere", "user": user }).to_string();
            headers.append(REQUEST_INFO, &requester).expect("a header");
            info(&access, account, Some(&headers))
        };
        let ada = json!({
            "user": "ada", "account": "A", "account_name": "A",
            "permissions": {
                "publish": { "allow": ["a.>"], "deny": ["a.b"] },
                "subscribe": { "deny": ["jobs day"] },
                "responses": { "max": 1, "ttl": 120_000_000_000_i64 },
            },
        });
        assert_eq!(shown("ada", "A"), ada);
        let bob = shown("bob", "A");
        assert_eq!(bob["permissions"], json!({ "publish": { "allow": [] } }));
        let anonymous = json!({ "user": "", "account": "$G", "account_name": "$G" });
        assert_eq!(shown("", "$G"), anonymous);
        assert_eq!(info(&access, "$G", None), anonymous);
    }
}
