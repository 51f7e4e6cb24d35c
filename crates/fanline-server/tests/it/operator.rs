//! Operator mode over real sockets: users of preloaded accounts and of accounts found by the resolver.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_server::auth::jwt::sign;
use fanline_server::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use fanline_server::auth::{Access, AccessConfig, Operators};
use fanline_server::{
    Auth, DirectoryOptions, JetStreamOptions, MqttOptions, Options, ResolverOptions,
};
use serde_json::{Value, json};

use crate::folder::TempFolder;
use crate::mqtt::client::{Hello, MqttClient, V5};
use crate::raw::{RawClient, TestServer, options};

const REFUSAL: &str = "-ERR 'Authorization Violation'";

pub(crate) fn key(kind: KeyKind, number: u8) -> SecretKey {
    SecretKey::new(kind, [number; KEY_BYTES])
}

pub(crate) fn public(kind: KeyKind, number: u8) -> String {
    key(kind, number).public().encode()
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is after 1970").as_secs()
}

pub(crate) fn account(number: u8, operator: u8) -> String {
    account_with(number, operator, |_| {})
}

pub(crate) fn account_with(number: u8, operator: u8, change: impl FnOnce(&mut Value)) -> String {
    let limits = json!({"subs": -1, "data": -1, "payload": -1, "conn": -1, "imports": -1,
        "exports": -1, "wildcards": true, "leaf": -1});
    let nats = json!({"type": "account", "version": 2, "limits": limits});
    let mut claims = json!({"sub": public(KeyKind::Account, number), "iat": now(), "nats": nats});
    change(&mut claims);
    sign(claims, &key(KeyKind::Operator, operator))
}

/// Returns a token of user 9 of an account.
pub(crate) fn user(account: u8, change: impl FnOnce(&mut Value)) -> String {
    let nats = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    let mut claims = json!({"sub": public(KeyKind::User, 9), "iat": now(), "nats": nats});
    change(&mut claims);
    sign(claims, &key(KeyKind::Account, account))
}

/// Returns a server that trusts operator 1, with these preloaded accounts and others in a folder.
pub(crate) fn server(accounts: &[String], dir: Option<PathBuf>) -> TestServer {
    TestServer::with(operated(accounts, dir))
}

/// Returns the options of a server that trusts operator 1, with these preloaded accounts and others in a
/// folder.
pub(crate) fn operated(accounts: &[String], dir: Option<PathBuf>) -> Options {
    let mut operators = Operators::default();
    operators.trust_key(&public(KeyKind::Operator, 1)).unwrap();
    let config = AccessConfig {
        operators: Some(operators),
        ..AccessConfig::default()
    };
    let tokens: Vec<&str> = accounts.iter().map(String::as_str).collect();
    let now = i64::try_from(now()).unwrap();
    let access = Access::new(config)
        .unwrap()
        .with_accounts(&tokens, now)
        .unwrap();
    let folder = dir.map(|dir| {
        ResolverOptions::Directory(DirectoryOptions {
            dir,
            ..DirectoryOptions::default()
        })
    });
    Options {
        auth: Auth::Directory(access.into()),
        resolver: Some(folder.unwrap_or_default()),
        ..options(2)
    }
}

/// Connects with a token, and the nonce signed by a user's key.
pub(crate) fn connect(server: &TestServer, token: &str, signer: u8) -> RawClient {
    let mut client = RawClient::open(server.address());
    let info = client.expect_info();
    let json = info.trim_start_matches("INFO ");
    let info: Value = serde_json::from_str(json).expect("INFO is JSON");
    let nonce = info["nonce"].as_str().expect("there is a nonce to sign");
    let signature = key(KeyKind::User, signer).sign(nonce.as_bytes());
    let options = json!({"verbose": false, "pedantic": false, "jwt": token,
        "sig": URL_SAFE_NO_PAD.encode(signature)});
    client.send(format!("CONNECT {options}\r\nPING\r\n"));
    client
}

fn check(server: &TestServer, token: &str, signer: u8, is_admitted: bool) {
    let mut client = connect(server, token, signer);
    match is_admitted {
        true => assert_eq!(client.line(), "PONG"),
        false => assert_eq!(client.lines_to_end(), [REFUSAL]),
    }
}

#[test]
fn users_of_known_accounts_are_admitted() {
    let server = server(&[account(2, 1)], None);
    check(&server, &user(2, |_| {}), 9, true);
    check(&server, &user(2, |_| {}), 8, false);
    check(&server, &user(3, |_| {}), 9, false);
    check(
        &server,
        &user(2, |claims| claims["exp"] = 1.into()),
        9,
        false,
    );
    check(&server, "", 9, false);
    let elsewhere = user(2, |claims| claims["nats"]["src"] = json!(["10.0.0.0/8"]));
    check(&server, &elsewhere, 9, false);
}

#[test]
fn unknown_accounts_are_looked_up() {
    let folder = TempFolder::new("operator");
    let server = server(&[], Some(folder.0.clone()));
    check(&server, &user(2, |_| {}), 9, false);
    let file = |number| {
        let name = public(KeyKind::Account, number);
        folder.0.join(name).with_extension("jwt")
    };
    fs::write(file(2), account(2, 1)).unwrap();
    // Token 3 is signed by another operator. File 4 contains the token of another account.
    fs::write(file(3), account(3, 7)).unwrap();
    fs::write(file(4), account(2, 1)).unwrap();
    check(&server, &user(2, |_| {}), 9, true);
    check(&server, &user(3, |_| {}), 9, false);
    check(&server, &user(4, |_| {}), 9, false);
}

#[test]
fn accounts_know_nothing_of_each_other() {
    let server = server(&[account(2, 1), account(3, 1)], None);
    let mut near = connect(&server, &user(2, |_| {}), 9);
    let mut far = connect(&server, &user(3, |_| {}), 9);
    for client in [&mut near, &mut far] {
        assert_eq!(client.line(), "PONG");
        client.subscribe("a", "1");
        client.settle();
    }
    near.publish("a", "hi");
    assert_eq!(near.settle().len(), 1);
    assert!(far.settle().is_empty());
}

#[test]
fn expired_account_ends_its_connections() {
    let expiring = account_with(2, 1, |claims| claims["exp"] = (now() + 2).into());
    let server = server(&[expiring], None);
    let mut client = connect(&server, &user(2, |_| {}), 9);
    assert_eq!(client.line(), "PONG");
    // The first PING of a connection may come before.
    let last = client.lines_to_end().pop();
    assert_eq!(
        last.as_deref(),
        Some("-ERR 'Account Authentication Expired'")
    );
    check(&server, &user(2, |_| {}), 9, false);
}

/// Regression: an MQTT client sends the token as its password, and stayed connected after the token had
/// expired.
#[test]
fn expired_token_ends_an_mqtt_connection() {
    let server = TestServer::with(Options {
        jetstream: Some(JetStreamOptions::default()),
        mqtt: Some(MqttOptions::default()),
        ..operated(&[account(2, 1)], None)
    });
    let token = user(2, |claims| {
        claims["exp"] = (now() + 2).into();
        claims["nats"]["bearer_token"] = true.into();
    });
    let hello = Hello {
        user: Some(("any", token.leak())),
        ..Hello::new("device")
    };
    let address = server.handle.addresses().mqtt.expect("MQTT is on");
    let (mut device, _) = MqttClient::connect(address, V5, &hello);
    let last = device.packet().expect("a DISCONNECT");
    assert_eq!((last.first, last.body[0]), (0xE0, 0x87));
    assert_eq!(device.packet(), None);
}

#[test]
fn expired_user_is_disconnected() {
    let server = server(&[account(2, 1)], None);
    let token = user(2, |claims| claims["exp"] = (now() + 2).into());
    let mut client = connect(&server, &token, 9);
    assert_eq!(client.line(), "PONG");
    let last = client.lines_to_end().pop();
    assert_eq!(last.as_deref(), Some("-ERR 'User Authentication Expired'"));
}
