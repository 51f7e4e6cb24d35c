//! Auth callout: a service, which is a client itself, authenticates other clients.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_server::auth::jwt::sign;
use fanline_server::auth::nkey::{KEY_BYTES, KeyKind, PublicKey, SecretKey};
use fanline_server::auth::sealed::{NONCE_BYTES, Sealer};
use fanline_server::auth::{Access, AccessConfig, Account, Callout, User};
use fanline_server::client::{Client, ConnectOptions, Subscription};
use fanline_server::{Auth, Limits, Options};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::operator::{
    account as operator_account, account_with, connect as operator_connect, public,
    server as operator_server, user as operator_user,
};
use crate::raw::{RawClient, TestServer, block_on, options};

const REFUSAL: &str = "-ERR 'Authorization Violation'";
const SUBJECT: &str = "$SYS.REQ.USER.AUTH";
/// Time limit of every wait.
const PATIENT: Duration = Duration::from_secs(20);

fn issuer(number: u8) -> SecretKey {
    SecretKey::new(KeyKind::Account, [number; KEY_BYTES])
}

fn account(name: &str, user: &str) -> Account {
    let mut account = Account::new(name);
    account.users.push(User::new(user, "pw"));
    account
}

fn config(allowed_accounts: &[&str]) -> AccessConfig {
    AccessConfig {
        accounts: vec![account("AUTH", "auth"), account("BIRDS", "tern")],
        callout: Some(Callout {
            issuer: issuer(1).public(),
            account: "AUTH".into(),
            auth_users: vec!["auth".into()],
            allowed_accounts: allowed_accounts.iter().map(|name| (*name).into()).collect(),
            xkey: None,
        }),
        ..AccessConfig::default()
    }
}

fn server(config: AccessConfig, auth_timeout: Duration) -> TestServer {
    let limits = Limits {
        auth_timeout,
        ..Limits::default()
    };
    TestServer::with(Options {
        auth: Auth::Directory(Access::new(config).unwrap().into()),
        limits,
        ..options(2)
    })
}

/// Returns a new curve key of the service.
fn curve_key() -> (EphemeralPrivateKey, PublicKey) {
    let own = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).unwrap();
    let public = own.compute_public_key().unwrap();
    let public = PublicKey::new(KeyKind::Curve, public.as_ref().try_into().unwrap());
    (own, public)
}

/// Returns the claims of a token, without verifying its signature.
fn claims(token: &[u8]) -> Value {
    let token = std::str::from_utf8(token).unwrap();
    let body = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap()
}

/// Runs the service. It admits clients whose password equals their name, to the account BIRDS. `crow` may
/// publish only to `caw`. The response for `liar` has a wrong signature. `nobody` gets no response.
async fn decide(client: &Client, mut requests: Subscription) {
    while let Some(request) = requests.next().await {
        let callout_claims = claims(request.payload());
        let shown = &callout_claims["nats"]["connect_opts"];
        let user = shown["user"].as_str().unwrap_or_default();
        let (server, nkey) = (
            &callout_claims["nats"]["server_id"]["id"],
            &callout_claims["nats"]["user_nkey"],
        );
        assert_eq!(
            (&callout_claims["iss"], &callout_claims["sub"]),
            (server, nkey)
        );
        assert_eq!(callout_claims["aud"], "nats-authorization-request");
        assert_eq!(callout_claims["nats"]["client_info"]["host"], "127.0.0.1");
        let mut nats = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        if user == "crow" {
            nats["pub"] = json!({"allow": ["caw"]});
        }
        let token = json!({"sub": nkey, "aud": "BIRDS", "name": user, "iat": 1, "nats": nats});
        let mut response = json!({"type": "authorization_response", "version": 2});
        match shown["pass"] == shown["user"] {
            true => response["jwt"] = sign(token, &issuer(1)).into(),
            false => response["error"] = "wrong password".into(),
        }
        let response = json!({"sub": nkey, "aud": server, "iat": 1, "nats": response});
        let response = sign(response, &issuer(if user == "liar" { 2 } else { 1 }));
        if user != "nobody" {
            let reply = request.reply().unwrap();
            client.publish(reply, response).await.unwrap();
        }
    }
}

/// Returns the service's response that admits `ada`.
fn let_in(request: &Value) -> String {
    let (server, nkey) = (
        &request["nats"]["server_id"]["id"],
        &request["nats"]["user_nkey"],
    );
    let nats = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    let token = json!({"sub": nkey, "aud": "BIRDS", "name": "ada", "iat": 1, "nats": nats});
    let response = json!({"type": "authorization_response", "version": 2,
        "jwt": sign(token, &issuer(1))});
    sign(
        json!({"sub": nkey, "aud": server, "iat": 1, "nats": response}),
        &issuer(1),
    )
}

/// Runs a test while the service runs.
fn with_service(server: &TestServer, test: impl FnOnce()) {
    let url = format!("nats://auth:pw@{}", server.address());
    let (ready, is_ready) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        // The sender is moved here, so that it is also dropped if the test fails.
        let stop = stop;
        scope.spawn(|| {
            block_on(async {
                let options = ConnectOptions::new(&url).unwrap();
                let client = Client::connect(&options).await.unwrap();
                let requests = client.subscribe(SUBJECT).await.unwrap();
                client.flush().await.unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = decide(&client, requests) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().unwrap();
        test();
        drop(stop);
    });
}

fn connect(server: &TestServer, user: &str, pass: &str) -> RawClient {
    let mut client = RawClient::open(server.address());
    client.expect_info();
    let options = json!({"verbose": false, "pedantic": false, "user": user, "pass": pass});
    client.send(format!("CONNECT {options}\r\nPING\r\n"));
    client
}

fn admitted(server: &TestServer, user: &str, pass: &str) -> RawClient {
    let mut client = connect(server, user, pass);
    assert_eq!(client.line(), "PONG", "{user}");
    // Reads the remaining lines up to the PONG.
    client.settle();
    client
}

/// Returns the next error, and skips other messages.
fn error(client: &mut RawClient) -> String {
    loop {
        let line = client.line();
        if line.starts_with("-ERR") {
            return line;
        }
    }
}

fn refused(server: &TestServer, user: &str, pass: &str) {
    assert_eq!(
        connect(server, user, pass).lines_to_end(),
        [REFUSAL],
        "{user}"
    );
}

#[test]
fn callout_service_admits_clients() {
    let server = server(config(&[]), PATIENT);
    with_service(&server, || {
        let mut ada = admitted(&server, "ada", "ada");
        // A configured user is refused, too, because the service decides.
        refused(&server, "tern", "pw");
        let mut tern = admitted(&server, "tern", "tern");
        let mut auth = admitted(&server, "auth", "pw");
        ada.subscribe("sea", "1");
        ada.settle();
        auth.publish("sea", "from elsewhere");
        auth.settle();
        tern.publish("sea", "fish");
        tern.settle();
        assert_eq!(ada.message().payload, b"fish");
        let mut crow = admitted(&server, "crow", "crow");
        crow.publish("sea", "caw");
        let reply = error(&mut crow);
        assert!(
            reply.contains("Permissions Violation for Publish to \"sea\""),
            "{reply}"
        );
    });
}

#[test]
fn client_rejected_by_the_service_is_disconnected() {
    let server = server(config(&[]), PATIENT);
    with_service(&server, || {
        refused(&server, "ada", "other");
        refused(&server, "liar", "liar");
        refused(&server, "", "x");
    });
}

#[test]
fn client_without_a_response_is_disconnected_in_time() {
    let server = server(config(&[]), Duration::from_secs(1));
    with_service(&server, || {
        let reply = connect(&server, "nobody", "nobody").lines_to_end();
        let timeout = "-ERR 'Authentication Timeout'".to_owned();
        assert!(
            reply == [REFUSAL.to_owned()] || reply == [timeout],
            "{reply:?}"
        );
    });
}

#[test]
fn without_the_service_only_its_own_user_is_admitted() {
    let server = server(config(&[]), Duration::from_secs(1));
    let reply = connect(&server, "ada", "ada").lines_to_end();
    assert!(
        reply.iter().all(|line| line.starts_with("-ERR 'Auth")),
        "{reply:?}"
    );
    refused(&server, "auth", "other");
    let mut auth = admitted(&server, "auth", "pw");
    // Only the server may publish requests to the service.
    auth.publish(SUBJECT, "x");
    let reply = error(&mut auth);
    assert!(
        reply.contains("Permissions Violation for Publish"),
        "{reply}"
    );
}

#[test]
fn service_cannot_place_users_in_other_accounts() {
    let server = server(config(&["AUTH"]), PATIENT);
    admitted(&server, "tern", "pw");
    with_service(&server, || {
        refused(&server, "tern", "other");
        // The service assigns the user to an account that is not permitted.
        refused(&server, "ada", "ada");
    });
}

/// The request is encrypted for the service, so other clients of its account cannot read it. The response may
/// be encrypted, too, or only signed. Any other response refuses the client.
#[test]
fn callout_request_is_sealed_for_the_service() {
    for (how, is_admitted) in [("sealed", true), ("clear", true), ("rubbish", false)] {
        let (own, public) = curve_key();
        let mut config = config(&[]);
        config.callout.as_mut().unwrap().xkey = Some(public);
        let server = server(config, PATIENT);
        block_on(async {
            let url = format!("nats://auth:pw@{}", server.address());
            let service = Client::connect(&ConnectOptions::new(&url).unwrap()).await;
            let service = service.unwrap();
            let mut requests = service.subscribe(SUBJECT).await.unwrap();
            service.flush().await.unwrap();
            let mut ada = connect(&server, "ada", "hush");
            let request = requests.next().await.unwrap();
            let sealed = request.payload();
            assert!(sealed.starts_with(b"xkv1"));
            assert!(!sealed.windows(4).any(|bytes| bytes == b"hush"));
            let theirs = request.headers().unwrap().get("Nats-Server-Xkey").unwrap();
            let theirs = PublicKey::parse_as(KeyKind::Curve, theirs).unwrap();
            let theirs = UnparsedPublicKey::new(&X25519, *theirs.bytes());
            let sealer = agree_ephemeral(own, &theirs, |secret| {
                Sealer::new(secret.try_into().unwrap())
            });
            let sealer = sealer.unwrap();
            let callout_claims = claims(&sealer.open(sealed).unwrap());
            assert_eq!(callout_claims["nats"]["connect_opts"]["pass"], "hush");
            let xkey = callout_claims["nats"]["server_id"]["xkey"]
                .as_str()
                .unwrap();
            assert_eq!(
                PublicKey::parse(xkey).unwrap().bytes().as_slice(),
                theirs.bytes().as_slice()
            );
            let response = let_in(&callout_claims).into_bytes();
            let response = match how {
                "sealed" => sealer.seal(&[7; NONCE_BYTES], &response),
                "clear" => response,
                _ => b"xkv1 and nothing that was sealed".to_vec(),
            };
            service
                .publish(request.reply().unwrap(), response)
                .await
                .unwrap();
            // The calls below block this thread, so the service's client writes its response first.
            service.flush().await.unwrap();
            match is_admitted {
                true => assert_eq!(ada.line(), "PONG", "{how}"),
                false => assert_eq!(ada.lines_to_end(), [REFUSAL], "{how}"),
            }
        });
    }
}

/// In operator mode, the account of the client's token determines the service. The token in the response
/// determines the user's account.
#[test]
fn accounts_have_their_own_callout_services() {
    let auth = account_with(2, 1, |claims| {
        claims["nats"]["authorization"] = json!({
            "auth_users": [public(KeyKind::User, 9)],
            "allowed_accounts": [public(KeyKind::Account, 3)],
        });
    });
    let server = operator_server(
        &[auth, operator_account(3, 1), operator_account(4, 1)],
        None,
    );
    // User 9 is the service itself. User 8 presents a bearer token of the account. Anybody may know this
    // token.
    let mut service = operator_connect(&server, &operator_user(2, |_| {}), 9);
    assert_eq!(service.line(), "PONG");
    service.subscribe(SUBJECT, "1");
    service.send(format!("PUB {SUBJECT} 1\r\nx\r\n"));
    assert!(error(&mut service).contains("Permissions Violation for Publish"));
    let sentinel = operator_user(2, |claims| {
        claims["sub"] = public(KeyKind::User, 8).into();
        claims["nats"]["bearer_token"] = true.into();
    });
    let mut near = operator_connect(&server, &operator_user(3, |_| {}), 9);
    assert_eq!(near.line(), "PONG");
    near.subscribe("sea", "1");
    // The service may assign users to account 3 and to its own account 2, but not to account 4.
    for (account, is_admitted) in [(3, true), (4, false), (2, true)] {
        let mut client = operator_connect(&server, &sentinel, 8);
        let message = service.message();
        let request = claims(&message.payload);
        let (id, nkey) = (
            &request["nats"]["server_id"]["id"],
            &request["nats"]["user_nkey"],
        );
        assert_eq!(request["nats"]["connect_opts"]["jwt"], sentinel.as_str());
        let token = operator_user(account, |claims| claims["sub"] = nkey.clone());
        let nats = json!({"type": "authorization_response", "version": 2, "jwt": token});
        let response = json!({"sub": nkey, "aud": id, "iat": 1, "nats": nats});
        let response = sign(response, &issuer(2));
        service.publish(&message.reply.unwrap(), response);
        match is_admitted {
            true => assert_eq!(client.line(), "PONG", "{account}"),
            false => assert_eq!(client.lines_to_end(), [REFUSAL], "{account}"),
        }
        if is_admitted {
            client.settle();
            client.publish("sea", "fish");
            client.settle();
            let received = near.settle().len();
            assert_eq!(received, usize::from(account == 3), "{account}");
        }
    }
    // An invalid token causes no request.
    let expired = operator_user(2, |claims| {
        claims["sub"] = public(KeyKind::User, 8).into();
        claims["exp"] = 1.into();
        claims["nats"]["bearer_token"] = true.into();
    });
    let mut client = operator_connect(&server, &expired, 8);
    assert_eq!(client.lines_to_end(), [REFUSAL]);
    assert_eq!(service.settle(), []);
}
