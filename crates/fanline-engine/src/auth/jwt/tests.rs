//! Valid and invalid tokens.

use serde_json::{Value, json};

use super::*;
use crate::auth::nkey::KEY_BYTES;

fn key(kind: KeyKind, number: u8) -> SecretKey {
    SecretKey::new(kind, [number; KEY_BYTES])
}

fn public(kind: KeyKind, number: u8) -> String {
    key(kind, number).public().encode()
}

/// Returns a user's token, signed by account 1.
fn user(change: impl FnOnce(&mut Value)) -> String {
    let mut claims = json!({
        "sub": public(KeyKind::User, 2),
        "iat": 100,
        "nats": {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1},
    });
    change(&mut claims);
    sign(claims, &key(KeyKind::Account, 1))
}

/// Returns a token of these parts. Account 1 signs all of it, or only the second part.
fn of_parts(header: &str, payload: &Value, signs_all: bool) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let (header, payload) = (part(header), part(&payload.to_string()));
    let signed = match signs_all {
        true => format!("{header}.{payload}"),
        false => payload.clone(),
    };
    let signature = key(KeyKind::Account, 1).sign(signed.as_bytes());
    format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn claims_are_parsed() {
    let token = user(|claims| {
        claims["name"] = "ada".into();
        claims["exp"] = 200.into();
        claims["nbf"] = 50.into();
        claims["nats"]["pub"] = json!({"allow": ["a.>"], "deny": null});
        claims["nats"]["src"] = json!(["10.0.0.0/8"]);
        claims["nats"]["times"] = Value::Null;
        claims["nats"]["unheard_of"] = json!({"a": [1]});
    });
    let claims = verified::<UserClaims>(&token).unwrap();
    assert_eq!(claims.name, "ada");
    assert_eq!(claims.issuer, key(KeyKind::Account, 1).public());
    assert_eq!(claims.subject, public(KeyKind::User, 2));
    assert_eq!(claims.body.terms.permissions.publish.allow, ["a.>"]);
    assert_eq!(claims.body.terms.src, ["10.0.0.0/8"]);
    assert_eq!(claims.body.terms.subs, -1);
    for (now, holds) in [(49, false), (50, true), (199, true), (200, false)] {
        assert_eq!(claims.holds_at(now), holds, "{now}");
    }
}

#[test]
fn value_of_wrong_type_is_refused() {
    // Ignoring a field of the wrong type would grant everything.
    for (field, value) in [
        ("pub", json!("a.>")),
        ("sub", json!({"deny": "a.>"})),
        ("src", json!(7)),
        ("times", json!("08:00:00")),
        ("bearer_token", json!("yes")),
        ("allowed_connection_types", json!({"a": 1})),
        ("subs", json!("1")),
        ("issuer_account", json!(1)),
    ] {
        let token = user(|claims| claims["nats"][field] = value.clone());
        let error = verified::<UserClaims>(&token).unwrap_err();
        assert!(
            matches!(error, JwtError::Content("payload", _)),
            "{field}: {error}"
        );
    }
}

#[test]
fn errors_name_the_cause() {
    let check = |token: &str, expected: &JwtError| {
        let error = verified::<UserClaims>(token).unwrap_err();
        assert_eq!(error, *expected, "{token:.80}");
    };
    let good = user(|_| {});
    check("", &JwtError::Parts);
    check("a.b", &JwtError::Parts);
    check(&format!("{good}.x"), &JwtError::Parts);
    check(&"x".repeat(JWT_BYTES_MAX + 1), &JwtError::TooLong);
    check(&format!("{}.b.c", "x".repeat(2000)), &JwtError::TooLong);
    check("?.b.c", &JwtError::Encoding("header"));
    check(
        &user(|claims| claims["nats"]["type"] = "account".into()),
        &JwtError::Type("account".into(), "user"),
    );
    check(
        &user(|claims| claims["nats"]["version"] = 3.into()),
        &JwtError::Version(3),
    );
    check(
        &user(|claims| claims["sub"] = public(KeyKind::Account, 2).into()),
        &JwtError::Subject,
    );
    let by_user = sign(
        json!({"sub": public(KeyKind::User, 2), "nats": {"type": "user", "version": 2}}),
        &key(KeyKind::User, 2),
    );
    check(&by_user, &JwtError::Issuer);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    check(
        &format!("{signed}.{}", &signature[4..]),
        &JwtError::Signature,
    );
    let other = user(|claims| claims["iat"] = 101.into());
    let (_, foreign) = other.rsplit_once('.').unwrap();
    check(&format!("{signed}.{foreign}"), &JwtError::Signature);
}

#[test]
fn signature_covers_the_parts_of_its_version() {
    const NEW: &str = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
    const OLD: &str = r#"{"typ":"jwt","alg":"ed25519"}"#;
    let issuer = public(KeyKind::Account, 1);
    let subject = public(KeyKind::User, 2);
    let new = json!({"iss": issuer, "sub": subject, "nats": {"type": "user", "version": 2}});
    let old = json!({
        "iss": issuer, "sub": subject, "type": "user", "issuer_account": "A",
        "nats": {"src": "10.0.0.0/8, 127.0.0.1/32"},
    });
    let read = |header: &str, payload: &Value, signs_all: bool| {
        verified::<UserClaims>(&of_parts(header, payload, signs_all))
    };
    assert!(read(NEW, &new, true).is_ok());
    assert_eq!(read(NEW, &new, false), Err(JwtError::Signature));
    // The algorithm's name does not determine the version.
    assert!(read(OLD, &new, true).is_ok());
    assert_eq!(read(OLD, &new, false), Err(JwtError::Signature));
    let claims = read(OLD, &old, false).unwrap();
    assert_eq!(claims.body.terms.src, ["10.0.0.0/8", "127.0.0.1/32"]);
    assert_eq!(claims.body.issuer_account, "A");
    assert!(read(NEW, &old, false).is_ok());
    assert_eq!(read(OLD, &old, true), Err(JwtError::Signature));
    let without_version = json!({"iss": issuer, "sub": subject, "nats": {"type": "user"}});
    for signs_all in [true, false] {
        let refused = Err(JwtError::Version(0));
        assert_eq!(read(NEW, &without_version, signs_all), refused);
    }
    for (header, algorithm) in [
        (r#"{"typ":"JWT","alg":"none"}"#, "none"),
        (r#"{"typ":"JWT","alg":"HS256"}"#, "HS256"),
        (r#"{"typ":"JWT"}"#, ""),
    ] {
        let refused = Err(JwtError::Algorithm(algorithm.into()));
        assert_eq!(read(header, &new, true), refused, "{header}");
    }
}

/// Reads a token of version 1, in which the type is next to `nats`. Fields that exist since version 2 must
/// have no effect.
fn old<B: Body>(kind: &str, signer: KeyKind, subject: KeyKind, nats: Value) -> Result<B, JwtError> {
    let mut payload = json!({
        "iss": public(signer, 1), "sub": public(subject, 2), "iat": 100, "type": kind,
        "tags": ["a"], "issuer_account": "A", "nats": nats,
    });
    if payload["nats"].is_null() {
        payload.as_object_mut().unwrap().remove("nats");
    }
    let header = r#"{"typ":"jwt","alg":"ed25519"}"#;
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let (header, payload) = (part(header), part(&payload.to_string()));
    let signature = key(signer, 1).sign(payload.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature);
    verified(&format!("{header}.{payload}.{signature}")).map(|claims| claims.body)
}

#[test]
fn version_1_operator_may_have_only_a_name() {
    let read = |nats| old::<OperatorClaims>("operator", KeyKind::Operator, KeyKind::Operator, nats);
    assert_eq!(read(Value::Null), Ok(OperatorClaims::default()));
    let claims = read(
        json!({"signing_keys": ["O"], "system_account": "A", "strict_signing_key_usage": true}),
    );
    let claims = claims.unwrap();
    assert_eq!(claims.signing_keys, ["O"]);
    assert_eq!(claims.system_account, "A");
    assert!(!claims.strict_signing_key_usage);
    assert!(read(json!(5)).is_err());
}

#[test]
fn version_1_account_has_no_jetstream_and_no_scoped_keys() {
    let read = |nats| old::<AccountClaims>("account", KeyKind::Operator, KeyKind::Account, nats);
    let claims = read(json!({
        "limits": {"subs": 1, "conn": 2, "wildcards": true, "disk_storage": -1, "tiered_limits": {"R1": {}}},
        "signing_keys": ["A1"],
        "revocations": {"U": 7},
        "imports": [{"subject": "a", "account": "B", "to": "b", "type": "stream"}],
        "exports": [{"subject": "c", "type": "service", "token_req": true}],
        "default_permissions": {"pub": {"deny": ["x"]}},
        "mappings": {"a": [{"subject": "b"}]},
        "authorization": {"auth_users": ["U"]},
    }));
    let claims = claims.unwrap();
    assert_eq!((claims.limits.subs, claims.limits.conn), (1, 2));
    assert!(claims.limits.wildcards);
    assert_eq!(claims.limits.flat, TierClaims::default());
    assert!(claims.limits.tiered_limits.is_empty());
    assert_eq!(claims.signing_keys, [SignerClaims::Plain("A1".into())]);
    assert_eq!(claims.revocations.get("U"), Some(&7));
    assert_eq!(claims.imports[0].to, "b");
    assert!(claims.exports[0].token_req);
    assert_eq!(claims.default_permissions, PermissionClaims::default());
    assert!(claims.mappings.is_empty() && claims.authorization.auth_users.is_empty());
    assert_eq!(claims.tags, ["a"]);
    let scoped = json!({"signing_keys": [{"kind": "user_scope", "key": "A1"}]});
    assert!(read(scoped).is_err());
}

#[test]
fn version_1_user_without_limits_is_unlimited() {
    let read = |nats| old::<UserClaims>("user", KeyKind::Account, KeyKind::User, nats).unwrap();
    let claims = read(json!({
        "pub": {"allow": ["a"]}, "sub": {"deny": ["b"]}, "resp": {"max": 1, "ttl": 2}, "payload": 9,
        "src": "10.0.0.0/8", "times": [{"start": "08:00:00", "end": "09:00:00"}], "bearer_token": true,
        "max": 3, "proxy_required": true, "allowed_connection_types": ["MQTT"],
    }));
    let terms = claims.terms;
    assert_eq!((terms.subs, terms.data, terms.payload), (-1, -1, 9));
    assert_eq!(terms.permissions.publish.allow, ["a"]);
    assert_eq!(terms.permissions.subscribe.deny, ["b"]);
    assert_eq!(terms.permissions.resp.map(|resp| resp.max), Some(1));
    assert_eq!(terms.src, ["10.0.0.0/8"]);
    assert_eq!(terms.times.len(), 1);
    assert!(terms.bearer_token && !terms.proxy_required);
    assert!(terms.allowed_connection_types.is_empty());
    assert_eq!(
        (claims.issuer_account.as_str(), claims.tags.len()),
        ("A", 1)
    );
    // A user of a scoped key must have no terms. The terms of this user are not empty, because its limits are
    // unlimited.
    assert!(!read(json!({})).terms.is_empty());
}

#[test]
fn version_1_activation_has_its_kind_as_type() {
    let nats = json!({"subject": "a", "type": "service", "max": 1, "payload": 2});
    let claims = old::<ActivationClaims>("activation", KeyKind::Account, KeyKind::Account, nats);
    let claims = claims.unwrap();
    assert_eq!(
        (claims.subject.as_str(), claims.kind.as_str()),
        ("a", "service")
    );
    assert_eq!(claims.issuer_account, "A");
}
