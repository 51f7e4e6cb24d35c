//! Credentials and permissions over real sockets, for each kind of connection. Denied messages are not
//! delivered, and permitted messages are.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_server::auth::nkey::{KEY_BYTES, KeyKind, PublicKey, SecretKey};
use fanline_server::auth::{
    Access, AccessConfig, AllowResponses, Allowed, ConnectionKind, Permissions, SALT_BYTES, User,
    hash_password,
};
use fanline_server::{Auth, Limits, Options, TlsHandshake, TlsOptions, WebSocketOptions};
use ring::signature::{Ed25519KeyPair, KeyPair};

use crate::raw::{RawClient, TestServer, options};
use crate::transports::{Authority, TlsClient, connect as dial};
use crate::websocket::Page;

const REFUSAL: &str = "-ERR 'Authorization Violation'";

/// The kinds of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Tcp,
    Tls,
    WebSocket,
}

/// Runs each test for each kind of connection.
macro_rules! for_each_transport {
    ($($test:ident),+ $(,)?) => {
        mod over_tcp {
            $(#[test] fn $test() { super::$test(super::Over::Tcp); })+
        }
        mod over_tls {
            $(#[test] fn $test() { super::$test(super::Over::Tls); })+
        }
        mod over_websocket {
            $(#[test] fn $test() { super::$test(super::Over::WebSocket); })+
        }
    };
}
pub(crate) use for_each_transport;

for_each_transport!(
    tokens,
    passwords_plain_and_hashed,
    input_behind_a_slow_connect_waits,
    nkeys,
    client_without_credentials_is_the_no_auth_user,
    users_connect_over_allowed_connection_types,
    proxy_required_user_is_refused_without_a_proxy,
    user_connects_through_a_trusted_proxy,
    silent_client_is_disconnected,
    publishing,
    subscribing,
    answering,
    accounts_are_isolated,
    new_directory_replaces_the_first,
);

pub(crate) trait Duplex: Read + Write {}

impl<S: Read + Write> Duplex for S {}

pub(crate) type Client = RawClient<Box<dyn Duplex>>;

/// A server with one kind of listener.
pub(crate) struct Site {
    pub(crate) server: TestServer,
    /// The authority of the server's certificate, if the server has one.
    authority: Option<Authority>,
    over: Over,
}

impl Site {
    pub(crate) fn with(over: Over, options: Options) -> Self {
        let authority = (over == Over::Tls).then(Authority::new);
        let tls = authority.as_ref().map(|authority| TlsOptions {
            handshake: TlsHandshake::First,
            ..authority.tls()
        });
        let server = TestServer::with(Options {
            tls,
            websocket: (over == Over::WebSocket).then(WebSocketOptions::default),
            ..options
        });
        Site {
            server,
            authority,
            over,
        }
    }

    /// Opens a connection without sending a CONNECT.
    fn open(&self) -> Client {
        let addresses = self.server.handle.addresses();
        let stream: Box<dyn Duplex> = match (self.over, &self.authority) {
            (Over::WebSocket, _) => {
                let address = addresses.websocket.expect("it is on");
                Box::new(Page::over(dial(address), ""))
            }
            (_, Some(authority)) => {
                Box::new(TlsClient::new(&authority.ca()).over(dial(addresses.clients)))
            }
            (_, None) => Box::new(dial(addresses.clients)),
        };
        RawClient::over(stream)
    }
}

pub(crate) fn server(over: Over, config: AccessConfig) -> Site {
    let auth = Auth::Directory(Access::new(config).expect("a directory").into());
    Site::with(over, Options { auth, ..options(2) })
}

pub(crate) fn with_users(users: Vec<User>) -> AccessConfig {
    let mut config = AccessConfig::default();
    config.account_mut("$G").users = users;
    config
}

/// Connects with these fields of CONNECT, without verbose replies.
fn connect(server: &Site, fields: &str) -> Client {
    let mut client = server.open();
    client.expect_info();
    client.send(format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true{fields}}}\r\n"
    ));
    client
}

pub(crate) fn as_user(server: &Site, name: &str) -> Client {
    let mut client = connect(server, &format!(",\"user\":\"{name}\",\"pass\":\"pw\""));
    client.settle();
    client
}

fn check(server: &Site, fields: &str, is_admitted: bool) {
    let mut client = connect(server, fields);
    client.send("PING\r\n");
    match is_admitted {
        true => assert_eq!(client.line(), "PONG", "{fields}"),
        false => assert_eq!(client.lines_to_end(), [REFUSAL], "{fields}"),
    }
}

fn tokens(over: Over) {
    let hash = hash_password(4, [3; SALT_BYTES], "t0ken").unwrap();
    for token in ["t0ken", &hash] {
        let server = server(
            over,
            AccessConfig {
                token: Some(token.into()),
                ..AccessConfig::default()
            },
        );
        check(&server, ",\"auth_token\":\"t0ken\"", true);
        for fields in [
            "",
            ",\"auth_token\":\"\"",
            ",\"auth_token\":\"other\"",
            ",\"auth_token\":\"t0ken2\"",
            ",\"user\":\"t0ken\"",
            ",\"user\":\"t0ken\",\"pass\":\"t0ken\"",
            &format!(",\"auth_token\":\"{hash}\""),
        ] {
            check(&server, fields, false);
        }
    }
}

fn passwords_plain_and_hashed(over: Over) {
    let hash = hash_password(4, [3; SALT_BYTES], "pw").unwrap();
    let server = server(
        over,
        with_users(vec![
            User::new("ada", "pw"),
            User::new("bob", hash.as_str()),
        ]),
    );
    for name in ["ada", "bob"] {
        check(
            &server,
            &format!(",\"user\":\"{name}\",\"pass\":\"pw\""),
            true,
        );
        for pass in ["", "pW", "pw2", &hash] {
            check(
                &server,
                &format!(",\"user\":\"{name}\",\"pass\":\"{pass}\""),
                false,
            );
        }
    }
    for fields in [
        "",
        ",\"user\":\"\",\"pass\":\"pw\"",
        ",\"user\":\"eve\",\"pass\":\"pw\"",
        ",\"auth_token\":\"pw\"",
        ",\"user\":\"ada\",\"pass\":\"pw\",\"account\":\"$G\"",
        ",\"nkey\":\"ada\",\"sig\":\"pw\"",
    ] {
        check(&server, fields, false);
    }
}

/// Bytes after a CONNECT in the same packet wait until the client is admitted or refused. They are not lost.
fn input_behind_a_slow_connect_waits(over: Over) {
    let hash = hash_password(6, [3; SALT_BYTES], "pw").unwrap();
    let server = server(over, with_users(vec![User::new("bob", hash.as_str())]));
    for (pass, expected) in [("pw", vec!["PONG", "PONG"]), ("no", vec![REFUSAL])] {
        let mut client = server.open();
        client.expect_info();
        client.send(format!(
            "CONNECT {{\"verbose\":false,\"user\":\"bob\",\"pass\":\"{pass}\"}}\r\nSUB a 1\r\nPING\r\nPING\r\n"
        ));
        let lines: Vec<String> = expected.iter().map(|_| client.line()).collect();
        assert_eq!(lines, expected);
    }
}

fn nkeys(over: Over) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[5; KEY_BYTES]).unwrap();
    let other = Ed25519KeyPair::from_seed_unchecked(&[6; KEY_BYTES]).unwrap();
    let public = |pair: &Ed25519KeyPair| {
        let key = pair.public_key().as_ref().try_into().unwrap();
        PublicKey::new(KeyKind::User, key).encode()
    };
    let server = server(over, with_users(vec![User::nkey(public(&pair))]));
    let mut stolen = String::new();
    for (shown, signer, uses_nonce, is_admitted) in [
        (&pair, &pair, true, true),
        (&pair, &other, true, false),
        (&other, &other, true, false),
        (&pair, &pair, false, false),
    ] {
        let mut client = server.open();
        let info = client.expect_info();
        let info: serde_json::Value = serde_json::from_str(&info["INFO ".len()..]).unwrap();
        let nonce = info["nonce"].as_str().unwrap().to_owned();
        assert_eq!(nonce.len(), 15);
        let signed = if uses_nonce {
            nonce.as_str()
        } else {
            "another"
        };
        let signature = URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes()));
        if is_admitted {
            stolen.clone_from(&signature);
        }
        let nkey = public(shown);
        client.send(format!(
            "CONNECT {{\"verbose\":false,\"nkey\":\"{nkey}\",\"sig\":\"{signature}\"}}\r\nPING\r\n"
        ));
        let expected = if is_admitted { "PONG" } else { REFUSAL };
        assert_eq!(client.line(), expected);
    }
    let nkey = public(&pair);
    // A signature is valid for one connection.
    check(
        &server,
        &format!(",\"nkey\":\"{nkey}\",\"sig\":\"{stolen}\""),
        false,
    );
    check(&server, &format!(",\"nkey\":\"{nkey}\""), false);
    check(
        &server,
        &format!(",\"user\":\"{nkey}\",\"pass\":\"\""),
        false,
    );
}

fn client_without_credentials_is_the_no_auth_user(over: Over) {
    let mut guest = User::new("guest", "pw");
    guest.permissions = Some(Permissions {
        publish: Allowed::publish(Some(&["open.>"]), &[]).unwrap(),
        ..Permissions::default()
    });
    let mut config = with_users(vec![guest, User::new("ada", "pw")]);
    config.no_auth_user = Some("guest".into());
    let server = server(over, config);
    check(&server, "", true);
    check(&server, ",\"user\":\"guest\",\"pass\":\"no\"", false);
    check(&server, ",\"auth_token\":\"x\"", false);
    let mut bare = server.open();
    assert!(!bare.expect_info().contains("auth_required"));
    bare.send("PUB closed 0\r\n\r\nPING\r\n");
    assert_eq!(
        bare.line(),
        "-ERR 'Permissions Violation for Publish to \"closed\"'"
    );
    assert_eq!(bare.line(), "PONG");
}

fn users_connect_over_allowed_connection_types(over: Over) {
    let mut web = User::new("web", "pw");
    web.connection_kinds = vec![ConnectionKind::WebSocket];
    let mut tcp = User::new("tcp", "pw");
    tcp.connection_kinds = vec![ConnectionKind::Standard];
    let server = server(over, with_users(vec![web, tcp]));
    let is_web = over == Over::WebSocket;
    check(&server, ",\"user\":\"web\",\"pass\":\"pw\"", is_web);
    check(&server, ",\"user\":\"tcp\",\"pass\":\"pw\"", !is_web);
}

/// Regression: a user with `proxy_required` was admitted without a proxy.
fn proxy_required_user_is_refused_without_a_proxy(over: Over) {
    let mut ada = User::new("ada", "pw");
    ada.proxy_required = true;
    let open = || User::new("ada", "pw");
    let anybody = |user: User| AccessConfig {
        no_auth_user: Some("ada".into()),
        ..with_users(vec![user])
    };
    let server = server(over, anybody(ada.clone()));
    check(&server, ",\"user\":\"ada\",\"pass\":\"pw\"", false);
    check(&server, ",\"user\":\"ada\",\"pass\":\"no\"", false);
    check(&server, "", false);
    let mut bare = server.open();
    bare.expect_info();
    bare.send("PING\r\n");
    assert_eq!(bare.lines_to_end(), [REFUSAL]);
    // A connected user is disconnected when the requirement is added.
    server
        .server
        .handle
        .replace_access(anybody(open()))
        .unwrap();
    let mut inside = as_user(&server, "ada");
    server.server.handle.replace_access(anybody(ada)).unwrap();
    assert_eq!(inside.lines_to_end(), [REFUSAL]);
}

fn user_connects_through_a_trusted_proxy(over: Over) {
    let proxy = |number| SecretKey::new(KeyKind::User, [number; KEY_BYTES]);
    let config = |trusted: u8| {
        let mut ada = User::new("ada", "pw");
        ada.proxy_required = true;
        AccessConfig {
            proxies: vec![proxy(trusted).public()],
            ..with_users(vec![ada, User::new("bob", "pw")])
        }
    };
    let server = server(over, config(1));
    let through = |number: u8, user: &str| {
        let mut client = server.open();
        let info = client.expect_info();
        let (_, rest) = info.split_once("\"nonce\":\"").expect("a nonce");
        let (nonce, _) = rest.split_once('"').expect("a text");
        let signature = URL_SAFE_NO_PAD.encode(proxy(number).sign(nonce.as_bytes()));
        client.send(format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"user\":\"{user}\",\"pass\":\"pw\",\
             \"proxy_sig\":\"{signature}\"}}\r\nPING\r\n"
        ));
        client
    };
    for user in ["ada", "bob"] {
        assert_eq!(through(1, user).line(), "PONG", "{user}");
        // The proxy's signature does not help a user with wrong credentials.
        assert_eq!(through(2, user).lines_to_end(), [REFUSAL], "{user}");
    }
    check(&server, ",\"user\":\"ada\",\"pass\":\"pw\"", false);
    check(
        &server,
        ",\"user\":\"ada\",\"pass\":\"pw\",\"proxy_sig\":\"\"",
        false,
    );
    check(&server, ",\"user\":\"bob\",\"pass\":\"pw\"", true);
    // A connected user is disconnected when its proxy is no longer trusted.
    let (mut inside, mut bob) = (through(1, "bob"), as_user(&server, "bob"));
    assert_eq!(inside.line(), "PONG");
    inside.settle();
    server.server.handle.replace_access(config(2)).unwrap();
    assert_eq!(inside.lines_to_end(), [REFUSAL]);
    bob.settle();
    // The requirement for all users applies to each of them.
    let all = AccessConfig {
        proxy_required: true,
        ..config(2)
    };
    server.server.handle.replace_access(all).unwrap();
    assert_eq!(bob.lines_to_end(), [REFUSAL]);
    assert_eq!(through(2, "bob").line(), "PONG");
}

fn silent_client_is_disconnected(over: Over) {
    let server = Site::with(
        over,
        Options {
            auth: Auth::Directory(Access::user("ada", "pw").into()),
            limits: Limits {
                auth_timeout: std::time::Duration::from_millis(50),
                ..Limits::default()
            },
            ..options(1)
        },
    );
    let mut client = server.open();
    client.expect_info();
    assert_eq!(client.lines_to_end(), ["-ERR 'Authentication Timeout'"]);
}

fn limited(over: Over) -> Site {
    let mut ada = User::new("ada", "pw");
    ada.permissions = Some(Permissions {
        publish: Allowed::publish(Some(&["a.*", "$JS.API.INFO"]), &["a.secret"]).expect("subjects"),
        subscribe: Allowed::subscribe(None, &["in.secret", "jobs", "work night"])
            .expect("subjects"),
        responses: None,
    });
    let mut answers = User::new("answers", "pw");
    answers.permissions = Some(Permissions {
        subscribe: Allowed::subscribe(Some(&["ask"]), &[]).expect("subjects"),
        responses: Some(AllowResponses::default()),
        ..Permissions::default()
    });
    let users = vec![ada, answers, User::new("all", "pw")];
    server(over, with_users(users))
}

fn publishing(over: Over) {
    let server = limited(over);
    let mut all = as_user(&server, "all");
    all.subscribe(">", "1");
    let mut ada = as_user(&server, "ada");
    let denied =
        |subject: &str| format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'");
    for subject in [
        "a.secret",
        "b",
        "a",
        "a.b.c",
        "$JS.API.STREAM.LIST",
        "_INBOX.x",
        "$SYS.x",
    ] {
        for frame in [
            format!("PUB {subject} 1\r\nx\r\n"),
            format!("PUB {subject} reply 1\r\nx\r\n"),
            format!("HPUB {subject} 12 13\r\nNATS/1.0\r\n\r\nx\r\n"),
            format!("pub\t{subject}  1\r\nx\r\n"),
        ] {
            // The frame is sent twice, to test that a denied subject is not cached as permitted.
            ada.send(format!("{frame}{frame}PING\r\n"));
            assert_eq!(ada.line(), denied(subject));
            assert_eq!(ada.line(), denied(subject));
            assert_eq!(ada.line(), "PONG");
        }
    }
    // Permitted subjects before and after a denied subject are delivered, repeatedly.
    ada.send("PUB a.1 0\r\n\r\nPUB a.1 0\r\n\r\nPUB a.secret 0\r\n\r\nPUB a.1 0\r\n\r\nPUB a.1 0\r\n\r\nPING\r\n");
    assert_eq!(ada.line(), denied("a.secret"));
    assert_eq!(ada.line(), "PONG");
    let got: Vec<String> = all.settle().into_iter().map(|m| m.subject).collect();
    assert_eq!(got, ["a.1"; 4]);
}

fn subscribing(over: Over) {
    let server = limited(over);
    let mut all = as_user(&server, "all");
    let mut ada = as_user(&server, "ada");
    for (arguments, expected) in [
        ("in.secret", "\"in.secret\""),
        ("jobs", "\"jobs\""),
        ("jobs any", "\"jobs\" using queue \"any\""),
        ("work night", "\"work\" using queue \"night\""),
    ] {
        ada.send(format!("SUB {arguments} 1\r\nPING\r\n"));
        let expected = format!("-ERR 'Permissions Violation for Subscription to {expected}'");
        assert_eq!(ada.line(), expected);
        assert_eq!(ada.line(), "PONG");
    }
    ada.send("SUB in.* 1\r\nSUB > 2\r\nSUB in.> crew 3\r\nSUB work day 4\r\n");
    ada.settle();
    // Publishes several messages of one subject in a row, and single messages, first from this shard and then
    // from another one.
    for publisher in [&mut all, &mut as_user(&server, "all")] {
        for subject in ["in.secret", "in.open", "jobs", "in.secret", "in.secret"] {
            publisher.publish(subject, "x");
            publisher.send(format!("PUB {subject} r 1\r\ny\r\n"));
        }
        publisher.settle();
        let mut got: Vec<(String, String)> = (ada.settle().into_iter())
            .map(|m| (m.subject, m.sid))
            .collect();
        got.sort();
        let expected = [("in.open", "1"), ("in.open", "2"), ("in.open", "3")];
        let twice = expected.iter().flat_map(|(t, s)| [(*t, *s), (*t, *s)]);
        let expected: Vec<(String, String)> = twice.map(|(t, s)| (t.into(), s.into())).collect();
        assert_eq!(got, expected);
    }
}

fn answering(over: Over) {
    let server = limited(over);
    let mut all = as_user(&server, "all");
    let mut answers = as_user(&server, "answers");
    answers.subscribe("ask", "1");
    all.subscribe("inbox.*", "1");
    let denied = "-ERR 'Permissions Violation for Publish to \"inbox.1\"'";
    answers.send("PUB inbox.1 0\r\n\r\n");
    assert_eq!(answers.line(), denied);
    all.send("PUB ask inbox.1 0\r\n\r\n");
    assert_eq!(answers.message().reply.as_deref(), Some("inbox.1"));
    answers.send("PUB inbox.1 1\r\n1\r\nPUB inbox.1 1\r\n2\r\n");
    assert_eq!(answers.line(), denied);
    assert_eq!(all.message().payload, b"1");
    answers.settle();
    assert_eq!(all.settle(), []);
}

fn accounts_are_isolated(over: Over) {
    let mut config = AccessConfig::default();
    config.account_mut("A").users.push(User::new("ada", "pw"));
    config.account_mut("B").users.push(User::new("bob", "pw"));
    let server = server(over, config);
    let (mut ada, mut bob) = (as_user(&server, "ada"), as_user(&server, "bob"));
    ada.subscribe(">", "1");
    bob.publish("x", "secret");
    bob.settle();
    assert_eq!(ada.settle(), []);
    ada.publish("x", "own");
    assert_eq!(ada.message().payload, b"own");
}

fn new_directory_replaces_the_first(over: Over) {
    let open = || User::new("ada", "pw");
    let server = server(
        over,
        with_users(vec![open(), User::new("bob", "pw"), User::new("eve", "pw")]),
    );
    let (mut ada, mut bob, mut eve) = (
        as_user(&server, "ada"),
        as_user(&server, "bob"),
        as_user(&server, "eve"),
    );
    for client in [&mut ada, &mut bob, &mut eve] {
        client.send("SUB news 1\r\nSUB other 2\r\n");
        client.settle();
    }
    let mut limited = User::new("bob", "pw");
    limited.permissions = Some(Permissions {
        subscribe: Allowed::subscribe(None, &["news"]).unwrap(),
        ..Permissions::default()
    });
    let changed = User::new("eve", "another");
    let replaced = server
        .server
        .handle
        .replace_access(with_users(vec![open(), limited, changed]));
    replaced.unwrap();
    assert_eq!(eve.lines_to_end(), [REFUSAL]);
    let dropped = "-ERR 'Permissions Violation for Subscription to \"news\" (sid \"1\")'";
    assert_eq!(bob.line(), dropped);
    ada.settle();
    ada.send("PUB news 0\r\n\r\nPUB other 0\r\n\r\n");
    assert_eq!(ada.settle().len(), 2);
    let got: Vec<String> = bob.settle().into_iter().map(|m| m.sid).collect();
    assert_eq!(got, ["2"]);
    // An invalid configuration changes nothing.
    let twice = with_users(vec![open(), open()]);
    assert!(server.server.handle.replace_access(twice).is_err());
    ada.settle();
}
