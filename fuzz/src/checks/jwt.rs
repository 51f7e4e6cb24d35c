//! The input is a token. If it begins with `{`, it is the claims of a token, and the check signs them.

use fanline_engine::Peer;
use fanline_engine::auth::jwt::{
    self, AccountClaims, ActivationClaims, Body, GenericClaims, OperatorClaims, Unverified,
    UserClaims,
};
use fanline_engine::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use fanline_engine::auth::{Access, AccessConfig, Credentials, Decision, Operators};
use serde_json::Value;

const NOW: i64 = 1_700_000_000;
const NONCE: &str = "nonce";

/// Checks that every input is read or rejected, and that only tokens of a trusted operator are accepted.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if !text.starts_with('{') {
        return read_all(&text);
    }
    let Ok(claims @ Value::Object(_)) = serde_json::from_str::<Value>(&text) else {
        return;
    };
    for (number, kind) in (1..).zip([KeyKind::Operator, KeyKind::Account, KeyKind::User]) {
        let key = SecretKey::new(kind, [number; KEY_BYTES]);
        let token = jwt::sign(claims.clone(), &key);
        read_all(&token);
        let access = trusting(1);
        let known = access.with_account(&token, NOW);
        assert!(known.is_err() || kind == KeyKind::Operator);
        assert!(trusting(9).with_account(&token, NOW).is_err());
        admit(&known.unwrap_or(access), &token);
    }
}

fn read_all(token: &str) {
    read::<OperatorClaims>(token);
    read::<AccountClaims>(token);
    read::<UserClaims>(token);
    read::<ActivationClaims>(token);
    read::<GenericClaims>(token);
}

fn read<B: Body>(token: &str) {
    let Ok(read) = Unverified::<B>::read(token) else {
        return;
    };
    let issuer = read.peek().issuer;
    assert!(B::ISSUERS.contains(&issuer.kind()));
    assert_eq!(read.verify().is_ok(), jwt::verified::<B>(token).is_ok());
}

/// Returns the access rules of a server that trusts the operator whose key is made from this number.
fn trusting(number: u8) -> Access {
    let mut operators = Operators::default();
    let key = SecretKey::new(KeyKind::Operator, [number; KEY_BYTES]);
    operators
        .trust_key(&key.public().encode())
        .expect("an operator's key");
    let config = AccessConfig {
        operators: Some(operators),
        ..AccessConfig::default()
    };
    Access::new(config).expect("a valid configuration")
}

/// Checks that no token is admitted without a verification, or for an unknown account.
fn admit(access: &Access, token: &str) {
    let shown = Credentials {
        jwt: token,
        ..Credentials::default()
    };
    let peer = Peer {
        nonce: NONCE.into(),
        ..Peer::default()
    };
    match access.admit(&shown, &peer) {
        Decision::Admitted(_) => panic!("a token needs a check"),
        Decision::Refused => {}
        Decision::Later(check) => {
            let is_unknown = check.account_needed().is_some();
            assert!(check.perform(NOW).is_none() || !is_unknown);
        }
    }
}
