//! Tokens that are admitted, and tokens that are refused.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::auth::nkey::{KEY_BYTES, SecretKey};
use crate::auth::{AccessConfig, ConnectionKind, Dismissal, Grant};

const NOW: i64 = 1_700_000_000;
const NONCE: &str = "abcdefghijklmno";

fn key(kind: KeyKind, number: u8) -> SecretKey {
    SecretKey::new(kind, [number; KEY_BYTES])
}

fn public(kind: KeyKind, number: u8) -> String {
    key(kind, number).public().encode()
}

fn claims(kind: &str, subject: String, nats: Value) -> Value {
    let mut claims = json!({"sub": subject, "iat": NOW - 10, "name": "n", "nats": nats});
    claims["nats"]["type"] = kind.into();
    claims["nats"]["version"] = 2.into();
    claims
}

/// Returns the token of account `number`, signed by operator 1.
fn account(number: u8, nats: Value) -> String {
    let mut nats = nats;
    let limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
        "wildcards": true, "conn": -1, "leaf": -1});
    if nats["limits"].is_null() {
        nats["limits"] = limits;
    }
    let claims = claims("account", public(KeyKind::Account, number), nats);
    jwt::sign(claims, &key(KeyKind::Operator, 1))
}

/// Returns the token of user 9, signed by an account's key.
fn user(signer: u8, nats: Value, change: impl FnOnce(&mut Value)) -> String {
    let mut claims = claims("user", public(KeyKind::User, 9), nats);
    change(&mut claims);
    jwt::sign(claims, &key(KeyKind::Account, signer))
}

fn free() -> Value {
    json!({"subs": -1, "data": -1, "payload": -1})
}

fn operators() -> Operators {
    let mut operators = Operators::default();
    operators.trust_key(&public(KeyKind::Operator, 1)).unwrap();
    operators
}

fn access(accounts: &[String]) -> Access {
    let config = AccessConfig {
        operators: Some(operators()),
        ..AccessConfig::default()
    };
    let tokens: Vec<&str> = accounts.iter().map(String::as_str).collect();
    let access = Access::new(config).unwrap();
    access.with_accounts(&tokens, NOW).unwrap()
}

fn peer() -> Peer {
    Peer {
        ip: "10.1.2.3".into(),
        nonce: NONCE.into(),
        ..Peer::default()
    }
}

/// Returns the rights of user 9, which signs the nonce.
fn admit(access: &Access, token: &str, peer: &Peer) -> Option<Grant> {
    admit_signed(access, token, peer, &key(KeyKind::User, 9))
}

fn admit_signed(access: &Access, token: &str, peer: &Peer, signer: &SecretKey) -> Option<Grant> {
    use base64::Engine as _;
    let signature = signer.sign(NONCE.as_bytes());
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature);
    let shown = Credentials {
        jwt: token,
        sig: &signature,
        ..Credentials::default()
    };
    match access.admit(&shown, peer) {
        Decision::Admitted(grant) => Some(grant),
        Decision::Refused => None,
        Decision::Later(check) => check.perform(NOW),
    }
}

#[test]
fn user_of_a_loaded_account_is_admitted() {
    let access = access(&[account(2, json!({}))]);
    assert!(access.is_required() && access.needs_nonce());
    let token = user(2, free(), |claims| claims["exp"] = (NOW + 60).into());
    let grant = admit(&access, &token, &peer()).unwrap();
    assert_eq!(
        access.account_id(&public(KeyKind::Account, 2)),
        Some(grant.account)
    );
    assert_eq!(*grant.user, public(KeyKind::User, 9));
    assert_eq!(grant.expires_in, Some(Duration::from_secs(60)));
    assert!(grant.rights.is_none());
    assert_eq!(
        access
            .renew(&grant, ConnectionKind::Standard)
            .map(|grant| grant.expires_in),
        Some(grant.expires_in)
    );
}

#[test]
fn unknown_account_is_looked_up() {
    let access = access(&[]);
    let token = user(2, free(), |_| {});
    let shown = Credentials {
        jwt: &token,
        ..Credentials::default()
    };
    let Decision::Later(check) = access.admit(&shown, &peer()) else {
        panic!("the account should be looked up");
    };
    assert_eq!(check.account_needed(), Some(&*public(KeyKind::Account, 2)));
    assert!(check.perform(NOW).is_none());
    let known = access.with_account(&account(2, json!({})), NOW).unwrap();
    assert!(admit(&known, &token, &peer()).is_some());
}

#[test]
fn invalid_tokens_are_refused() {
    let accounts = [account(
        2,
        json!({
            "signing_keys": [public(KeyKind::Account, 3)],
            "revocations": {public(KeyKind::User, 9): NOW - 20},
        }),
    )];
    let access = access(&accounts);
    let of_2 = public(KeyKind::Account, 2);
    let check = |what: &str, token: String, is_in: bool| {
        assert_eq!(admit(&access, &token, &peer()).is_some(), is_in, "{what}");
    };
    let with = |change: fn(&mut Value)| user(2, free(), change);
    check("valid", with(|_| {}), true);
    check("expired", with(|c| c["exp"] = NOW.into()), false);
    check("not yet", with(|c| c["nbf"] = (NOW + 1).into()), false);
    check("revoked", with(|c| c["iat"] = (NOW - 20).into()), false);
    check(
        "elsewhere",
        with(|c| c["nats"]["src"] = json!(["11.0.0.0/8"])),
        false,
    );
    check(
        "from here",
        with(|c| c["nats"]["src"] = json!(["10.0.0.0/8"])),
        true,
    );
    check(
        "another way",
        with(|c| c["nats"]["allowed_connection_types"] = json!(["WEBSOCKET"])),
        false,
    );
    check(
        "no way",
        with(|c| c["nats"]["allowed_connection_types"] = json!(["SMOKE"])),
        false,
    );
    let by_proxy = with(|c| c["nats"]["proxy_required"] = true.into());
    let granted = admit(&access, &by_proxy, &peer());
    assert!(granted.is_some_and(|grant| access.needs_proxy(&grant)));
    check(
        "outside of the allowed times",
        with(|c| c["nats"]["times"] = json!([{"start": "00:00:00", "end": "01:00:00"}])),
        false,
    );
    let names = |account: String| move |c: &mut Value| c["nats"]["issuer_account"] = account.into();
    check(
        "signed by a signing key",
        user(3, free(), names(of_2.clone())),
        true,
    );
    check(
        "signed by an unknown key",
        user(4, free(), names(of_2.clone())),
        false,
    );
    check(
        "signed by a signing key, without issuer_account",
        user(3, free(), |_| {}),
        false,
    );
    check("no token", "x".into(), false);
    check("nothing", String::new(), false);
}

#[test]
fn missing_or_foreign_signature_is_refused() {
    let access = access(&[account(2, json!({}))]);
    let good = user(2, free(), |_| {});
    assert!(admit(&access, &good, &peer()).is_some());
    let thief = key(KeyKind::User, 8);
    assert!(admit_signed(&access, &good, &peer(), &thief).is_none());
    let silent = Peer {
        nonce: String::new(),
        ..peer()
    };
    assert!(admit(&access, &good, &silent).is_none());
}

#[test]
fn bearer_tokens_need_no_signature_unless_disallowed() {
    let bearer = json!({"subs": -1, "data": -1, "payload": -1, "bearer_token": true});
    let token = user(2, bearer, |_| {});
    let thief = key(KeyKind::User, 8);
    let open = access(&[account(2, json!({}))]);
    assert!(admit_signed(&open, &token, &peer(), &thief).is_some());
    let limits = json!({"subs": -1, "payload": -1, "conn": -1, "disallow_bearer": true});
    let barred = access(&[account(2, json!({"limits": limits}))]);
    assert!(admit(&barred, &token, &peer()).is_none());
}

#[test]
fn accounts_must_be_signed_by_an_operator() {
    let access = access(&[]);
    let check = |what: &str, token: String| {
        assert!(access.with_account(&token, NOW).is_err(), "{what}");
    };
    let plain = || claims("account", public(KeyKind::Account, 2), json!({}));
    check(
        "another operator's",
        jwt::sign(plain(), &key(KeyKind::Operator, 7)),
    );
    check("its own", jwt::sign(plain(), &key(KeyKind::Account, 2)));
    let mut expired = plain();
    expired["exp"] = NOW.into();
    check("expired", jwt::sign(expired, &key(KeyKind::Operator, 1)));
    check(
        "a bad key",
        account(2, json!({"signing_keys": [public(KeyKind::User, 2)]})),
    );
    let scope = json!({"kind": "other", "key": public(KeyKind::Account, 3), "template": {}});
    check(
        "an unknown scope",
        account(2, json!({"signing_keys": [scope]})),
    );
    check(
        "a bad export",
        account(
            2,
            json!({"exports": [{"subject": "a..b", "type": "stream"}]}),
        ),
    );
    let few = json!({"limits": {"exports": 0}, "exports": [{"subject": "a", "type": "stream"}]});
    check("too many exports", account(2, few));
}

#[test]
fn operator_tokens_must_be_self_signed() {
    let mut trusted = Operators::default();
    let signed = json!({"signing_keys": [public(KeyKind::Operator, 5)], "system_account": "AS",
        "strict_signing_key_usage": true});
    let own = claims("operator", public(KeyKind::Operator, 4), signed);
    let token = jwt::sign(own.clone(), &key(KeyKind::Operator, 4));
    trusted.trust(&token, NOW).unwrap();
    assert_eq!(trusted.system_account(), Some("AS"));
    let account = |signer| {
        let claims = claims("account", public(KeyKind::Account, 2), json!({}));
        jwt::sign(claims, &key(KeyKind::Operator, signer))
    };
    assert!(trusted.account(&account(5), NOW).is_ok());
    assert!(
        trusted.account(&account(4), NOW).is_err(),
        "with strict signing keys, the main key is not trusted"
    );
    let by_another = jwt::sign(own, &key(KeyKind::Operator, 5));
    assert!(trusted.trust(&by_another, NOW).is_err());
    assert!(trusted.trust_key(&public(KeyKind::Account, 1)).is_err());
}

#[test]
fn scoped_keys_grant_the_rights_of_their_template() {
    let template = json!({
        "pub": {"allow": ["u.{{name()}}.>", "t.{{tag(team)}}"]},
        "sub": {"allow": ["none.{{tag(nothing)}}"], "deny": ["d.{{account-name()}}"]},
        "subs": 3, "data": -1, "payload": 100,
    });
    let scoped = |template: Value| {
        let scope = json!({"kind": "user_scope", "key": public(KeyKind::Account, 3),
            "template": template});
        access(&[account(2, json!({"signing_keys": [scope]}))])
    };
    let of_2 = |nats: Value| {
        let mut nats = nats;
        nats["issuer_account"] = public(KeyKind::Account, 2).into();
        user(3, nats, |_| {})
    };
    let token = of_2(json!({"tags": ["team:red", "team:blue"]}));
    let open = scoped(template);
    let grant = admit(&open, &token, &peer()).unwrap();
    let rights = grant.rights.clone().unwrap();
    for (subject, may) in [
        ("u.n.a", true),
        ("u.m.a", false),
        ("t.red", true),
        ("t.blue", true),
        ("t.x", false),
    ] {
        assert_eq!(rights.may_publish(subject.as_bytes()), may, "{subject}");
    }
    assert!(!rights.may_subscribe(b"a", b"") && !rights.may_subscribe(b"none.a", b""));
    assert_eq!(grant.limits.subscriptions_max, Some(3));
    assert_eq!(grant.limits.payload_bytes_max, Some(100));
    // A user's name in a template must not add wildcards. If a deny list cannot be expanded, the user is
    // refused.
    let named = |name: &str| {
        let nats = json!({"issuer_account": public(KeyKind::Account, 2), "tags": ["team:red"]});
        let token = user(3, nats, |claims| claims["name"] = name.into());
        admit(&open, &token, &peer()).unwrap().rights.unwrap()
    };
    for name in ["*", ">", "x.*", "*.x"] {
        assert!(!named(name).may_publish(b"u.other.a"), "{name}");
        assert!(!named(name).may_publish(b"u.x.y.a"), "{name}");
    }
    assert!(named("a*b.c").may_publish(b"u.a*b.c.d"));
    // The user must have no terms besides the template.
    assert!(admit(&open, &of_2(free()), &peer()).is_none());
    let denies_nothing = json!({"sub": {"deny": ["d.{{tag(nothing)}}"]}});
    assert!(admit(&scoped(denies_nothing), &token, &peer()).is_none());
    let unknown = json!({"pub": {"allow": ["{{secret()}}"]}});
    assert!(admit(&scoped(unknown), &token, &peer()).is_none());
    // If the template changes the allowed addresses, the client must reconnect.
    let elsewhere = scoped(json!({"src": ["11.0.0.0/8"]}));
    assert!(
        elsewhere.renew(&grant, ConnectionKind::Standard).is_none()
            && open.renew(&grant, ConnectionKind::Standard).is_some()
    );
}

#[test]
fn account_tag_is_the_name_in_its_token() {
    let access = access(&[account(2, json!({}))]);
    let found = access.account_id(&public(KeyKind::Account, 2));
    let found = found.and_then(|id| access.account(id)).unwrap();
    assert_eq!(
        (found.tag(), &found.name),
        ("n", &public(KeyKind::Account, 2))
    );
    let global = access.account(AccountId::GLOBAL).unwrap();
    assert_eq!(global.tag(), "$G");
}

#[test]
fn revoked_tokens_are_refused() {
    let before = access(&[account(2, json!({}))]);
    let grant = admit(&before, &user(2, free(), |_| {}), &peer()).unwrap();
    let everybody = account(2, json!({"revocations": {"*": NOW}}));
    let after = before.with_account(&everybody, NOW).unwrap();
    assert!(after.renew(&grant, ConnectionKind::Standard).is_none());
    assert_eq!(after.dismissal(&grant), Dismissal::Revoked);
    let gone = before.without_accounts(&[public(KeyKind::Account, 2)], NOW);
    let gone = gone.unwrap();
    assert!(gone.renew(&grant, ConnectionKind::Standard).is_none());
    assert_eq!(gone.dismissal(&grant), Dismissal::AccountGone);
    let unchanged = before.with_account(&account(4, json!({})), NOW).unwrap();
    assert!(unchanged.renew(&grant, ConnectionKind::Standard).is_some());
}

#[test]
fn users_without_permissions_get_the_default_ones() {
    let access = access(&[account(
        2,
        json!({"default_permissions": {"pub": {"deny": ["x"]}}}),
    )]);
    let grant = admit(&access, &user(2, free(), |_| {}), &peer()).unwrap();
    assert!(!grant.rights.unwrap().may_publish(b"x"));
}

#[test]
fn imports_stay_pending_until_exported() {
    let importer = account(
        2,
        json!({"imports": [{"subject": "a.>", "account": public(KeyKind::Account, 3), "type": "stream"}]}),
    );
    let imports = |access: &Access| {
        let id = access.account_id(&public(KeyKind::Account, 2)).unwrap();
        access.account(id).unwrap().imports.len()
    };
    let alone = access(&[importer]);
    assert_eq!(imports(&alone), 0);
    assert_eq!(alone.missing_exporters(), [public(KeyKind::Account, 3)]);
    let exporter = |exports: Value| account(3, json!({"exports": exports}));
    let both = alone.with_account(
        &exporter(json!([{"subject": "a.>", "type": "stream"}])),
        NOW,
    );
    let both = both.unwrap();
    assert_eq!(imports(&both), 1);
    assert!(both.missing_exporters().is_empty());
    assert_eq!(
        imports(&both.with_account(&exporter(json!([])), NOW).unwrap()),
        0
    );
}

#[test]
fn export_with_required_token_needs_an_activation() {
    let exporter = account(
        3,
        json!({"signing_keys": [public(KeyKind::Account, 6)], "exports": [{
            "subject": "a.>", "type": "stream", "token_req": true,
            "revocations": {public(KeyKind::Account, 5): NOW},
        }]}),
    );
    let activation = |signer: u8, importer: u8, nats: Value, exp: i64| {
        let mut claims = claims("activation", public(KeyKind::Account, importer), nats);
        claims["exp"] = exp.into();
        jwt::sign(claims, &key(KeyKind::Account, signer))
    };
    let says = || json!({"subject": "a.b", "kind": "stream"});
    let named = || json!({"subject": "a.b", "kind": "stream", "issuer_account": public(KeyKind::Account, 3)});
    let check = |what: &str, importer: u8, token: Option<String>, expected: usize| {
        let mut import =
            json!({"subject": "a.b", "account": public(KeyKind::Account, 3), "type": "stream"});
        if let Some(token) = token {
            import["token"] = token.into();
        }
        let access = access(&[
            exporter.clone(),
            account(importer, json!({"imports": [import]})),
        ]);
        let id = access
            .account_id(&public(KeyKind::Account, importer))
            .unwrap();
        assert_eq!(
            access.account(id).unwrap().imports.len(),
            expected,
            "{what}"
        );
    };
    check("no token", 2, None, 0);
    check("its token", 2, Some(activation(3, 2, says(), 0)), 1);
    check(
        "by its signing key",
        2,
        Some(activation(6, 2, named(), 0)),
        1,
    );
    check(
        "by its signing key, without issuer_account",
        2,
        Some(activation(6, 2, says(), 0)),
        0,
    );
    check("another's token", 2, Some(activation(3, 4, says(), 0)), 0);
    check("by itself", 2, Some(activation(2, 2, named(), 0)), 0);
    check("expired", 2, Some(activation(3, 2, says(), NOW)), 0);
    check("revoked", 5, Some(activation(3, 5, says(), 0)), 0);
    let other = json!({"subject": "a.c", "kind": "stream"});
    check("for something else", 2, Some(activation(3, 2, other, 0)), 0);
    let service = json!({"subject": "a.b", "kind": "service"});
    check("for a service", 2, Some(activation(3, 2, service, 0)), 0);
}

#[test]
fn account_token_sets_limits_exports_and_mappings() {
    let access = access(&[account(
        2,
        json!({
            "limits": {"conn": 5, "subs": 6, "payload": 7, "leaf": -1, "wildcards": true, "exports": -1,
                "imports": -1, "tiered_limits": {"R1": {"disk_storage": 1000, "streams": 3}}},
            "mappings": {"a.*": [{"subject": "b.$1"}]},
        }),
    )]);
    let id = access.account_id(&public(KeyKind::Account, 2)).unwrap();
    let account = access.account(id).unwrap();
    assert_eq!(account.limits.connections_max, Some(5));
    assert_eq!(account.limits.subscriptions_max, Some(6));
    assert_eq!(account.limits.payload_bytes_max, Some(7));
    assert_eq!(account.limits.leafnodes_max, None);
    let jetstream = account.jetstream.as_ref().unwrap();
    assert_eq!((jetstream.max_storage, jetstream.max_streams), (1000, 3));
    assert_eq!((jetstream.max_memory, jetstream.max_consumers), (0, -1));
    assert_eq!(jetstream.tiers["R1"].max_storage, 1000);
    assert_eq!(account.mappings[0].source(), "a.*");
}

#[test]
fn tiers_for_other_numbers_of_replicas_allow_no_streams() {
    let of = |limits: Value| {
        let access = access(&[account(2, json!({ "limits": limits }))]);
        let id = access.account_id(&public(KeyKind::Account, 2)).unwrap();
        access.account(id).unwrap().jetstream.clone()
    };
    let limits = of(json!({"tiered_limits": {"R3": {"disk_storage": 1000}}})).unwrap();
    assert_eq!(
        (limits.max_storage, limits.tiers["R3"].max_storage),
        (0, 1000)
    );
    // With tiers, the untiered limits are ignored.
    let both = json!({"disk_storage": 500, "tiered_limits": {"R1": {"disk_storage": 1000}}});
    assert_eq!(of(both).unwrap().max_storage, 1000);
    assert_eq!(of(json!({"tiered_limits": {"R1": {"streams": 3}}})), None);
    assert!(of(json!({"disk_storage": 500})).unwrap().tiers.is_empty());
}

#[test]
fn operator_mode_excludes_configured_users() {
    let access = access(&[account(2, json!({}))]);
    for shown in [
        Credentials::default(),
        Credentials {
            user: "ada",
            pass: "pw",
            ..Credentials::default()
        },
        Credentials {
            auth_token: "t",
            ..Credentials::default()
        },
        Credentials {
            nkey: &public(KeyKind::User, 9),
            ..Credentials::default()
        },
    ] {
        assert!(matches!(access.admit(&shown, &peer()), Decision::Refused));
    }
    let mut config = AccessConfig {
        operators: Some(operators()),
        ..AccessConfig::default()
    };
    config
        .account_mut("A")
        .users
        .push(crate::auth::User::new("ada", "pw"));
    assert!(matches!(
        Access::new(config),
        Err(AccessError::OperatorAndUsers(_))
    ));
}

#[test]
fn clients_without_a_token_use_the_sentinel() {
    let bearer = json!({"subs": -1, "data": -1, "payload": -1, "bearer_token": true});
    let mut operators = operators();
    assert!(operators.set_sentinel("x").is_err());
    operators.set_sentinel(&user(2, bearer, |_| {})).unwrap();
    let config = AccessConfig {
        operators: Some(operators),
        ..AccessConfig::default()
    };
    let access = Access::new(config)
        .unwrap()
        .with_account(&account(2, json!({})), NOW)
        .unwrap();
    let decide = |shown: &Credentials<'_>| match access.admit(shown, &peer()) {
        Decision::Later(check) => check.perform(NOW).is_some(),
        _ => false,
    };
    assert!(decide(&Credentials::default()));
    // With auth callout, the service checks the other credentials.
    assert!(decide(&Credentials {
        user: "ada",
        pass: "pw",
        ..Credentials::default()
    }));
    assert!(!decide(&Credentials {
        jwt: "x",
        ..Credentials::default()
    }));
    let standard = Peer {
        kind: ConnectionKind::WebSocket,
        ..peer()
    };
    let shown = Credentials::default();
    assert!(matches!(
        access.admit(&shown, &standard),
        Decision::Later(_)
    ));
}

#[test]
fn only_users_of_pinned_accounts_are_admitted() {
    let system = public(KeyKind::Account, 4);
    let with = |pinned: &[u8]| {
        let mut operators = operators();
        let keys: Vec<String> = (pinned.iter())
            .map(|number| public(KeyKind::Account, *number))
            .collect();
        operators.pin_accounts(&keys).unwrap();
        Access::new(AccessConfig {
            operators: Some(operators),
            system_account: Some(system.clone()),
            ..AccessConfig::default()
        })
        .unwrap()
    };
    let bearer = json!({"subs": -1, "data": -1, "payload": -1, "bearer_token": true});
    for (pinned, number, expected) in [
        (&[][..], 2, true),
        (&[2, 3], 2, true),
        (&[3], 2, false),
        (&[3], 4, true),
    ] {
        let jwt = user(number, bearer.clone(), |_| {});
        let shown = Credentials {
            jwt: &jwt,
            ..Credentials::default()
        };
        // An account is looked up only if its users are allowed.
        let is_looked_up = matches!(with(pinned).admit(&shown, &peer()), Decision::Later(_));
        assert_eq!(is_looked_up, expected, "{pinned:?} {number}");
    }
    assert!(operators().pin_accounts(&["A".into()]).is_err());
}

#[test]
fn only_operators_delete_accounts() {
    let trusted = operators();
    let doomed = public(KeyKind::Account, 2);
    let check =
        |what: &str, signer: SecretKey, subject: SecretKey, accounts: Value, is_taken: bool| {
            let claims = json!({"sub": subject.public().encode(), "nats": {"accounts": accounts}});
            let outcome = trusted.deletions(&jwt::sign(claims, &signer), NOW);
            assert_eq!(
                outcome.ok(),
                is_taken.then(|| vec![doomed.clone()]),
                "{what}"
            );
        };
    let one = || key(KeyKind::Operator, 1);
    let other = || key(KeyKind::Operator, 7);
    check("valid", one(), one(), json!([doomed]), true);
    check("another operator", other(), other(), json!([doomed]), false);
    check("in another's name", other(), one(), json!([doomed]), false);
    check(
        "an account",
        key(KeyKind::Account, 2),
        key(KeyKind::Account, 2),
        json!([doomed]),
        false,
    );
    check("no list", one(), one(), json!("x"), false);
    check("no account", one(), one(), json!(["../x"]), false);
}

#[test]
fn accounts_service_authenticates_all_but_its_own_users() {
    let with_service = |service: Value| access(&[account(2, json!({"authorization": service}))]);
    let about = |access: &Access, token: &str| match access.admit(
        &Credentials {
            jwt: token,
            ..Credentials::default()
        },
        &peer(),
    ) {
        Decision::Later(check) => check.caller().map(|caller| caller.may_ask(NOW)),
        _ => panic!("it takes time"),
    };
    let bearer = json!({"subs": -1, "data": -1, "payload": -1, "bearer_token": true});
    let token = user(2, bearer.clone(), |_| {});
    let of_8 = json!({"auth_users": [public(KeyKind::User, 8)]});
    assert_eq!(about(&with_service(json!({})), &token), None);
    assert_eq!(about(&with_service(of_8.clone()), &token), Some(true));
    let of_9 = json!({"auth_users": [public(KeyKind::User, 9)]});
    assert_eq!(about(&with_service(of_9), &token), None);
    // The service is not called for an invalid token.
    let expired = user(2, bearer, |claims| claims["exp"] = (NOW - 1).into());
    assert_eq!(about(&with_service(of_8.clone()), &expired), Some(false));
    let unsigned = user(2, free(), |_| {});
    assert_eq!(about(&with_service(of_8.clone()), &unsigned), Some(false));
    let mut wrong = of_8;
    wrong["xkey"] = public(KeyKind::Account, 2).into();
    let known = access(&[]);
    let token = account(2, json!({"authorization": wrong}));
    assert!(known.with_account(&token, NOW).is_err());
}

#[test]
fn loaded_accounts_can_be_removed() {
    let access = access(&[account(2, json!({})), account(3, json!({}))]);
    let token = user(2, free(), |_| {});
    let grant = admit(&access, &token, &peer()).unwrap();
    let forgotten = access
        .without_accounts(&[public(KeyKind::Account, 2)], NOW)
        .unwrap();
    assert!(!forgotten.knows_authority(&public(KeyKind::Account, 2)));
    assert!(forgotten.knows_authority(&public(KeyKind::Account, 3)));
    assert!(forgotten.renew(&grant, ConnectionKind::Standard).is_none());
    assert!(admit(&forgotten, &token, &peer()).is_none());
    let anew = forgotten.with_account(&account(2, json!({})), NOW).unwrap();
    assert!(admit(&anew, &token, &peer()).is_some());
}
