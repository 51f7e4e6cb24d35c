//! Requests of `nsc push` and `nsc pull` in operator mode, and their access control.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use fanline_server::auth::jwt::sign;
use fanline_server::auth::nkey::KeyKind;
use fanline_server::auth::{Access, AccessConfig, Operators};
use fanline_server::{Auth, DirectoryOptions, Options, ResolverOptions};
use serde_json::{Value, json};

use crate::folder::TempFolder;
use crate::operator::{account, account_with, connect, key, now, public, user};
use crate::raw::{RawClient, TestServer, options};

const LIST: &str = "$SYS.REQ.CLAIMS.LIST";
const PACK: &str = "$SYS.REQ.CLAIMS.PACK";
const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";
const DELETE: &str = "$SYS.REQ.CLAIMS.DELETE";

/// Account 5 is the system account. Account 2 is preloaded, too.
const SYSTEM: u8 = 5;

fn name(number: u8) -> String {
    public(KeyKind::Account, number)
}

fn server(resolver: ResolverOptions) -> TestServer {
    let mut operators = Operators::default();
    operators.trust_key(&public(KeyKind::Operator, 1)).unwrap();
    let config = AccessConfig {
        operators: Some(operators),
        system_account: Some(name(SYSTEM)),
        ..AccessConfig::default()
    };
    let tokens = [account(SYSTEM, 1), account(2, 1)];
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let now = i64::try_from(now()).unwrap();
    let access = Access::new(config).unwrap();
    let access = access.with_accounts(&tokens, now).unwrap();
    TestServer::with(Options {
        auth: Auth::Directory(access.into()),
        resolver: Some(resolver),
        ..options(2)
    })
}

fn in_folder(folder: &TempFolder, change: impl FnOnce(&mut DirectoryOptions)) -> TestServer {
    let mut options = DirectoryOptions {
        dir: folder.0.clone(),
        ..DirectoryOptions::default()
    };
    change(&mut options);
    server(ResolverOptions::Directory(options))
}

/// Returns a client of an account, subscribed to `inbox`.
fn admitted(server: &TestServer, account: u8) -> RawClient {
    let mut client = connect(server, &user(account, |_| {}), 9);
    assert_eq!(client.line(), "PONG");
    client.subscribe("inbox", "1");
    client
}

fn send(client: &mut RawClient, subject: &str, body: &[u8]) {
    client.send(format!("PUB {subject} inbox {}\r\n", body.len()));
    client.send([body, b"\r\n"].concat());
}

/// Sends a request and returns the response.
fn ask(client: &mut RawClient, subject: &str, body: &str) -> Vec<u8> {
    send(client, subject, body.as_bytes());
    client.message().payload
}

fn ask_json(client: &mut RawClient, subject: &str, body: &str) -> Value {
    let answer = ask(client, subject, body);
    let mut answer: Value = serde_json::from_slice(&answer).unwrap();
    assert!(answer["server"]["id"].is_string(), "{answer}");
    answer.as_object_mut().unwrap().remove("server");
    answer
}

fn list(client: &mut RawClient) -> Vec<String> {
    let answer = ask_json(client, LIST, "");
    let mut names: Vec<String> = serde_json::from_value(answer["data"].clone()).unwrap();
    names.sort_unstable();
    names
}

fn sorted(numbers: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = numbers.iter().map(|number| name(*number)).collect();
    names.sort_unstable();
    names
}

fn deletion(accounts: Value, operator: u8) -> String {
    let claims = json!({"sub": public(KeyKind::Operator, operator), "iat": now(),
        "nats": {"accounts": accounts, "type": "generic", "version": 2}});
    sign(claims, &key(KeyKind::Operator, operator))
}

fn updated(account: u8) -> Value {
    json!({"data": {"account": name(account), "code": 200, "message": "jwt updated"}})
}

fn failed(account: Option<&str>, problem: &str) -> Value {
    let mut error = json!({"code": 500, "description": problem});
    if let Some(account) = account {
        error["account"] = account.into();
    }
    json!({ "error": error })
}

#[test]
fn folder_resolver_stores_and_returns_tokens() {
    let folder = TempFolder::new("claims-told");
    let server = in_folder(&folder, |_| {});
    let mut system = admitted(&server, SYSTEM);
    assert_eq!(list(&mut system), sorted(&[2, SYSTEM]));
    let lookup = |number| format!("$SYS.REQ.ACCOUNT.{}.CLAIMS.LOOKUP", name(number));
    assert!(ask(&mut system, &lookup(3), "").is_empty());
    assert_eq!(ask_json(&mut system, UPDATE, &account(3, 1)), updated(3));
    assert_eq!(ask(&mut system, &lookup(3), ""), account_of(&folder, 3));
    assert_eq!(list(&mut system), sorted(&[2, 3, SYSTEM]));
    // An account that was unknown before is admitted.
    admitted(&server, 3);
    // A newer token with revocations disconnects the account's client at once.
    let mut inside = admitted(&server, 3);
    let less = account_with(3, 1, |claims| {
        claims["nats"]["revocations"] = json!({"*": now() + 10});
    });
    let subject = format!("$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE", name(3));
    assert_eq!(ask_json(&mut system, &subject, &less), updated(3));
    assert_eq!(
        inside.lines_to_end(),
        ["-ERR 'User Authentication Revoked'"]
    );
    // The response is a message for each account, and an empty message at the end.
    send(&mut system, PACK, b"");
    let mut packed: Vec<String> = (0..3)
        .map(|_| String::from_utf8(system.message().payload).unwrap())
        .collect();
    packed.sort_unstable();
    let mut expected: Vec<String> = [2, 3, SYSTEM]
        .map(|n| {
            format!(
                "{}|{}",
                name(n),
                String::from_utf8(account_of(&folder, n)).unwrap()
            )
        })
        .into();
    expected.sort_unstable();
    assert_eq!(packed, expected);
    assert!(system.message().payload.is_empty());
}

fn account_of(folder: &TempFolder, number: u8) -> Vec<u8> {
    std::fs::read(folder.0.join(name(number)).with_extension("jwt")).unwrap()
}

#[test]
fn invalid_claims_are_rejected_with_a_reason() {
    let folder = TempFolder::new("claims-wrong");
    let server = in_folder(&folder, |_| {});
    let mut system = admitted(&server, SYSTEM);
    let of_2 = format!("$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE", name(2));
    let good = account(3, 1);
    let second = name(2);
    let (signed, _) = good.rsplit_once('.').unwrap();
    let (_, foreign) = account(2, 1)
        .rsplit_once('.')
        .map(|(a, b)| (a.len(), b.to_owned()))
        .unwrap();
    for (subject, token, account, problem) in [
        (UPDATE, "rubbish".to_owned(), "n/a", "expected 3 chunks"),
        (UPDATE, user(2, |_| {}), "n/a", "not account claim"),
        (
            UPDATE,
            format!("{signed}.{foreign}"),
            "n/a",
            "claim failed V2 signature verification",
        ),
        (
            of_2.as_str(),
            good.clone(),
            second.as_str(),
            "subject does not match jwt content",
        ),
    ] {
        let expected = failed(
            Some(account),
            &format!("jwt update resulted in error - {problem}"),
        );
        assert_eq!(ask_json(&mut system, subject, &token), expected);
    }
    // This token is signed by an untrusted operator.
    let refused = ask_json(&mut system, UPDATE, &account(3, 7));
    let reply = refused["error"]["description"].as_str().unwrap();
    assert!(reply.starts_with("jwt validation failed - "), "{reply}");
    let request = deletion(json!([name(2)]), 1);
    let reply = format!(
        "delete accounts request by {} failed - delete must be enabled in server config",
        public(KeyKind::Operator, 1)
    );
    assert_eq!(
        ask_json(&mut system, DELETE, &request),
        failed(None, &reply)
    );
    assert_eq!(list(&mut system), sorted(&[2, SYSTEM]));
    // Requests of users of other accounts are ignored.
    let mut other = admitted(&server, 2);
    for subject in [LIST, PACK, UPDATE, DELETE, of_2.as_str()] {
        send(&mut other, subject, good.as_bytes());
    }
    assert_eq!(other.settle(), []);
    assert_eq!(list(&mut system), sorted(&[2, SYSTEM]));
}

#[test]
fn accounts_are_deleted_where_that_is_allowed() {
    let folder = TempFolder::new("claims-deleted");
    let server = in_folder(&folder, |options| options.allow_delete = true);
    let mut system = admitted(&server, SYSTEM);
    let mut inside = admitted(&server, 2);
    let by = |operator| public(KeyKind::Operator, operator);
    for (token, by, problem) in [
        (deletion(json!([name(2)]), 7), by(7), "not trusted"),
        (deletion(json!("x"), 1), by(1), "malformed request"),
        (deletion(json!(["../x"]), 1), by(1), "malformed request"),
        (
            deletion(json!([name(SYSTEM)]), 1),
            by(1),
            "not allowed to delete system account",
        ),
        ("x".to_owned(), String::new(), "expected 3 chunks"),
    ] {
        let reply = format!("delete accounts request by {by} failed - {problem}");
        assert_eq!(ask_json(&mut system, DELETE, &token), failed(None, &reply));
    }
    let done = ask_json(
        &mut system,
        DELETE,
        &deletion(json!([name(2), name(44)]), 1),
    );
    assert_eq!(
        done["data"],
        json!({"code": 200, "message": "deleted 2 accounts"})
    );
    // The first PING of a connection may come before.
    let last = inside.lines_to_end().pop();
    assert_eq!(
        last.as_deref(),
        Some("-ERR 'Account Authentication Expired'")
    );
    assert_eq!(list(&mut system), sorted(&[SYSTEM]));
    let mut gone = connect(&server, &user(2, |_| {}), 9);
    assert_eq!(gone.lines_to_end(), ["-ERR 'Authorization Violation'"]);
    assert_eq!(ask_json(&mut system, UPDATE, &account(2, 1)), updated(2));
    admitted(&server, 2);
}

#[test]
fn memory_resolver_updates_known_accounts() {
    let server = server(ResolverOptions::Memory);
    let mut system = admitted(&server, SYSTEM);
    let of = |number| format!("$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE", name(number));
    let mut inside = admitted(&server, 2);
    let less = account_with(2, 1, |claims| {
        claims["nats"]["revocations"] = json!({"*": now() + 10});
    });
    let skipped = ask_json(&mut system, &of(3), &account(3, 1));
    assert_eq!(skipped["data"]["message"], "jwt update skipped");
    assert_eq!(ask_json(&mut system, &of(2), &less), updated(2));
    assert_eq!(
        inside.lines_to_end(),
        ["-ERR 'User Authentication Revoked'"]
    );
}

/// A client's account expires when the account's current token expires, even if an earlier token admitted the
/// client.
#[test]
fn newer_account_token_moves_the_expiry_of_its_clients() {
    let server = server(ResolverOptions::Memory);
    let mut system = admitted(&server, SYSTEM);
    let mut inside = admitted(&server, 2);
    let update = format!("$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE", name(2));
    let until = |seconds: u64| {
        account_with(2, 1, move |claims| {
            claims["exp"] = (now() + seconds).into();
        })
    };
    for seconds in [1, 600] {
        assert_eq!(ask_json(&mut system, &update, &until(seconds)), updated(2));
    }
    inside.settle();
    assert_eq!(ask_json(&mut system, &update, &until(2)), updated(2));
    // The first PING of a connection may come before.
    let last = inside.lines_to_end().pop();
    assert_eq!(
        last.as_deref(),
        Some("-ERR 'Account Authentication Expired'")
    );
}

#[test]
fn a_newer_token_in_the_folder_counts_after_a_restart() {
    let folder = TempFolder::new("claims-restart");
    let revoked = account_with(2, 1, |claims| {
        claims["iat"] = (now() + 5).into();
        claims["nats"]["revocations"] = json!({"*": now() + 10});
    });
    {
        let server = in_folder(&folder, |_| {});
        let mut system = admitted(&server, SYSTEM);
        assert_eq!(ask_json(&mut system, UPDATE, &revoked), updated(2));
    }
    let server = in_folder(&folder, |_| {});
    let mut refused = connect(&server, &user(2, |_| {}), 9);
    assert_eq!(refused.lines_to_end(), ["-ERR 'Authorization Violation'"]);
}

/// `nats account info` shows a user the permissions and expiry of its token.
#[test]
fn user_info_reports_claims_of_tokens() {
    const INFO: &str = "$SYS.REQ.USER.INFO";
    let server = server(ResolverOptions::Memory);
    let token = user(2, |claims| {
        claims["name"] = "ada".into();
        claims["exp"] = (now() + 600).into();
        claims["nats"]["pub"] = json!({"allow": [INFO], "deny": ["b"]});
        claims["nats"]["resp"] = json!({"max": 2, "ttl": 1_000_000_000});
    });
    let mut client = connect(&server, &token, 9);
    assert_eq!(client.line(), "PONG");
    client.subscribe("inbox", "1");
    let reply = &ask_json(&mut client, INFO, "")["data"];
    assert_eq!(reply["user"], public(KeyKind::User, 9).as_str());
    assert_eq!(reply["user_name"], "ada");
    assert_eq!(reply["account"], name(2).as_str());
    let permissions = json!({
        "publish": {"allow": [INFO], "deny": ["b"]},
        "responses": {"max": 2, "ttl": 1_000_000_000},
    });
    assert_eq!(reply["permissions"], permissions);
    let left = reply["expires"].as_u64().expect("a time");
    assert!((1..=600_000_000_000).contains(&left), "{left}");
    // A user without restrictions gets no limits in the response.
    let reply = &ask_json(&mut admitted(&server, 2), INFO, "")["data"];
    assert!(
        reply["permissions"].is_null() && reply["expires"].is_null(),
        "{reply}"
    );
}
