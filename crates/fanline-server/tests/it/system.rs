//! The system account over real sockets: permitted requests and published events.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use fanline_engine::auth::{
    Access, AccessConfig, Allowed, Export, ExportKind, Import, ImportKind, Permissions,
    ResponseKind, User,
};
use fanline_server::client::{Client, ClientError, ConnectOptions, OutgoingMessage, Subscription};
use fanline_server::{Auth, Limits, Options};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::raw::{SHARD_COUNTS, TestServer, WAIT_MAX, block_on, options};

/// Returns accounts A and B and the system account SYS. Each has a user, and A also has a restricted user.
fn accounts() -> AccessConfig {
    let mut config = AccessConfig {
        system_account: Some("SYS".into()),
        ..AccessConfig::default()
    };
    for name in ["A", "B", "SYS"] {
        let user = User::new(name.to_lowercase(), "pw");
        config.account_mut(name).users.push(user);
    }
    let mut little = User::new("little", "pw");
    little.permissions = Some(Permissions {
        publish: Allowed::publish(Some(&["$SYS.REQ.USER.INFO"]), &[]).expect("subjects"),
        ..Permissions::default()
    });
    config.account_mut("A").users.push(little);
    config
}

fn start(shards: usize, config: AccessConfig) -> TestServer {
    let access = Access::new(config).expect("a directory");
    TestServer::with(Options {
        auth: Auth::Directory(Arc::new(access)),
        ..options(shards)
    })
}

async fn connect(server: &TestServer, user: &str, password: &str) -> Result<Client, ClientError> {
    let address = server.address();
    let options = ConnectOptions::new(&format!("nats://{user}:{password}@{address}"));
    Client::connect(&options.expect("an address").name(user)).await
}

async fn client(server: &TestServer, user: &str) -> Client {
    let connected = connect(server, user, "pw").await;
    connected.unwrap_or_else(|error| panic!("{user}: {error}"))
}

async fn ask(client: &Client, subject: &str, body: &str) -> Value {
    let answer = client.request(subject, body.to_owned(), WAIT_MAX).await;
    let answer = answer.unwrap_or_else(|error| panic!("{subject}: {error}"));
    serde_json::from_slice(answer.payload()).expect("JSON")
}

async fn next(subscription: &mut Subscription) -> (String, Value) {
    let next = timeout(WAIT_MAX, subscription.next()).await;
    let message = next.expect("in time").expect("a message");
    let body = serde_json::from_slice(message.payload()).expect("JSON");
    (message.subject().to_owned(), body)
}

/// Returns the names of the connections in a response. In these tests, a connection has the name of its user.
fn names(answer: &Value) -> Vec<&str> {
    let all = answer["data"]["connections"].as_array();
    let all = all.unwrap_or_else(|| panic!("no connections in {answer}"));
    let mut names: Vec<&str> = all.iter().filter_map(|one| one["name"].as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn users_of_the_system_account_ask_for_everything_and_others_do_not() {
    for shards in SHARD_COUNTS {
        let server = start(shards, accounts());
        let (system, a) = (client(&server, "sys").await, client(&server, "a").await);
        let varz = ask(&system, "$SYS.REQ.SERVER.PING.VARZ", "").await;
        let id = varz["server"]["id"].as_str().expect("an id").to_owned();
        assert_eq!(varz["data"]["server_id"], id.as_str());
        assert_eq!(varz["data"]["system_account"], "SYS");
        assert_eq!(varz["data"]["connections"], 2);
        let connz = ask(&system, &format!("$SYS.REQ.SERVER.{id}.CONNZ"), "").await;
        assert_eq!(names(&connz), ["a", "sys"]);
        let connz = ask(&system, "$SYS.REQ.ACCOUNT.A.CONNZ", "").await;
        assert_eq!(names(&connz), ["a"]);
        let info = ask(&system, "$SYS.REQ.ACCOUNT.A.INFO", "").await;
        assert_eq!(info["data"]["account_name"], "A");
        let conns = ask(&system, "$SYS.REQ.ACCOUNT.A.CONNS", "").await;
        assert_eq!((&conns["acc"], &conns["conns"]), (&json!("A"), &json!(1)));
        for subject in [
            "$SYS.REQ.SERVER.PING",
            "$SYS.REQ.SERVER.PING.VARZ",
            "$SYS.REQ.SERVER.<id>.CONNZ",
            "$SYS.REQ.SERVER.<id>.KICK",
            "$SYS.REQ.ACCOUNT.A.CONNZ",
            "$SYS.REQ.ACCOUNT.A.INFO",
            "$SYS.REQ.USER.A.INFO",
        ] {
            let subject = subject.replace("<id>", &id);
            let refused = a.request(&subject, "", WAIT_MAX).await;
            let is_refused = matches!(refused, Err(ClientError::NoResponders));
            assert!(is_refused, "{subject}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn user_info_reports_the_requester() {
    for shards in SHARD_COUNTS {
        let server = start(shards, accounts());
        for (user, account) in [("a", "A"), ("b", "B"), ("sys", "SYS")] {
            let client = client(&server, user).await;
            let info = ask(&client, "$SYS.REQ.USER.INFO", "").await;
            let expected = json!({ "user": user, "account": account, "account_name": account });
            assert_eq!(info["data"], expected, "{shards} shards");
            assert!(info["server"]["id"].is_string(), "{info}");
        }
        let little = client(&server, "little").await;
        let info = ask(&little, "$SYS.REQ.USER.INFO", "").await;
        let permissions = json!({ "publish": { "allow": ["$SYS.REQ.USER.INFO"] } });
        assert_eq!(info["data"]["permissions"], permissions);
    }
    // The request also works without required credentials.
    let server = TestServer::start(2);
    let options = ConnectOptions::new(&format!("nats://{}", server.address()));
    let guest = Client::connect(&options.expect("an address")).await;
    let info = ask(&guest.expect("it is let in"), "$SYS.REQ.USER.INFO", "").await;
    assert_eq!(info["data"]["account"], "$G", "{info}");
}

#[tokio::test]
async fn responses_are_compressed_on_request() {
    let server = start(1, accounts());
    let system = client(&server, "sys").await;
    for (accepted, expected) in [("gzip", "gzip"), ("snappy", "identity")] {
        let mut message = OutgoingMessage {
            subject: "$SYS.REQ.SERVER.PING.VARZ".into(),
            ..OutgoingMessage::default()
        };
        let received = message.headers.append("Accept-Encoding", accepted);
        received.expect("a header");
        let answer = system.request_message(&message, WAIT_MAX).await;
        let answer = answer.expect("an answer");
        let encoding = answer
            .headers()
            .and_then(|headers| headers.get("Content-Encoding"));
        assert_eq!(encoding, Some(expected));
        let mut body = Vec::new();
        let packed = answer.payload();
        match expected {
            "gzip" => drop(flate2::read::GzDecoder::new(packed).read_to_end(&mut body)),
            _ => body.extend_from_slice(packed),
        }
        let varz: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(varz["data"]["system_account"], "SYS");
    }
}

#[tokio::test]
async fn subscribers_are_counted_in_the_requesters_account() {
    const SUBSCRIBERS: &str = "$SYS.DEBUG.SUBSCRIBERS";
    for shards in SHARD_COUNTS {
        let mut config = accounts();
        config.account_mut("SYS").exports.push(Export {
            kind: ExportKind::Service {
                response: ResponseKind::Single,
                response_threshold: None,
                latency: None,
            },
            subject: SUBSCRIBERS.into(),
            accounts: Some(vec!["B".into()]),
            account_token_position: None,
            allow_trace: false,
        });
        config.account_mut("B").imports.push(Import {
            kind: ImportKind::Service { share: false },
            account: "SYS".into(),
            subject: SUBSCRIBERS.into(),
            to: None,
            allow_trace: false,
        });
        let server = start(shards, config);
        let (a, b) = (client(&server, "a").await, client(&server, "b").await);
        let system = client(&server, "sys").await;
        let mut kept = Vec::new();
        for (client, filter) in [(&b, "foo"), (&b, "foo.*"), (&system, "foo"), (&a, "foo")] {
            kept.push(client.subscribe(filter).await.expect("subscribed"));
            client.flush().await.expect("flushed");
        }
        for (client, body, count) in [
            (&b, "foo", 1),
            (&b, "foo.bar", 1),
            (&b, "foo.>", 1),
            (&system, "foo", 1),
            (&system, "foo.bar", 0),
            (&system, "", 0),
        ] {
            assert_eq!(ask(client, SUBSCRIBERS, body).await, count, "{body}");
        }
        let refused = a.request(SUBSCRIBERS, "foo", WAIT_MAX).await;
        assert!(
            matches!(refused, Err(ClientError::NoResponders)),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn accounts_receive_only_their_own_statistics() {
    for shards in SHARD_COUNTS {
        let mut config = accounts();
        config.account_mut("B").imports.push(Import {
            kind: ImportKind::Service { share: false },
            account: "SYS".into(),
            subject: "$SYS.REQ.ACCOUNT.PING.CONNZ".into(),
            to: Some("who".into()),
            allow_trace: false,
        });
        let server = start(shards, config);
        let (a, b) = (client(&server, "a").await, client(&server, "b").await);
        let _system = client(&server, "sys").await;
        for subject in ["$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"] {
            for body in ["", r#"{"acc":"B"}"#, r#"{"acc":"SYS","auth":true}"#] {
                let connz = ask(&a, subject, body).await;
                assert_eq!(names(&connz), ["a"], "{subject} {body}");
                assert_eq!(connz["data"]["total"], 1, "{connz}");
            }
        }
        assert_eq!(names(&ask(&b, "who", "").await), ["b"]);
        for body in ["", r#"{"accounts":["B"]}"#, r#"{"include_unused":true}"#] {
            let statz = ask(&a, "$SYS.REQ.ACCOUNT.PING.STATZ", body).await;
            let all = statz["data"]["account_statz"].as_array().expect("a list");
            assert_eq!(all.len(), 1, "{statz}");
            assert_eq!(all[0]["acc"], "A", "{statz}");
        }
    }
}

#[tokio::test]
async fn connect_events_name_the_account() {
    for shards in SHARD_COUNTS {
        let server = start(shards, accounts());
        let system = client(&server, "sys").await;
        let mut events = system
            .subscribe("$SYS.ACCOUNT.A.*")
            .await
            .expect("subscribed");
        let mut counts = system
            .subscribe("$SYS.ACCOUNT.A.SERVER.CONNS")
            .await
            .expect("subscribed");
        let mut refusals = system
            .subscribe("$SYS.SERVER.*.CLIENT.AUTH.ERR")
            .await
            .expect("subscribed");
        system.flush().await.expect("flushed");
        let a = client(&server, "a").await;
        let b = client(&server, "b").await;
        let (subject, event) = next(&mut events).await;
        assert_eq!(subject, "$SYS.ACCOUNT.A.CONNECT");
        assert_eq!(event["type"], "io.nats.server.advisory.v1.client_connect");
        assert_eq!(event["client"]["acc"], "A", "{event}");
        assert_eq!(event["client"]["user"], "a", "{event}");
        let (_, count) = next(&mut counts).await;
        assert_eq!(count["acc"], "A", "{count}");
        a.drain().await.expect("drained");
        let (subject, event) = next(&mut events).await;
        assert_eq!(subject, "$SYS.ACCOUNT.A.DISCONNECT");
        assert_eq!(event["client"]["acc"], "A", "{event}");
        assert_eq!(event["reason"], "Client Closed", "{event}");
        assert!(connect(&server, "a", "wrong").await.is_err());
        let (_, event) = next(&mut refusals).await;
        assert_eq!(event["reason"], "Authentication Failure", "{event}");
        assert!(!event.to_string().contains("wrong"), "{event}");
        // Only the system account receives such events.
        let mut all = b.subscribe("$SYS.>").await.expect("subscribed");
        b.flush().await.expect("flushed");
        client(&server, "a").await;
        let (subject, _) = next(&mut events).await;
        assert_eq!(subject, "$SYS.ACCOUNT.A.CONNECT");
        b.publish("$SYS.fence", "{}").await.expect("published");
        assert_eq!(next(&mut all).await.0, "$SYS.fence");
    }
}

#[tokio::test]
async fn connections_are_closed_on_request() {
    let server = start(2, accounts());
    let (system, a) = (client(&server, "sys").await, client(&server, "a").await);
    let connz = ask(&system, "$SYS.REQ.ACCOUNT.A.CONNZ", "").await;
    let cid = &connz["data"]["connections"][0]["cid"];
    let id = connz["server"]["id"].as_str().expect("an id");
    let kick = format!("$SYS.REQ.SERVER.{id}.KICK");
    for body in ["", "{}", r#"{"cid":0}"#, r#"{"cid":"x"}"#, r#"{"cid":999}"#] {
        let refused = ask(&system, &kick, body).await;
        let words = "no such client or leafnode id";
        assert_eq!(refused["error"]["description"], words, "{body}");
    }
    let done = ask(&system, &kick, &json!({ "cid": cid }).to_string()).await;
    assert_eq!(done["error"], Value::Null, "{done}");
    timeout(WAIT_MAX, a.closed()).await.expect("it is closed");
}

#[tokio::test]
async fn no_request_stops_the_service() {
    let server = TestServer::with(Options {
        limits: Limits {
            // The system client needs more subscriptions and larger payloads than these limits allow.
            subscriptions_max: Some(3),
            payload_bytes_max: 1024,
            ..Limits::default()
        },
        auth: Auth::Directory(Arc::new(Access::new(accounts()).expect("a directory"))),
        ..options(2)
    });
    let system = client(&server, "sys").await;
    for _ in 0..2 {
        for (subject, body) in [
            ("$SYS.REQ.ACCOUNT.nobody.CONNS", ""),
            ("$SYS.REQ.ACCOUNT.nobody.INFO", ""),
            ("$SYS.REQ.ACCOUNT.PING.INFO", ""),
            ("$SYS.REQ.SERVER.PING.VARZ", "no JSON"),
            ("$SYS.REQ.SERVER.PING.VARZ", "[1]"),
            ("$SYS.REQ.SERVER.PING.CONNZ", r#"{"limit":"x"}"#),
        ] {
            let refused = ask(&system, subject, body).await;
            assert!(refused["error"]["code"].is_u64(), "{subject}: {refused}");
        }
        let streams = ask(&system, "$SYS.REQ.ACCOUNT.nobody.JSZ", "").await;
        assert_eq!(streams["data"], Value::Null, "{streams}");
        let large = ask(&system, "$SYS.REQ.SERVER.PING.VARZ", "").await;
        let problem = large["error"]["description"].as_str().unwrap_or_default();
        assert!(problem.contains("at most 1024"), "{large}");
        let nobody = ask(&system, "$SYS.REQ.USER.nobody.INFO", "").await;
        assert_eq!(nobody["data"]["user"], "", "{nobody}");
        // Changes of users do not affect the system client.
        let replaced = server.handle.replace_access(accounts());
        replaced.expect("it is the same directory");
    }
}

#[tokio::test]
async fn reload_request_reaches_the_program() {
    let server = start(1, accounts());
    let system = client(&server, "sys").await;
    let idz = ask(&system, "$SYS.REQ.SERVER.PING.IDZ", "").await;
    let reload = format!(
        "$SYS.REQ.SERVER.{}.RELOAD",
        idz["id"].as_str().expect("an id")
    );
    let refused = ask(&system, &reload, "").await;
    assert_eq!(refused["error"]["code"], 500, "{refused}");
    let mut requests = server.handle.reload_requests();
    for outcome in [Ok(()), Err("not today".to_owned())] {
        let answering = async {
            let request = requests.next().await.expect("a request");
            request.answer(outcome.clone());
        };
        let (answer, ()) = tokio::join!(ask(&system, &reload, ""), answering);
        match outcome {
            Ok(()) => assert_eq!(answer["error"], Value::Null, "{answer}"),
            Err(why) => assert_eq!(answer["error"]["description"], why, "{answer}"),
        }
    }
    drop(requests);
    let refused = ask(&system, &reload, "").await;
    assert_eq!(refused["error"]["code"], 500, "{refused}");
}

#[test]
fn a_server_does_without_its_system_account() {
    for is_without in [false, true] {
        let server = TestServer::with(Options {
            no_system_account: is_without,
            monitoring: Some(("127.0.0.1".into(), 0)),
            ..options(2)
        });
        block_on(async {
            let url = format!("nats://{}", server.address());
            let own = Client::connect(&ConnectOptions::new(&url).expect("an address")).await;
            let own = own.expect("it listens");
            for subject in ["$SYS.REQ.USER.INFO", "$SYS.REQ.ACCOUNT.PING.CONNZ"] {
                let answer = own.request(subject, "", WAIT_MAX).await;
                assert_eq!(answer.is_err(), is_without, "{subject}: {answer:?}");
            }
        });
        let address = server.handle.addresses().monitoring.expect("it is on");
        for (page, named) in [
            ("varz", "\"system_account\": \"$SYS\""),
            ("accountz", "\"$SYS\""),
        ] {
            let body = get(address, page);
            assert_eq!(body.contains(named), !is_without, "{page}: {body}");
        }
    }
}

fn get(address: std::net::SocketAddr, page: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let request = format!("GET /{page} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut body = String::new();
    stream.read_to_string(&mut body).expect("an answer");
    body
}
