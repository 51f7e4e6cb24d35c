//! Leaf nodes over real sockets between Fanline servers: messages, queue groups, requests, and reconnects.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_server::auth::nkey::{KEY_BYTES, KeyKind, SecretKey};
use fanline_server::auth::{Access, AccessConfig, User};
use fanline_server::client::jetstream::{BucketConfig, JetStream, Storage};
use fanline_server::client::{Client, ConnectOptions};
use fanline_server::{
    Auth, JetStreamOptions, LeafnodeListener, LeafnodeOptions, LeafnodeRemote, LeafnodeUser,
    Options, TlsOptions, TlsVersion,
};
use serde_json::Value;

use crate::raw::{RawClient, TestServer, WAIT_MAX, block_on, options, until};
use crate::transports::Authority;

pub(crate) fn named(name: &str, shards: usize) -> Options {
    Options {
        server_name: Some(name.into()),
        monitoring: Some(("127.0.0.1".into(), 0)),
        ..options(shards)
    }
}

pub(crate) fn hub(name: &str, shards: usize, listener: LeafnodeListener) -> TestServer {
    TestServer::with(hub_options(name, shards, listener))
}

fn hub_options(name: &str, shards: usize, listener: LeafnodeListener) -> Options {
    let listener = LeafnodeListener {
        port: 0,
        ..listener
    };
    Options {
        leafnodes: LeafnodeOptions {
            listener: Some(listener),
            ..LeafnodeOptions::default()
        },
        ..named(name, shards)
    }
}

pub(crate) fn leaf_port(hub: &TestServer) -> SocketAddr {
    hub.handle.addresses().leafnodes.expect("it listens")
}

pub(crate) fn spoke_options(name: &str, shards: usize, remotes: Vec<LeafnodeRemote>) -> Options {
    Options {
        leafnodes: LeafnodeOptions {
            remotes,
            reconnect: Duration::from_millis(20),
            ..LeafnodeOptions::default()
        },
        ..named(name, shards)
    }
}

pub(crate) fn spoke(name: &str, shards: usize, remotes: Vec<LeafnodeRemote>) -> TestServer {
    TestServer::with(spoke_options(name, shards, remotes))
}

pub(crate) fn remote(hub: &TestServer) -> LeafnodeRemote {
    LeafnodeRemote::new(leaf_port(hub).to_string())
}

pub(crate) fn leafz(server: &TestServer) -> Vec<Value> {
    let address = server.handle.addresses().monitoring.expect("it is on");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = "GET /leafz?subs=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (_, body) = text.split_once("\r\n\r\n").expect("headers end");
    let reply: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(
        reply["leafnodes"],
        reply["leafs"].as_array().map_or(0, Vec::len)
    );
    reply["leafs"].as_array().cloned().unwrap_or_default()
}

/// Waits until `leafs` leaf nodes of a server have interest in a filter.
#[track_caller]
pub(crate) fn until_wanted(server: &TestServer, filter: &str, leafs: usize) {
    until(filter, || {
        let all = leafz(server);
        let wants = |leaf: &&Value| {
            let list = leaf["subscriptions_list"].as_array();
            list.is_some_and(|list| list.iter().any(|one| one == filter))
        };
        all.iter().filter(wants).count() == leafs
    });
}

pub(crate) async fn client(server: &TestServer) -> Client {
    let options = ConnectOptions::new(&format!("nats://{}", server.address()));
    let connected = Client::connect(&options.expect("an address")).await;
    connected.expect("it listens")
}

/// Checks a leaf connection in both directions: ordered messages, requests, and requests without responders.
pub(crate) fn check_link(hub: &TestServer, spoke: &TestServer) {
    block_on(async {
        let (above, below) = (client(hub).await, client(spoke).await);
        for (from, to, server, subject) in
            [(&above, &below, hub, "down"), (&below, &above, spoke, "up")]
        {
            let mut messages = to
                .subscribe(&format!("{subject}.>"))
                .await
                .expect("a filter");
            to.flush().await.expect("it answers");
            until_wanted(server, &format!("{subject}.>"), 1);
            for number in 0..200 {
                let payload = format!("{number}");
                let sent = from.publish(&format!("{subject}.{number}"), payload).await;
                sent.expect("it takes it");
            }
            for number in 0..200 {
                let next = tokio::time::timeout(WAIT_MAX, messages.next()).await;
                let message = next.expect("in time").expect("a message");
                assert_eq!(message.payload(), format!("{number}").as_bytes());
            }
        }
    });
}

#[test]
fn messages_cross_both_ways_in_order() {
    for shards in [1, 2] {
        let hub = hub("hub", shards, LeafnodeListener::default());
        let spoke = spoke("spoke", shards, vec![remote(&hub)]);
        check_link(&hub, &spoke);
        let (above, below) = (leafz(&hub), leafz(&spoke));
        assert_eq!(
            (&above[0]["name"], &below[0]["name"]),
            (&"spoke".into(), &"hub".into())
        );
        assert_eq!(
            (&above[0]["is_spoke"], &below[0]["is_spoke"]),
            (&false.into(), &true.into())
        );
        assert!(above[0]["in_msgs"].as_u64() >= Some(200), "{above:?}");
    }
}

#[test]
fn requests_cross_links_and_fail_without_responders() {
    let hub = hub("hub", 2, LeafnodeListener::default());
    let spoke = spoke("spoke", 2, vec![remote(&hub)]);
    block_on(async {
        let (above, below) = (client(&hub).await, client(&spoke).await);
        let mut request = above.subscribe("ask").await.expect("a filter");
        above.flush().await.expect("it answers");
        until_wanted(&spoke, "ask", 1);
        let answering = async {
            let question = request.next().await.expect("a question");
            let reply = question.reply().expect("a reply").to_owned();
            above.publish(&reply, "yes").await.expect("it takes it");
        };
        let (answer, ()) = tokio::join!(below.request("ask", "?", WAIT_MAX), answering);
        assert_eq!(answer.expect("an answer").payload(), b"yes");
        assert!(below.request("nobody", "?", WAIT_MAX).await.is_err());
    });
}

#[test]
fn a_link_comes_back_when_the_hub_does() {
    let first = hub("hub", 1, LeafnodeListener::default());
    let address = leaf_port(&first);
    let spoke = spoke("spoke", 1, vec![LeafnodeRemote::new(address.to_string())]);
    check_link(&first, &spoke);
    first.handle.shutdown();
    first.wait();
    until("it is seen that the hub is gone", || {
        leafz(&spoke).is_empty()
    });
    let again = TestServer::with(Options {
        leafnodes: LeafnodeOptions {
            listener: Some(LeafnodeListener {
                port: address.port(),
                ..LeafnodeListener::default()
            }),
            ..LeafnodeOptions::default()
        },
        ..named("hub", 1)
    });
    check_link(&again, &spoke);
}

#[test]
fn remotes_are_added_and_removed_while_the_others_stay() {
    let (one, two) = (
        hub("one", 1, LeafnodeListener::default()),
        hub("two", 1, LeafnodeListener::default()),
    );
    let spoke = spoke("spoke", 1, vec![remote(&one)]);
    until("the first link", || leafz(&one).len() == 1);
    let before = leafz(&one)[0]["id"].clone();
    let reload = |remotes| {
        let reloaded = spoke.handle.reload(spoke_options("spoke", 1, remotes));
        reloaded.expect("remotes can be reloaded");
    };
    reload(vec![remote(&one), remote(&two)]);
    until("the second link", || leafz(&two).len() == 1);
    assert_eq!(leafz(&one)[0]["id"], before);
    reload(vec![remote(&two)]);
    until("the first is gone", || leafz(&one).is_empty());
    let disabled = LeafnodeRemote {
        is_disabled: true,
        ..remote(&two)
    };
    reload(vec![disabled]);
    until("the second is gone", || leafz(&two).is_empty());
}

#[test]
fn leaf_nodes_authenticate_and_join_their_account() {
    let mut config = AccessConfig::default();
    config.account_mut("A");
    config.account_mut("B").users.push(User::new("b", "pw"));
    let auth = Auth::Directory(Access::new(config).expect("a directory").into());
    let listener = LeafnodeListener {
        port: 0,
        users: vec![LeafnodeUser {
            user: User::new("edge", "secret"),
            account: Some("A".into()),
        }],
        ..LeafnodeListener::default()
    };
    let hub = TestServer::with(Options {
        auth,
        leafnodes: LeafnodeOptions {
            listener: Some(listener),
            ..LeafnodeOptions::default()
        },
        ..named("hub", 1)
    });
    let port = leaf_port(&hub);
    let at = |credentials: &str| LeafnodeRemote::new(format!("nats-leaf://{credentials}@{port}"));
    let wrong = spoke("wrong", 1, vec![at("edge:wrong")]);
    let client_of_b = spoke("b", 1, vec![at("b:pw")]);
    let right = spoke("right", 1, vec![at("edge:secret")]);
    until("the right one", || leafz(&right).len() == 1);
    let leafs = leafz(&hub);
    assert_eq!(leafs.len(), 1);
    assert_eq!(
        (&leafs[0]["account"], &leafs[0]["name"]),
        (&"A".into(), &"right".into())
    );
    assert!(leafz(&wrong).is_empty() && leafz(&client_of_b).is_empty());
}

/// Connects as a leaf node, like a proxy that signs with this key.
fn through_proxy(hub: &TestServer, key: Option<&SecretKey>, user: &str) -> RawClient {
    let mut leaf = RawClient::open(leaf_port(hub));
    let info = leaf.expect_info();
    let (_, rest) = info.split_once("\"nonce\":\"").expect("a nonce");
    let (nonce, _) = rest.split_once('"').expect("a text");
    let signature = key.map_or_else(String::new, |key| {
        URL_SAFE_NO_PAD.encode(key.sign(nonce.as_bytes()))
    });
    leaf.send(format!(
        "CONNECT {{\"name\":\"{user}\",\"server_id\":\"{user}\",\"user\":\"{user}\",\"pass\":\"pw\",\
         \"headers\":true,\"proxy_sig\":\"{signature}\"}}\r\nPING\r\n"
    ));
    leaf
}

/// Returns whether a PONG arrives without an error before it.
fn is_answered(leaf: &mut RawClient) -> bool {
    loop {
        match leaf.line().as_str() {
            "PONG" => return true,
            "-ERR 'Authorization Violation'" => return false,
            _ => {}
        }
    }
}

#[test]
fn proxy_required_leaf_node_needs_a_trusted_proxy() {
    let key = |number| SecretKey::new(KeyKind::User, [number; KEY_BYTES]);
    let access = |trusted: u8| AccessConfig {
        proxies: vec![key(trusted).public()],
        ..AccessConfig::default()
    };
    for all_must in [false, true] {
        let users = ["ada", "bob"].map(|name| {
            let mut user = User::new(name, "pw");
            user.proxy_required = name == "ada";
            LeafnodeUser {
                user,
                account: None,
            }
        });
        let listener = LeafnodeListener {
            users: users.into(),
            needs_proxy: all_must,
            ..LeafnodeListener::default()
        };
        let directory = |trusted| Auth::Directory(Access::new(access(trusted)).unwrap().into());
        let hub = TestServer::with(Options {
            auth: directory(1),
            ..hub_options("hub", 1, listener)
        });
        let is_let_in =
            |key: Option<&SecretKey>, user: &str| is_answered(&mut through_proxy(&hub, key, user));
        for user in ["ada", "bob"] {
            assert!(is_let_in(Some(&key(1)), user), "{user}, {all_must}");
            assert!(!is_let_in(Some(&key(2)), user), "{user}, {all_must}");
        }
        assert!(!is_let_in(None, "ada"), "{all_must}");
        assert_eq!(is_let_in(None, "bob"), !all_must);
        // A connected leaf node is disconnected when its proxy is no longer trusted.
        let mut inside = through_proxy(&hub, Some(&key(1)), "ada");
        assert!(is_answered(&mut inside));
        hub.handle.replace_access(access(2)).unwrap();
        assert!(!is_answered(&mut inside));
    }
}

#[test]
fn garbage_on_the_leaf_port_affects_only_its_sender() {
    let hub = hub("hub", 1, LeafnodeListener::default());
    let spoke = spoke("spoke", 1, vec![remote(&hub)]);
    for (garbage, expected) in [
        (
            "GET / HTTP/1.1\r\n\r\n",
            "-ERR 'Unknown Protocol Operation'",
        ),
        (
            "CONNECT {\"lang\":\"go\",\"verbose\":false}\r\n",
            "-ERR 'attempted to connect to leaf node port'",
        ),
        ("LS+ a\r\n", "-ERR 'Authorization Violation'"),
    ] {
        let mut stream = TcpStream::connect(leaf_port(&hub)).expect("it listens");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        stream.write_all(garbage.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it closes");
        assert!(
            text.starts_with("INFO {") && text.contains(expected),
            "{text}"
        );
    }
    // This remote is a client port, which does not accept leaf nodes.
    let lost = TestServer::with(spoke_options(
        "lost",
        1,
        vec![LeafnodeRemote::new(hub.address().to_string())],
    ));
    check_link(&hub, &spoke);
    assert!(leafz(&lost).is_empty());
}

#[test]
fn links_are_encrypted_when_the_hub_says_so() {
    let authority = Authority::new();
    let listener = LeafnodeListener {
        tls: Some(authority.tls()),
        ..LeafnodeListener::default()
    };
    let hub = hub("hub", 1, listener);
    let trusting = LeafnodeRemote {
        tls: Some(TlsOptions {
            ca_file: Some(authority.ca()),
            timeout: WAIT_MAX,
            ..TlsOptions::default()
        }),
        urls: vec![format!("tls://localhost:{}", leaf_port(&hub).port())],
        ..remote(&hub)
    };
    // A remote that does not trust the hub's authority does not connect.
    let doubting = spoke("doubting", 1, vec![remote(&hub)]);
    let spoke = spoke("spoke", 1, vec![trusting]);
    check_link(&hub, &spoke);
    assert!(leafz(&doubting).is_empty());
}

/// Changed options of a remote apply when it is dialed again. An existing connection is not affected.
#[test]
fn a_reload_changes_how_a_hub_is_dialled() {
    let (authority, other) = (Authority::new(), Authority::new());
    let listener = LeafnodeListener {
        tls: Some(authority.tls()),
        ..LeafnodeListener::default()
    };
    let hub = hub("hub", 1, listener);
    let with = |tls: TlsOptions| {
        let remote = LeafnodeRemote {
            tls: Some(TlsOptions {
                timeout: WAIT_MAX,
                ..tls
            }),
            urls: vec![format!("tls://localhost:{}", leaf_port(&hub).port())],
            ..remote(&hub)
        };
        spoke_options("spoke", 1, vec![remote])
    };
    let trusting = |ca_file| TlsOptions {
        ca_file: Some(ca_file),
        ..TlsOptions::default()
    };
    let spoke = TestServer::with(with(trusting(other.ca())));
    let reload = |options| spoke.handle.reload(options).expect("it may change");
    assert!(leafz(&spoke).is_empty());
    reload(with(trusting(authority.ca())));
    until("the link", || leafz(&spoke).len() == 1);
    let id = leafz(&spoke)[0]["id"].clone();
    reload(with(TlsOptions {
        min_version: TlsVersion::V1_3,
        ..trusting(authority.ca())
    }));
    check_link(&hub, &spoke);
    assert_eq!(leafz(&spoke)[0]["id"], id);
    // The file first has another authority, then no authority, and then the right one.
    let file = other.ca();
    let doubting = TestServer::with(with(trusting(file.clone())));
    std::fs::write(&file, "nobody").expect("a file");
    assert!(doubting.handle.reload_tls().is_err());
    std::fs::copy(authority.ca(), &file).expect("a file");
    assert!(leafz(&doubting).is_empty());
    doubting.handle.reload_tls().expect("the file is fine");
    until("it is trusted", || leafz(&doubting).len() == 1);
}

/// Returns an account `A` with this default domain.
fn meaning(domain: Option<&str>) -> Auth {
    let mut config = AccessConfig::default();
    let account = config.account_mut("A");
    account.users.push(User::new("ada", "pw"));
    if let Some(domain) = domain {
        config.default_domains.insert("A".into(), domain.into());
    }
    Auth::Directory(Access::new(config).expect("a directory").into())
}

async fn ada(server: &TestServer) -> Client {
    let options = ConnectOptions::new(&format!("nats://ada:pw@{}", server.address()));
    let connected = Client::connect(&options.expect("an address")).await;
    connected.expect("it listens")
}

/// Clients of a spoke without JetStream use the hub's JetStream as if it were local.
#[test]
fn default_domain_applies_to_clients_without_one() {
    let hub = TestServer::with(Options {
        jetstream: Some(JetStreamOptions {
            domain: Some("hub".into()),
            ..JetStreamOptions::default()
        }),
        ..hub_options("hub", 2, LeafnodeListener::default())
    });
    let remote = LeafnodeRemote {
        account: "A".into(),
        ..remote(&hub)
    };
    let spoke = TestServer::with(Options {
        auth: meaning(Some("hub")),
        ..spoke_options("spoke", 2, vec![remote])
    });
    until("the link", || leafz(&spoke).len() == 1);
    block_on(async {
        let (above, below) = (client(&hub).await, ada(&spoke).await);
        until_wanted(&spoke, "$JS.hub.API.>", 1);
        add(&below, "S", r#""subjects":["kept"]"#).await;
        publish(&above, "kept", 3).await;
        until_last(&below, "S", 3).await;
        let config = BucketConfig {
            bucket: "b".into(),
            storage: Storage::Memory,
            ..BucketConfig::default()
        };
        let bucket = JetStream::new(&below).create_bucket(&config).await;
        let bucket = bucket.expect("it is made");
        bucket.put("k", "v").await.expect("it is kept");
        let found = bucket.get("k").await.expect("an answer");
        assert_eq!(found.expect("an entry").value, "v");
    });
}

/// Servers without JetStream domains share one JetStream only if both sides are configured for it.
#[test]
fn jetstream_api_is_separate_unless_configured_otherwise() {
    for (domain, crosses) in [(None, false), (Some(""), true)] {
        let with = |options| Options {
            auth: meaning(domain),
            jetstream: Some(JetStreamOptions::default()),
            ..options
        };
        let listener = LeafnodeListener::default();
        let hub = TestServer::with(with(hub_options("hub", 1, listener)));
        let remote = LeafnodeRemote {
            account: "A".into(),
            ..LeafnodeRemote::new(format!("ada:pw@{}", leaf_port(&hub)))
        };
        let spoke = TestServer::with(with(spoke_options("spoke", 1, vec![remote])));
        until("the link", || leafz(&spoke).len() == 1);
        block_on(async {
            let (above, below) = (ada(&hub).await, ada(&spoke).await);
            let mut received = above.subscribe("$KV.>").await.expect("a filter");
            let mut marks = above.subscribe("mark").await.expect("a filter");
            above.flush().await.expect("it answers");
            until_wanted(&spoke, "mark", 1);
            below.publish("$KV.b.k", "v").await.expect("it takes it");
            below.publish("mark", "").await.expect("it takes it");
            let mark = tokio::time::timeout(WAIT_MAX, marks.next()).await;
            mark.expect("in time").expect("a message");
            let received = tokio::time::timeout(Duration::from_millis(100), received.next()).await;
            assert_eq!(received.is_ok(), crosses, "{domain:?}");
        });
    }
}

/// Each side copies a stream of the other side over a leaf connection, which is interrupted once during the
/// copying.
#[test]
fn streams_are_copied_across() {
    const RECORDS: u64 = 300;
    let with_domain = |options: Options, domain: &str| Options {
        jetstream: Some(JetStreamOptions {
            domain: Some(domain.into()),
            ..JetStreamOptions::default()
        }),
        ..options
    };
    let hub = TestServer::with(with_domain(
        Options {
            leafnodes: LeafnodeOptions {
                listener: Some(LeafnodeListener {
                    port: 0,
                    ..LeafnodeListener::default()
                }),
                ..LeafnodeOptions::default()
            },
            ..named("hub", 2)
        },
        "hub",
    ));
    let attached = with_domain(spoke_options("spoke", 2, vec![remote(&hub)]), "edge");
    let apart = Options {
        leafnodes: LeafnodeOptions {
            remotes: Vec::new(),
            ..attached.leafnodes.clone()
        },
        ..attached.clone()
    };
    let spoke = TestServer::with(attached.clone());
    block_on(async {
        let (above, below) = (client(&hub).await, client(&spoke).await);
        let sides = [(&above, &below, "hub"), (&below, &above, "edge")];
        for (here, there, domain) in sides {
            let subject = format!("kept.{domain}");
            add(here, "ORIGIN", &format!(r#""subjects":["{subject}"]"#)).await;
            let external = format!(r#""external":{{"api":"$JS.{domain}.API","deliver":""}}"#);
            let origin = format!(r#"{{"name":"ORIGIN",{external}}}"#);
            add(there, "MIRROR", &format!(r#""mirror":{origin}"#)).await;
            add(there, "SOURCED", &format!(r#""sources":[{origin}]"#)).await;
            publish(here, &subject, RECORDS).await;
            until_last(there, "MIRROR", RECORDS).await;
            until_last(there, "SOURCED", RECORDS).await;
            check_bucket(there, domain).await;
        }
        spoke.handle.reload(apart).expect("remotes may go");
        for (here, _, domain) in sides {
            publish(here, &format!("kept.{domain}"), RECORDS).await;
        }
        spoke.handle.reload(attached).expect("remotes may come");
        for (_, there, _) in sides {
            until_last(there, "MIRROR", RECORDS * 2).await;
            until_last(there, "SOURCED", RECORDS * 2).await;
        }
    });
}

/// Writes and reads a bucket of another domain, while a local bucket has the same name.
async fn check_bucket(client: &Client, domain: &str) {
    let home = JetStream::new(client);
    let there = home.clone().domain(domain);
    for (jetstream, value) in [(&home, "home"), (&there, "there")] {
        let config = BucketConfig {
            bucket: "PRICES".into(),
            storage: Storage::Memory,
            ..BucketConfig::default()
        };
        let made = jetstream.create_bucket(&config).await;
        let written = made.expect("a bucket").put("tea", value).await;
        assert_eq!(written.expect("it takes it"), 1, "{value}");
    }
    for (jetstream, value) in [(&home, "home"), (&there, "there")] {
        let bucket = jetstream.bucket("PRICES").await.expect("it is there");
        let found = bucket.get("tea").await.expect("an answer");
        assert_eq!(found.expect("an entry").value, value);
        jetstream
            .delete_bucket("PRICES")
            .await
            .expect("it may be deleted");
    }
}

async fn ask(client: &Client, subject: &str, body: &str) -> Value {
    let answer = client.request(subject, body.to_owned(), WAIT_MAX).await;
    let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
    serde_json::from_slice(answer.payload()).expect("JSON")
}

async fn add(client: &Client, name: &str, fields: &str) {
    let body = format!(r#"{{"name":"{name}","storage":"memory",{fields}}}"#);
    let made = ask(client, &format!("$JS.API.STREAM.CREATE.{name}"), &body).await;
    assert!(made.get("error").is_none(), "{made}");
}

async fn publish(client: &Client, subject: &str, count: u64) {
    for number in 0..count {
        let stored = ask(client, subject, &number.to_string()).await;
        assert!(stored.get("error").is_none(), "{stored}");
    }
}

/// Waits until a stream has exactly this many messages.
async fn until_last(client: &Client, stream: &str, last: u64) {
    let info = format!("$JS.API.STREAM.INFO.{stream}");
    let waiting = async {
        loop {
            let found = ask(client, &info, "").await["state"]["last_seq"].as_u64();
            if found >= Some(last) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(WAIT_MAX, waiting).await;
    assert_eq!(found.expect("it catches up"), Some(last), "{stream}");
}
