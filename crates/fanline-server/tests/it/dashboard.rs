//! The dashboard's HTTP API and WebSocket: files, sign-in, and access of each visitor.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_server::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use fanline_server::auth::{Access, AccessConfig, Permissions, SALT_BYTES, User, hash_password};
use fanline_server::{Auth, Dashboard, JetStreamOptions, Options};
use serde_json::{Value, json};

use crate::folder::TempFolder;
use crate::operator;
use crate::raw::{RawClient, Received, TestServer, options};
use crate::transports::{ByteClient, connect};
use crate::websocket::Page;

const ADA: &str = r#"{"user":"ada","password":"s3cret"}"#;

fn server(options_of: impl FnOnce(&mut Options)) -> TestServer {
    let mut options = Options {
        monitoring: Some(("127.0.0.1".into(), 0)),
        server_name: Some("shown".into()),
        ..options(2)
    };
    options_of(&mut options);
    TestServer::with(options)
}

fn with_ada(dashboard: Dashboard) -> TestServer {
    server(|options| {
        options.dashboard = dashboard;
        options.auth = Auth::User {
            name: "ada".into(),
            password: "s3cret".into(),
        };
    })
}

/// Returns a server with accounts of Ada and Bob, and the system account.
fn with_accounts() -> TestServer {
    let mut config = AccessConfig::default();
    let hash = hash_password(4, [7; SALT_BYTES], "s3cret").unwrap();
    config.account_mut("A").users = vec![User::new("ada", hash.as_str())];
    config.account_mut("B").users = vec![User::new("bob", "b0b")];
    config.account_mut("$SYS").users = vec![User::new("root", "r00t")];
    let access = Access::new(config).unwrap();
    server(|options| {
        options.dashboard = Dashboard::Writable;
        options.auth = Auth::Directory(Arc::new(access));
    })
}

fn monitoring(server: &TestServer) -> SocketAddr {
    server.handle.addresses().monitoring.unwrap()
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }
}

/// An open page of the dashboard, signed in or not.
#[derive(Clone)]
struct Visitor {
    address: SocketAddr,
    session: String,
}

impl Visitor {
    fn new(server: &TestServer) -> Self {
        Visitor {
            address: monitoring(server),
            session: String::new(),
        }
    }

    #[track_caller]
    fn signed_in(server: &TestServer, credentials: &str) -> Self {
        let mut visitor = Visitor::new(server);
        let reply = visitor.ask("POST", "session", credentials);
        assert_eq!(reply.status, 200, "{}", reply.body);
        visitor.session = reply.json()["session"].as_str().unwrap().into();
        visitor
    }

    fn request(&self, start: &str, headers: &str, body: &str) -> Reply {
        let mut connection = ByteClient::new(connect(self.address));
        let host = self.address;
        let length = body.len();
        connection.send(format!(
            "{start} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             {headers}\r\n{body}"
        ));
        let text = connection.read_to_end();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.into(),
        }
    }

    fn ask(&self, method: &str, name: &str, body: &str) -> Reply {
        let mut headers = "Fanline-Dashboard: 1\r\n".to_owned();
        if !self.session.is_empty() {
            headers += &format!("Authorization: Bearer {}\r\n", self.session);
        }
        self.request(&format!("{method} /dashboard/api/{name}"), &headers, body)
    }

    #[track_caller]
    fn get(&self, name: &str) -> Value {
        let reply = self.ask("GET", name, "");
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
        reply.json()
    }

    #[track_caller]
    fn websocket(&self) -> RawClient<Page<TcpStream>> {
        let reply = self.ask("POST", "ticket", "");
        assert_eq!(reply.status, 200, "{}", reply.body);
        let ticket = reply.json()["ticket"].as_str().unwrap().to_owned();
        let target = format!("/dashboard/ws?ticket={ticket}");
        let mut client = RawClient::over(Page::at(&target, connect(self.address), ""));
        client.expect_info();
        client.send("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n");
        client.settle();
        client
    }
}

/// Returns the error after a client has sent a frame.
fn error_after(client: &mut RawClient<Page<TcpStream>>, sent: &str) -> String {
    client.send(sent);
    loop {
        match client.next() {
            Some(Received::Line(line)) if line.starts_with("INFO ") || line == "PING" => {}
            Some(Received::Line(line)) => return line,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_page_and_its_files_are_served() {
    let server = server(|_| {});
    let visitor = Visitor::new(&server);
    let page = visitor.request("GET /", "", "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("dashboard/app.js"), "{}", page.body);
    for wanted in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "etag: ",
        "content-type: text/html",
    ] {
        assert!(page.head.contains(wanted), "{wanted}: {}", page.head);
    }
    for (target, status) in [
        ("/dashboard", 308),
        ("/dashboard/", 308),
        ("/dashboard/app.js", 200),
        ("/dashboard/vendor/preact-htm.js", 200),
        ("/dashboard/none.js", 404),
        ("/dashboard/../Cargo.toml", 404),
        ("/dashboards", 404),
    ] {
        let reply = visitor.request(&format!("GET {target}"), "", "");
        assert_eq!(reply.status, status, "{target}");
    }
    let tag = page.head.lines().find(|line| line.starts_with("etag: "));
    assert!(tag.is_some());
}

#[test]
fn it_can_be_turned_off() {
    let server = server(|options| options.dashboard = Dashboard::Off);
    let visitor = Visitor::new(&server);
    let page = visitor.request("GET /", "", "");
    assert!(page.body.contains("<h1>Fanline</h1>") && !page.body.contains("app.js"));
    for target in ["/dashboard", "/dashboard/app.js", "/dashboard/api/session"] {
        let reply = visitor.request(&format!("GET {target}"), "Fanline-Dashboard: 1\r\n", "");
        assert_eq!(reply.status, 404, "{target}");
    }
}

#[test]
fn an_open_server_shows_itself_to_everybody() {
    let server = server(|_| {});
    let visitor = Visitor::new(&server);
    let who = visitor.get("session");
    for (key, value) in [
        ("account", json!("$G")),
        ("sees_server", json!(true)),
        ("signed_in", json!(false)),
        ("may_write", json!(false)),
        ("may_kick", json!(false)),
        ("server_name", json!("shown")),
    ] {
        assert_eq!(who[key], value, "{key}");
    }
    let mut client = server.client();
    client.subscribe("a.*", "1");
    client.publish("a.b", "hello");
    client.settle();
    let overview = visitor.get("overview");
    assert_eq!(overview["connections"], 1);
    assert_eq!(
        (&overview["in_msgs"], &overview["in_bytes"]),
        (&json!(1), &json!(5))
    );
    assert!(overview["process"]["memory_bytes"].is_u64(), "{overview}");
    assert_eq!(overview.get("jetstream"), None);
    assert_eq!(visitor.get("connz")["connections"][0]["subscriptions"], 1);
    assert_eq!(
        visitor.get("subsz?subs=1")["subscriptions_list"][0]["subject"],
        "a.*"
    );
}

#[test]
fn dashboard_needs_credentials_if_the_server_does() {
    let server = with_ada(Dashboard::Writable);
    let visitor = Visitor::new(&server);
    let needs = json!({"needs_credentials": true, "ways": ["user", "token"]});
    assert_eq!(visitor.get("session"), needs);
    for (method, name) in [
        ("GET", "overview"),
        ("GET", "connz"),
        ("GET", "subsz"),
        ("GET", "accountz"),
        ("GET", "accstatz"),
        ("GET", "jsz"),
        ("GET", "none"),
        ("POST", "ticket"),
        ("POST", "kick?cid=1"),
        ("DELETE", "session"),
    ] {
        let reply = visitor.ask(method, name, "");
        assert_eq!(reply.status, 401, "{method} {name}: {}", reply.body);
        assert_eq!(
            reply.json(),
            json!({"error": "credentials are needed"}),
            "{name}"
        );
    }
    let mut other = visitor.clone();
    for session in ["x", "ada", "s3cret"] {
        other.session = session.into();
        assert_eq!(other.ask("GET", "overview", "").status, 401, "{session}");
    }
    for target in ["/dashboard/ws", "/dashboard/ws?ticket=x"] {
        assert_eq!(
            visitor.request(&format!("GET {target}"), "", "").status,
            401,
            "{target}"
        );
    }
}

#[test]
fn wrong_credentials_are_refused() {
    let server = with_ada(Dashboard::ReadOnly);
    let visitor = Visitor::new(&server);
    for (body, status) in [
        (r#"{"user":"ada","password":"wrong"}"#, 401),
        (r#"{"user":"bob","password":"s3cret"}"#, 401),
        (r#"{"token":"s3cret"}"#, 401),
        ("{}", 401),
        ("", 400),
        ("[1]", 400),
    ] {
        let reply = visitor.ask("POST", "session", body);
        assert_eq!(reply.status, status, "{body}");
        assert!(!reply.body.contains("s3cret") && !reply.body.contains("wrong"));
    }
    let long = format!(r#"{{"user":"{}"}}"#, "x".repeat(100_000));
    assert_eq!(visitor.ask("POST", "session", &long).status, 400);
}

/// Signs in with the signature of a new nonce, like the page. `change` may modify the request.
fn sign_in(
    visitor: &Visitor,
    key: &SecretKey,
    credentials: Value,
    change: impl FnOnce(&mut Value),
) -> Reply {
    let nonce = visitor.ask("POST", "nonce", "").json()["nonce"].clone();
    let sig = key.sign(nonce.as_str().unwrap().as_bytes());
    let mut shown = credentials;
    shown["nonce"] = nonce;
    shown["sig"] = URL_SAFE_NO_PAD.encode(sig).into();
    change(&mut shown);
    visitor.ask("POST", "session", &shown.to_string())
}

#[test]
fn nkey_signs_in_without_sending_its_seed() {
    let key = SecretKey::new(KeyKind::User, [5; KEY_BYTES]);
    let nkey = key.public().encode();
    let mut config = AccessConfig::default();
    config.account_mut("A").users = vec![User::nkey(&*nkey)];
    let access = Access::new(config).unwrap();
    let server = server(|options| options.auth = Auth::Directory(Arc::new(access)));
    let visitor = Visitor::new(&server);
    assert_eq!(
        visitor.get("session")["ways"],
        json!(["user", "key", "token"])
    );
    let mut used = Value::Null;
    let reply = sign_in(&visitor, &key, json!({"nkey": nkey}), |shown| {
        used = shown.clone();
    });
    assert_eq!(reply.status, 200, "{}", reply.body);
    let mut signed_in = visitor.clone();
    signed_in.session = reply.json()["session"].as_str().unwrap().into();
    assert_eq!(signed_in.get("session")["user"], nkey.as_str());
    assert_eq!(signed_in.ask("POST", "ticket", "").status, 200);
    // A signature is valid once, and only for its nonce.
    let again = visitor.ask("POST", "session", &used.to_string());
    assert_eq!(again.status, 401);
    let other = SecretKey::new(KeyKind::User, [6; KEY_BYTES]);
    for (key, nonce) in [(&other, None), (&key, Some("made-up-by-page"))] {
        let reply = sign_in(&visitor, key, json!({"nkey": nkey}), |shown| {
            if let Some(nonce) = nonce {
                shown["nonce"] = nonce.into();
                shown["sig"] = URL_SAFE_NO_PAD.encode(key.sign(nonce.as_bytes())).into();
            }
        });
        assert_eq!(reply.status, 401, "{nonce:?}");
    }
}

#[test]
fn jwt_and_key_sign_in_in_operator_mode() {
    let folder = TempFolder::new("dashboard");
    // This account is not preloaded, so the server must look it up.
    let file = folder.0.join(operator::public(KeyKind::Account, 3));
    fs::write(file.with_extension("jwt"), operator::account(3, 1)).unwrap();
    let server = TestServer::with(Options {
        monitoring: Some(("127.0.0.1".into(), 0)),
        ..operator::operated(&[operator::account(2, 1)], Some(folder.0.clone()))
    });
    let visitor = Visitor::new(&server);
    assert_eq!(visitor.get("session")["ways"], json!(["key"]));
    for (account, signer, status) in [(2, 9, 200), (2, 8, 401), (3, 9, 200), (4, 9, 401)] {
        let token = operator::user(account, |_| {});
        let key = operator::key(KeyKind::User, signer);
        let reply = sign_in(&visitor, &key, json!({"jwt": token}), |_| {});
        assert_eq!(reply.status, status, "{account} {signer}: {}", reply.body);
    }
}

#[test]
fn requests_of_other_pages_are_refused() {
    let server = server(|_| {});
    let visitor = Visitor::new(&server);
    for start in ["GET /dashboard/api/session", "POST /dashboard/api/ticket"] {
        let reply = visitor.request(start, "Origin: http://elsewhere.example\r\n", "");
        assert_eq!(reply.status, 403, "{start}");
        assert!(!reply.head.contains("access-control-allow-origin"));
    }
    // The page was opened by another host name that resolves to this machine.
    let mut connection = ByteClient::new(connect(visitor.address));
    connection.send(
        "POST /dashboard/api/ticket HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\
         Fanline-Dashboard: 1\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(connection.read_to_end().starts_with("HTTP/1.1 403 "));
}

#[test]
fn session_ends_at_sign_out_or_with_its_user() {
    let server = with_accounts();
    let ada = Visitor::signed_in(&server, ADA);
    let again = Visitor::signed_in(&server, ADA);
    assert_eq!(ada.get("session")["user"], "ada");
    assert_eq!(ada.ask("DELETE", "session", "").status, 200);
    assert_eq!(ada.ask("GET", "overview", "").status, 401);
    assert_eq!(again.ask("GET", "overview", "").status, 200);
    let mut config = AccessConfig::default();
    config.account_mut("B").users = vec![User::new("bob", "b0b")];
    server.handle.replace_access(config).unwrap();
    assert_eq!(again.ask("GET", "overview", "").status, 401);
}

#[test]
fn users_of_an_account_see_their_account() {
    let server = with_accounts();
    let mut bobs = RawClient::open(server.address());
    bobs.expect_info();
    bobs.send("CONNECT {\"verbose\":false,\"user\":\"bob\",\"pass\":\"b0b\"}\r\n");
    bobs.send("SUB secret.of.bob 1\r\nPUB x 1\r\n1\r\n");
    bobs.settle();
    let ada = Visitor::signed_in(&server, ADA);
    assert_eq!(ada.get("session")["sees_server"], false);
    let overview = ada.get("overview");
    assert_eq!(
        (&overview["in_msgs"], &overview["connections"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(overview.get("process"), None);
    for name in [
        "connz?subs=detail",
        "connz?acc=B",
        "connz?cid=1",
        "subsz?subs=1&acc=B",
    ] {
        let reply = ada.get(name).to_string();
        assert!(
            !reply.contains("secret") && !reply.contains("\"cid\""),
            "{name}: {reply}"
        );
    }
    let account = ada.get("accountz?acc=B");
    assert_eq!(account["account_detail"]["account_name"], "A");
    for name in ["accstatz", "jsz", "kick?cid=1"] {
        let method = if name.starts_with("kick") {
            "POST"
        } else {
            "GET"
        };
        assert_eq!(ada.ask(method, name, "").status, 403, "{name}");
    }
    let root = Visitor::signed_in(&server, r#"{"user":"root","password":"r00t"}"#);
    assert_eq!(root.get("overview")["in_msgs"], 1);
    assert!(
        root.get("subsz?subs=1")
            .to_string()
            .contains("secret.of.bob")
    );
}

#[test]
fn read_only_page_cannot_publish() {
    let server = server(|options| options.jetstream = Some(JetStreamOptions::default()));
    let visitor = Visitor::new(&server);
    let mut client = server.client();
    let mut page = visitor.websocket();
    page.subscribe("orders.>", "7");
    client.publish("orders.1", "coffee");
    assert_eq!(page.message().payload, b"coffee");
    page.subscribe("inbox.*", "8");
    page.send("PUB $JS.API.INFO inbox.1 0\r\n\r\n");
    let answer = page.message();
    let answer = String::from_utf8_lossy(&answer.payload).into_owned();
    assert!(answer.contains("account_info_response"), "{answer}");
    for subject in [
        "orders.2",
        "$JS.API.STREAM.CREATE.X",
        "$JS.API.STREAM.PURGE.X",
        "$JS.API.STREAM.DELETE.X",
        "$JS.API.STREAM.MSG.DELETE.X",
        "$JS.API.CONSUMER.CREATE.X",
        "$JS.API.CONSUMER.MSG.NEXT.X.Y",
        "inbox.2",
    ] {
        let reply = error_after(&mut page, &format!("PUB {subject} 0\r\n\r\n"));
        let wanted = format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'");
        assert_eq!(reply, wanted);
    }
}

/// Regression: without required credentials, a page could publish before it had sent CONNECT.
#[test]
fn read_only_page_cannot_publish_before_connect() {
    let server = server(|_| {});
    let visitor = Visitor::new(&server);
    let ticket = visitor.ask("POST", "ticket", "").json();
    let target = format!(
        "/dashboard/ws?ticket={}",
        ticket["ticket"].as_str().unwrap()
    );
    let mut client = server.client();
    client.subscribe(">", "1");
    let mut page = RawClient::over(Page::at(&target, connect(visitor.address), ""));
    page.expect_info();
    let reply = error_after(&mut page, "PUB orders.1 0\r\n\r\n");
    assert!(reply.contains("Permissions Violation"), "{reply}");
    assert_eq!(client.settle(), []);
}

#[test]
fn writable_page_has_permissions_of_its_user() {
    let mut config = AccessConfig::default();
    let mut ada = User::new("ada", "s3cret");
    ada.permissions = Some(Permissions {
        publish: fanline_server::auth::Allowed::publish(Some(&["orders.>"]), &[]).unwrap(),
        ..Permissions::default()
    });
    config.account_mut("$G").users = vec![ada, User::new("bob", "b0b")];
    let access = Access::new(config).unwrap();
    let server = server(|options| {
        options.dashboard = Dashboard::Writable;
        options.auth = Auth::Directory(Arc::new(access));
    });
    let visitor = Visitor::signed_in(&server, ADA);
    let mut page = visitor.websocket();
    page.subscribe("orders.*", "1");
    page.send("PUB orders.1 2\r\nhi\r\n");
    assert_eq!(page.message().payload, b"hi");
    let reply = error_after(&mut page, "PUB prices.1 0\r\n\r\n");
    assert!(
        reply.contains("Permissions Violation for Publish"),
        "{reply}"
    );
    let connz = visitor.get("connz?auth=1");
    assert_eq!(connz["connections"][0]["authorized_user"], "ada");
    assert_eq!(connz["connections"][0]["type"], "websocket");
}

#[test]
fn a_ticket_opens_one_websocket() {
    let server = with_ada(Dashboard::ReadOnly);
    let visitor = Visitor::signed_in(&server, ADA);
    let ticket = visitor.ask("POST", "ticket", "").json();
    let target = format!(
        "/dashboard/ws?ticket={}",
        ticket["ticket"].as_str().unwrap()
    );
    let _page = Page::at(&target, connect(visitor.address), "");
    assert_eq!(
        visitor.request(&format!("GET {target}"), "", "").status,
        401
    );
}

#[test]
fn only_permitted_visitors_close_connections() {
    for (dashboard, status) in [(Dashboard::ReadOnly, 403), (Dashboard::Writable, 200)] {
        let server = server(|options| options.dashboard = dashboard);
        let visitor = Visitor::new(&server);
        let mut client = server.client();
        let cid = visitor.get("connz")["connections"][0]["cid"].clone();
        let reply = visitor.ask("POST", &format!("kick?cid={cid}"), "");
        assert_eq!(reply.status, status, "{}", reply.body);
        if status == 200 {
            assert_eq!(client.lines_to_end(), Vec::<String>::new());
            assert_eq!(
                visitor.ask("POST", &format!("kick?cid={cid}"), "").status,
                404
            );
            assert_eq!(visitor.ask("POST", "kick?cid=x", "").status, 400);
            assert_eq!(visitor.ask("POST", "kick", "").status, 400);
        } else {
            client.settle();
        }
    }
}
