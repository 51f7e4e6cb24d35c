//! Auth callout: a service decides who may connect, and as whom.
//!
//! The server publishes a signed request in the service's account, to [`REQUEST_SUBJECT`], and takes a
//! signed response. What the client has shown is in the request, so that it is for nobody but the service.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Access;
use super::account::GLOBAL_ACCOUNT;
use super::admit::{Credentials, Grant, Key};
use super::jwt::{self, Claims, JwtError, ResponseToCallout, UserClaims};
use super::nkey::{PublicKey, SecretKey};
use super::operator::{limits, permissions, stay};
use super::permissions::Permissions;
use super::rights::Rights;
use crate::shard::Peer;

/// Where requests go.
pub const REQUEST_SUBJECT: &str = "$SYS.REQ.USER.AUTH";
/// For whom requests are.
const AUDIENCE: &str = "nats-authorization-request";

/// Who is asked who may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callout {
    /// Whose key signs responses (`A…`).
    pub issuer: PublicKey,
    /// The account of the service.
    pub account: String,
    /// Users who come in without being asked about: the service itself.
    pub auth_users: Vec<String>,
    /// The accounts in which it may put users; all when empty.
    pub allowed_accounts: Vec<String>,
}

/// Why a response lets nobody in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum CalloutError {
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error("the service says: {0}")]
    Refused(String),
    #[error("the response is not signed by the service")]
    Issuer,
    #[error("the response is for another server or client")]
    Audience,
    #[error("the response does not hold any more, or not yet")]
    Expired,
    #[error("the account {0:?} is not known, or not one for the service to put users in")]
    Account(String),
    #[error("the user may not be connected in this way, from there, or now")]
    Terms,
}

/// What is asked, and by whom.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The server that asks, by its key's text.
    pub server_id: &'a str,
    /// Its name.
    pub server_name: &'a str,
    /// Its version.
    pub server_version: &'a str,
    /// The number of the connection.
    pub cid: u64,
    /// The name that the client is to be known by: a key (`U…`) that nobody had before.
    pub user_nkey: &'a str,
    /// When it is asked, in seconds since 1970.
    pub now: i64,
    /// When an answer is of no use any more.
    pub expires_at: i64,
}

impl Question<'_> {
    /// The request, signed with the server's key.
    pub fn request(&self, shown: &Credentials<'_>, peer: &Peer, key: &SecretKey) -> String {
        let mut options = json!({"protocol": 1});
        let texts = [
            ("jwt", shown.jwt),
            ("nkey", shown.nkey),
            ("sig", shown.sig),
            ("auth_token", shown.auth_token),
            ("user", shown.user),
            ("pass", shown.pass),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            options[name] = text.into();
        }
        let mut nats = json!({
            "type": "authorization_request",
            "version": 2,
            "user_nkey": self.user_nkey,
            "server_id": {
                "name": self.server_name,
                "id": self.server_id,
                "version": self.server_version,
                "host": "",
            },
            "client_info": {
                "host": peer.ip,
                "id": self.cid,
                "user": shown.user,
                "kind": "Client",
                "type": "nats",
                "nonce": peer.nonce,
            },
            "connect_opts": options,
        });
        if let Some(tls) = &peer.tls {
            nats["client_tls"] = json!({"version": tls.version, "cipher": tls.cipher_suite});
        }
        let claims: Value = json!({
            "sub": self.user_nkey,
            "aud": AUDIENCE,
            "iat": self.now,
            "exp": self.expires_at,
            "nats": nats,
        });
        jwt::sign(claims, key)
    }
}

/// By what somebody was let in, to see whether that still holds.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CalloutKey {
    callout: Callout,
    claims: Claims<UserClaims>,
}

// Some tokens need nothing beside them.
impl std::fmt::Debug for CalloutKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CalloutKey").finish_non_exhaustive()
    }
}

impl CalloutKey {
    /// What he has now; `None` when somebody else decides by now, or his account is gone.
    pub(super) fn renew(&self, access: &Access, grant: &Grant) -> Option<Grant> {
        let same = access.callout.as_ref() == Some(&self.callout);
        let renewed = same.then(|| granted(access, self.clone()))?.ok()?;
        Some(Grant {
            expires_in: grant.expires_in,
            ..renewed
        })
    }
}

impl Access {
    /// Who is asked who may connect, if somebody is.
    pub fn callout(&self) -> Option<&Callout> {
        self.callout.as_ref()
    }

    /// What a response grants. It takes the time of two signatures, so it is not for a shard's thread.
    ///
    /// # Errors
    /// When it lets nobody in, or is not one to this question.
    pub fn answered(
        &self,
        response: &str,
        question: &Question<'_>,
        peer: &Peer,
        now: i64,
    ) -> Result<Grant, CalloutError> {
        let callout = self.callout.as_ref().ok_or(CalloutError::Issuer)?;
        let response: Claims<ResponseToCallout> = jwt::verified(response)?;
        if response.issuer != callout.issuer {
            return Err(CalloutError::Issuer);
        }
        let is_ours =
            response.audience == question.server_id && response.subject == question.user_nkey;
        if !is_ours {
            return Err(CalloutError::Audience);
        }
        if !response.holds_at(now) {
            return Err(CalloutError::Expired);
        }
        if !response.body.error.is_empty() {
            return Err(CalloutError::Refused(response.body.error));
        }
        let claims: Claims<UserClaims> = jwt::verified(&response.body.jwt)?;
        if claims.issuer != callout.issuer {
            return Err(CalloutError::Issuer);
        }
        if claims.subject != question.user_nkey {
            return Err(CalloutError::Audience);
        }
        if !claims.holds_at(now) {
            return Err(CalloutError::Expired);
        }
        let ends = [claims.expires_at, None];
        let terms = &claims.body.terms;
        let expires_in = stay(terms, &peer.ip, peer.kind, ends, now).ok_or(CalloutError::Terms)?;
        let key = CalloutKey {
            callout: callout.clone(),
            claims,
        };
        Ok(Grant {
            expires_in,
            ..granted(self, key)?
        })
    }
}

/// What a user has who was let in by the service.
fn granted(access: &Access, key: CalloutKey) -> Result<Grant, CalloutError> {
    // Who is put nowhere is where those are who were given no account.
    let name = match key.claims.audience.as_str() {
        "" => GLOBAL_ACCOUNT,
        name => name,
    };
    let unknown = || CalloutError::Account(name.into());
    let allowed = &key.callout.allowed_accounts;
    if !allowed.is_empty() && !allowed.iter().any(|known| known == name) {
        return Err(unknown());
    }
    let id = access.account_id(name).ok_or_else(unknown)?;
    let account = access.account(id).ok_or_else(unknown)?;
    let terms = &key.claims.body.terms;
    let mut permissions = permissions(&terms.permissions).map_err(|_| CalloutError::Terms)?;
    if permissions == Permissions::default()
        && let Some(default) = &account.default_permissions
    {
        permissions = default.clone();
    }
    let is_all = permissions == Permissions::default();
    let user = match key.claims.name.as_str() {
        "" => key.claims.subject.as_str(),
        name => name,
    };
    Ok(Grant {
        account: id,
        user: user.into(),
        rights: (!is_all).then(|| Arc::new(Rights::new(&permissions))),
        limits: limits(terms),
        expires_in: None,
        needs_proxy: terms.proxy_required,
        key: Some(Key::Callout(Arc::new(key))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::nkey::{KEY_BYTES, KeyKind};
    use crate::access::{AccessConfig, Account, ConnectionKind, Decision};

    const NOW: i64 = 1_700_000_000;

    fn key(kind: KeyKind, number: u8) -> SecretKey {
        SecretKey::new(kind, [number; KEY_BYTES])
    }

    fn access(allowed_accounts: &[&str]) -> Access {
        let config = AccessConfig {
            accounts: vec![Account::new("BIRDS"), Account::new("AUTH")],
            callout: Some(Callout {
                issuer: key(KeyKind::Account, 1).public(),
                account: "AUTH".into(),
                auth_users: vec!["auth".into()],
                allowed_accounts: allowed_accounts.iter().map(|name| (*name).into()).collect(),
            }),
            ..AccessConfig::default()
        };
        Access::new(config).unwrap()
    }

    /// The user's token and the response, changed, and signed by these accounts.
    fn answer(
        change: impl FnOnce(&mut Value, &mut Value),
        signers: [u8; 2],
        access: &Access,
    ) -> Result<Grant, CalloutError> {
        let user_nkey = key(KeyKind::User, 9).public().encode();
        let server_id = key(KeyKind::Server, 8).public().encode();
        let question = Question {
            server_id: &server_id,
            server_name: "s",
            server_version: "1",
            cid: 7,
            user_nkey: &user_nkey,
            now: NOW,
            expires_at: NOW + 2,
        };
        let mut user = json!({"sub": user_nkey, "aud": "BIRDS", "name": "ada", "iat": NOW,
            "nats": {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}});
        let mut response = json!({"sub": user_nkey, "aud": server_id, "iat": NOW,
            "nats": {"type": "authorization_response", "version": 2}});
        change(&mut user, &mut response);
        let user = jwt::sign(user, &key(KeyKind::Account, signers[0]));
        response["nats"]["jwt"] = user.into();
        let response = jwt::sign(response, &key(KeyKind::Account, signers[1]));
        let peer = Peer {
            ip: "10.1.2.3".into(),
            ..Peer::default()
        };
        access.answered(&response, &question, &peer, NOW)
    }

    #[test]
    fn without_an_answer_nobody_comes_in() {
        let decision = access(&[]).admit(&Credentials::default(), &Peer::default());
        assert!(matches!(decision, Decision::Refused));
    }

    #[test]
    fn the_service_decides() {
        let access = access(&[]);
        let grant = answer(|user, _| user["exp"] = (NOW + 9).into(), [1, 1], &access).unwrap();
        assert_eq!(access.account_id("BIRDS"), Some(grant.account));
        assert_eq!(&*grant.user, "ada");
        assert_eq!(grant.expires_in.map(|left| left.as_secs()), Some(9));
        assert!(access.renew(&grant, ConnectionKind::Standard).is_some());
        assert!(
            Access::open()
                .renew(&grant, ConnectionKind::Standard)
                .is_none()
        );
        let nowhere = answer(|user, _| user["aud"] = "".into(), [1, 1], &access).unwrap();
        assert_eq!(access.account_id("$G"), Some(nowhere.account));
    }

    #[test]
    fn what_is_no_answer_lets_nobody_in() {
        type Change = fn(&mut Value, &mut Value);
        let check = |change: Change, signers, allowed: &[&str], expected: CalloutError| {
            let refused = answer(change, signers, &access(allowed)).unwrap_err();
            assert_eq!(refused, expected);
        };
        let as_it_is: Change = |_, _| {};
        check(as_it_is, [1, 2], &[], CalloutError::Issuer);
        check(as_it_is, [2, 1], &[], CalloutError::Issuer);
        check(
            as_it_is,
            [1, 1],
            &["OTHER"],
            CalloutError::Account("BIRDS".into()),
        );
        check(
            |_, response| response["aud"] = "N".into(),
            [1, 1],
            &[],
            CalloutError::Audience,
        );
        check(
            |_, response| response["exp"] = NOW.into(),
            [1, 1],
            &[],
            CalloutError::Expired,
        );
        check(
            |user, _| user["exp"] = NOW.into(),
            [1, 1],
            &[],
            CalloutError::Expired,
        );
        check(
            |user, _| user["aud"] = "NONE".into(),
            [1, 1],
            &[],
            CalloutError::Account("NONE".into()),
        );
        let elsewhere: Change = |user, _| user["nats"]["src"] = json!(["11.0.0.0/8"]);
        check(elsewhere, [1, 1], &[], CalloutError::Terms);
        let refused: Change = |_, response| response["nats"]["error"] = "no".into();
        check(refused, [1, 1], &[], CalloutError::Refused("no".into()));
        let another: Change = |user, _| {
            user["sub"] = key(KeyKind::User, 5).public().encode().into();
        };
        check(another, [1, 1], &[], CalloutError::Audience);
    }

    #[test]
    fn a_request_says_what_was_shown() {
        let server = key(KeyKind::Server, 8);
        let (id, user) = (
            server.public().encode(),
            key(KeyKind::User, 9).public().encode(),
        );
        let question = Question {
            server_id: &id,
            server_name: "s",
            server_version: "1",
            cid: 7,
            user_nkey: &user,
            now: NOW,
            expires_at: NOW + 2,
        };
        let shown = Credentials {
            user: "ada",
            pass: "pw",
            ..Credentials::default()
        };
        let request = question.request(&shown, &Peer::default(), &server);
        let claims = jwt::verified::<jwt::GenericClaims>(&request).unwrap();
        assert_eq!(
            (claims.audience.as_str(), claims.subject.as_str()),
            (AUDIENCE, user.as_str())
        );
        assert_eq!(claims.issuer, server.public());
        let said = &claims.body.0;
        assert_eq!(
            said["connect_opts"],
            json!({"protocol": 1, "user": "ada", "pass": "pw"})
        );
        assert_eq!(said["server_id"]["id"], id);
    }
}
