//! Auth callout: a NATS service authenticates clients and assigns their accounts and permissions.
//!
//! The server publishes a signed request to [`REQUEST_SUBJECT`] in the service's account, and receives a
//! signed response. The request contains the client's credentials, so only the service may read it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Access;
use super::account::{AccountId, GLOBAL_ACCOUNT};
use super::admit::{Credentials, Decision, Grant, Key};
use super::check::{Check, Proof};
use super::jwt::{self, Claims, JwtError, ResponseToCallout, UserClaims};
use super::nkey::{PublicKey, SecretKey};
use super::operator::{Authority, JwtProof, limits, permissions, stay};
use super::permissions::{Pattern, Permissions};
use super::rights::Rights;
use super::user::ConnectionKind;
use crate::auth::Peer;

/// Subject of requests.
pub const REQUEST_SUBJECT: &str = "$SYS.REQ.USER.AUTH";
/// Audience of requests.
const AUDIENCE: &str = "nats-authorization-request";

/// Configuration of an auth callout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callout {
    /// Public key (`A…`) that signs responses.
    pub issuer: PublicKey,
    /// Account of the service.
    pub account: String,
    /// Users that the server authenticates itself, such as the user of the service.
    pub auth_users: Vec<String>,
    /// Accounts that the service may assign users to; empty allows all.
    pub allowed_accounts: Vec<String>,
    /// Curve key (`X…`) with which requests are encrypted for the service; `None` sends them unencrypted.
    pub xkey: Option<PublicKey>,
}

impl Callout {
    /// Returns whether the service must authenticate a client, given the server's own decision.
    pub(super) fn decides(
        &self,
        access: &Access,
        shown: &Credentials<'_>,
        decision: &Decision,
    ) -> bool {
        let names = [shown.nkey, shown.user, shown.auth_token];
        let name = names.into_iter().find(|name| !name.is_empty());
        if name.is_some_and(|name| self.auth_users.iter().any(|known| known == name)) {
            return false;
        }
        let grant = match decision {
            Decision::Admitted(grant) => Some(grant),
            Decision::Later(check) => check.grant.as_ref(),
            Decision::Refused => None,
        };
        let account = grant.filter(|grant| grant.names_user()).map(|g| g.account);
        // The service does not authenticate users of an account if it may not assign users to that account.
        match account.filter(|account| *account != AccountId::GLOBAL) {
            Some(account) => self.may_use(&access.accounts[account.index()].name),
            None => true,
        }
    }

    /// Returns whether the service may assign users to an account.
    fn may_use(&self, account: &str) -> bool {
        let allowed = &self.allowed_accounts;
        allowed.is_empty() || allowed.iter().any(|known| known == account)
    }

    /// Returns the permissions of an account's users. In the service's account, denies them to publish auth
    /// callout requests.
    pub(super) fn restrict(&self, account: &str, permissions: &Permissions) -> Permissions {
        let mut permissions = permissions.clone();
        if account == self.account {
            deny_requests(&mut permissions);
        }
        permissions
    }
}

/// Denies publishing of auth callout requests, for clients in the service's account.
pub(super) fn deny_requests(permissions: &mut Permissions) {
    let asks = Pattern::parse(REQUEST_SUBJECT);
    permissions.publish.deny.extend(asks);
}

/// A client that the service must authenticate.
pub struct Caller {
    peer: Peer,
    /// Credentials in the field order of [`Credentials`].
    shown: [String; 9],
    /// In operator mode, the client's token. The auth callout service of the token's account then decides.
    token: Option<Box<JwtProof>>,
}

// Credentials are secret.
impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl Caller {
    pub(super) fn check(
        shown: &Credentials<'_>,
        peer: &Peer,
        token: Option<Box<JwtProof>>,
    ) -> Check {
        let shown = [
            shown.user,
            shown.pass,
            shown.auth_token,
            shown.nkey,
            shown.sig,
            shown.jwt,
            shown.name,
            shown.lang,
            shown.version,
        ];
        Check {
            proof: Proof::Callout(Arc::new(Caller {
                peer: peer.clone(),
                shown: shown.map(str::to_owned),
                token,
            })),
            grant: None,
        }
    }

    /// Returns whether the server should send a request: if the client needs a token, the token must be
    /// valid. Verifies two signatures, which takes time.
    pub fn may_ask(&self, now: i64) -> bool {
        let token = self.token.as_ref();
        token.is_none_or(|token| token.perform(now).is_some())
    }

    /// Returns the client's connection.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the client's credentials.
    pub fn shown(&self) -> Credentials<'_> {
        let [user, pass, auth_token, nkey, sig, jwt, name, lang, version] = &self.shown;
        Credentials {
            user,
            pass,
            auth_token,
            nkey,
            sig,
            jwt,
            name,
            lang,
            version,
        }
    }
}

/// The reason why a response admits no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum CalloutError {
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error("the auth callout service refused the client: {0}")]
    Refused(String),
    #[error("the response is not signed by the service")]
    Issuer,
    #[error("the response is for another server or client")]
    Audience,
    #[error("the response has expired or is not valid yet")]
    Expired,
    #[error("account {0:?} is unknown, or the service may not assign users to it")]
    Account(String),
    /// The account is not loaded, but a lookup may find it.
    #[error("account {0:?} is not known yet")]
    AccountNeeded(String),
    #[error(
        "the user may not connect with this kind of connection, from this address, or at this time"
    )]
    Terms,
}

/// The service that authenticates a client.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Account of the service.
    pub account: AccountId,
    /// Curve key with which requests are encrypted for the service, if there is one.
    pub xkey: Option<PublicKey>,
}

/// A response of the service.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Signed token of the response.
    pub token: &'a str,
    /// Whether the response was encrypted by the service, which proves its origin.
    pub is_sealed: bool,
}

/// A request to the service.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Public key of the requesting server.
    pub server_id: &'a str,
    /// Name of the server.
    pub server_name: &'a str,
    /// Version of the server.
    pub server_version: &'a str,
    /// Curve key (`X…`) with which the service may encrypt the response.
    pub xkey: Option<&'a str>,
    /// Connection id of the client.
    pub cid: u64,
    /// A fresh key (`U…`) that identifies the client in the response.
    pub user_nkey: &'a str,
    /// Time of the request, in seconds since 1970.
    pub now: i64,
    /// Time after which a response is useless, in seconds since 1970.
    pub expires_at: i64,
}

impl Question<'_> {
    /// Returns the request, signed with the server's key.
    pub fn request(&self, shown: &Credentials<'_>, peer: &Peer, key: &SecretKey) -> String {
        let mut options = json!({"protocol": 1});
        let texts = [
            ("jwt", shown.jwt),
            ("nkey", shown.nkey),
            ("sig", shown.sig),
            ("auth_token", shown.auth_token),
            ("user", shown.user),
            ("pass", shown.pass),
            ("name", shown.name),
            ("lang", shown.lang),
            ("version", shown.version),
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
                "name": shown.name,
                "kind": "Client",
                "type": client_type(peer.kind),
                "nonce": peer.nonce,
            },
            "connect_opts": options,
        });
        if let Some(xkey) = self.xkey {
            nats["server_id"]["xkey"] = xkey.into();
        }
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

/// Returns nats-server's name for a client's protocol.
fn client_type(kind: ConnectionKind) -> &'static str {
    match kind {
        ConnectionKind::WebSocket => "websocket",
        kind if kind.is_mqtt() => "mqtt",
        _ => "nats",
    }
}

/// The response that admitted a client. After a reload, the server checks whether this response is still
/// valid.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CalloutKey {
    callout: Callout,
    claims: Claims<UserClaims>,
}

// Bearer tokens are secret.
impl std::fmt::Debug for CalloutKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CalloutKey").finish_non_exhaustive()
    }
}

impl CalloutKey {
    /// Returns the client's current rights. Returns `None` if the callout's configuration has changed or the
    /// account was removed.
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
    /// Returns the configuration of the auth callout.
    pub fn callout(&self) -> Option<&Callout> {
        self.callout.as_ref()
    }

    /// Returns the service that authenticates a client, if it is still configured.
    pub fn service_for(&self, caller: &Caller) -> Option<Service> {
        if let Some(token) = &caller.token {
            let xkey = token.authority.service()?.xkey;
            let account = token.account;
            return Some(Service { account, xkey });
        }
        let callout = self.callout.as_ref()?;
        Some(Service {
            account: self.account_id(&callout.account)?,
            xkey: callout.xkey,
        })
    }

    /// Returns the rights that a response grants. Verifies two signatures, so the caller must not be on a
    /// shard's thread.
    ///
    /// # Errors
    ///
    /// If the response admits no client, or does not belong to this request.
    pub fn answered(
        &self,
        response: &Response<'_>,
        question: &Question<'_>,
        caller: &Caller,
        now: i64,
    ) -> Result<Grant, CalloutError> {
        let answer: Claims<ResponseToCallout> = jwt::verified(response.token)?;
        let is_from_service = match (&caller.token, &self.callout) {
            (Some(token), _) => response.is_sealed || signs(&token.authority, &answer),
            (None, Some(callout)) => answer.issuer == callout.issuer,
            (None, None) => false,
        };
        if !is_from_service {
            return Err(CalloutError::Issuer);
        }
        let is_ours = answer.audience == question.server_id && answer.subject == question.user_nkey;
        if !is_ours {
            return Err(CalloutError::Audience);
        }
        if !answer.holds_at(now) {
            return Err(CalloutError::Expired);
        }
        if !answer.body.error.is_empty() {
            return Err(CalloutError::Refused(answer.body.error));
        }
        let claims: Claims<UserClaims> = jwt::verified(&answer.body.jwt)?;
        if claims.subject != question.user_nkey {
            return Err(CalloutError::Audience);
        }
        match (&caller.token, &self.callout) {
            (Some(token), _) => self.put_by_token(&token.authority, claims, caller.peer(), now),
            (None, Some(callout)) => self.put_by_callout(callout, claims, caller.peer(), now),
            (None, None) => Err(CalloutError::Issuer),
        }
    }

    /// Returns the rights of a user that the service in the configuration admits.
    fn put_by_callout(
        &self,
        callout: &Callout,
        claims: Claims<UserClaims>,
        peer: &Peer,
        now: i64,
    ) -> Result<Grant, CalloutError> {
        if claims.issuer != callout.issuer {
            return Err(CalloutError::Issuer);
        }
        if !claims.holds_at(now) {
            return Err(CalloutError::Expired);
        }
        let terms = &claims.body.terms;
        let expires_in = stay(terms, &peer.ip, peer.kind, claims.expires_at, now);
        let expires_in = expires_in.ok_or(CalloutError::Terms)?;
        let key = CalloutKey {
            callout: callout.clone(),
            claims,
        };
        Ok(Grant {
            expires_in,
            ..granted(self, key)?
        })
    }

    /// In operator mode, returns the rights of a user that an account's auth callout service admits. The user
    /// belongs to the account that issued the user's token. This must be the service's own account, or an
    /// account to which the service may assign users.
    fn put_by_token(
        &self,
        caller_authority: &Authority,
        claims: Claims<UserClaims>,
        peer: &Peer,
        now: i64,
    ) -> Result<Grant, CalloutError> {
        let account = match claims.body.issuer_account.as_str() {
            "" => claims.issuer.encode(),
            account => account.to_owned(),
        };
        let service = caller_authority.service().ok_or(CalloutError::Issuer)?;
        if account != caller_authority.account_key() && !service.may_use(&account) {
            return Err(CalloutError::Account(account));
        }
        let Some((id, authority)) = self.authority(&account) else {
            return Err(CalloutError::AccountNeeded(account));
        };
        let way = (peer.ip.as_str(), peer.kind);
        authority
            .admit(id, claims, way, now)
            .ok_or(CalloutError::Terms)
    }
}

/// Returns whether a response is signed by the service's account, or by one of its signing keys.
fn signs(caller_authority: &Authority, answer: &Claims<ResponseToCallout>) -> bool {
    let named = &answer.body.issuer_account;
    let is_named = named.is_empty() || named == caller_authority.account_key();
    is_named && caller_authority.signer(&answer.issuer).is_some()
}

/// Returns the rights of a user that the service admitted.
fn granted(access: &Access, key: CalloutKey) -> Result<Grant, CalloutError> {
    // Like any other user without an account, the user belongs to `$G`.
    let name = match key.claims.audience.as_str() {
        "" => GLOBAL_ACCOUNT,
        name => name,
    };
    let unknown = || CalloutError::Account(name.into());
    if !key.callout.may_use(name) {
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
    permissions = key.callout.restrict(name, &permissions);
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
        account_expiry: None,
        needs_proxy: terms.proxy_required,
        key: Some(Key::Callout(Arc::new(key))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::nkey::{KEY_BYTES, KeyKind};
    use crate::auth::{AccessConfig, Account, User};

    const NOW: i64 = 1_700_000_000;

    fn key(kind: KeyKind, number: u8) -> SecretKey {
        SecretKey::new(kind, [number; KEY_BYTES])
    }

    fn with_user(account: &str, user: &str) -> Account {
        let mut account = Account::new(account);
        account.users.push(User::new(user, "pw"));
        account
    }

    fn access(allowed_accounts: &[&str]) -> Access {
        let config = AccessConfig {
            accounts: vec![with_user("BIRDS", "tern"), with_user("AUTH", "auth")],
            callout: Some(Callout {
                issuer: key(KeyKind::Account, 1).public(),
                account: "AUTH".into(),
                auth_users: vec!["auth".into()],
                allowed_accounts: allowed_accounts.iter().map(|name| (*name).into()).collect(),
                xkey: None,
            }),
            ..AccessConfig::default()
        };
        Access::new(config).unwrap()
    }

    /// Returns the server's decision about a response that contains a user's token. `change` modifies the
    /// claims of the token and of the response. The first account in `signers` signs the token, the second
    /// one the response.
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
            xkey: None,
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
        let caller = Caller {
            peer,
            shown: Default::default(),
            token: None,
        };
        let response = Response {
            token: &response,
            is_sealed: false,
        };
        access.answered(&response, &question, &caller, NOW)
    }

    #[test]
    fn service_authenticates_all_but_its_own_users() {
        let shown = |user, pass| Credentials {
            user,
            pass,
            ..Credentials::default()
        };
        let check = |allowed: &[&str], shown: Credentials<'_>, expected: &str| {
            let found = match access(allowed).admit(&shown, &Peer::default()) {
                Decision::Admitted(_) => "admitted",
                Decision::Refused => "refused",
                Decision::Later(check) => match check.caller() {
                    Some(caller) => {
                        assert_eq!(caller.shown().user, shown.user);
                        "asked"
                    }
                    None => "checked",
                },
            };
            assert_eq!(found, expected, "{}", shown.user);
        };
        check(&[], Credentials::default(), "asked");
        check(&[], shown("nobody", "x"), "asked");
        check(&[], shown("auth", "pw"), "admitted");
        check(&[], shown("auth", "x"), "refused");
        check(&[], shown("tern", "pw"), "asked");
        check(&["AUTH"], shown("tern", "pw"), "admitted");
        check(&["AUTH"], shown("tern", "x"), "asked");
        check(&["BIRDS"], shown("tern", "pw"), "asked");
    }

    #[test]
    fn clients_in_the_services_account_cannot_publish_requests() {
        let access = access(&[]);
        let Decision::Admitted(grant) = access.admit(
            &Credentials {
                user: "auth",
                pass: "pw",
                ..Credentials::default()
            },
            &Peer::default(),
        ) else {
            panic!("the user should be admitted");
        };
        assert!(grant.rights.is_some());
        let put = answer(|user, _| user["aud"] = "AUTH".into(), [1, 1], &access).unwrap();
        assert!(put.rights.is_some());
    }

    #[test]
    fn responses_admit_or_refuse() {
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
    fn invalid_responses_admit_no_client() {
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
    fn request_contains_the_credentials() {
        let server = key(KeyKind::Server, 8);
        let (id, user) = (
            server.public().encode(),
            key(KeyKind::User, 9).public().encode(),
        );
        let question = Question {
            server_id: &id,
            server_name: "s",
            server_version: "1",
            xkey: None,
            cid: 7,
            user_nkey: &user,
            now: NOW,
            expires_at: NOW + 2,
        };
        let shown = Credentials {
            user: "ada",
            pass: "pw",
            name: "till",
            lang: "rust",
            version: "1.2",
            ..Credentials::default()
        };
        let request = question.request(&shown, &Peer::default(), &server);
        let claims = jwt::verified::<jwt::GenericClaims>(&request).unwrap();
        assert_eq!(
            (claims.audience.as_str(), claims.subject.as_str()),
            (AUDIENCE, user.as_str())
        );
        assert_eq!(claims.issuer, server.public());
        let body = &claims.body.0;
        assert_eq!(
            body["connect_opts"],
            json!({"protocol": 1, "user": "ada", "pass": "pw", "name": "till", "lang": "rust",
                "version": "1.2"})
        );
        assert_eq!(body["client_info"]["name"], "till");
        assert_eq!(body["client_info"]["type"], "nats");
        assert_eq!(body["server_id"]["id"], id);
    }
}
