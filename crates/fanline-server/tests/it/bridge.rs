//! Bindings of subjects, replay subjects, and hubs in this process to subjects of the server.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fanline::prelude::*;
use fanline::{Replay, ReplaySubject, Source, Subject};
use fanline_server::auth::{Access, AccessConfig, Allowed, Permissions, User};
use fanline_server::bridge::{
    BoxError, BridgeError, Decode, Draft, Encode, Fault, Json, MessagePack, Raw, WhenFull,
};
use fanline_server::client::jetstream::{JetStream, JetStreamError, Start, StreamConfig};
use fanline_server::client::{ClientError, ConnectOptions, Disconnect, Message, OutgoingMessage};
use fanline_server::{Auth, Handle, JetStreamOptions, Options};
use serde::{Deserialize, Serialize};

use crate::raw::{RawClient, SHARD_COUNTS, TestServer, WAIT_MAX, block_on, options, until};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tick {
    symbol: String,
    price: u32,
}

fn tick(symbol: &str, price: u32) -> Tick {
    Tick {
        symbol: symbol.into(),
        price,
    }
}

/// Returns the values of a source, with the guard of the subscription.
fn follow<T: Clone + Send + Sync + 'static>(source: &Source<T>) -> (Guard, Receiver<T>) {
    let (sender, seen) = channel();
    let guard = source.subscribe(move |value: &T| {
        // This fails if the test has ended.
        let _ = sender.send(value.clone());
    });
    (guard, seen)
}

fn next<T>(seen: &Receiver<T>) -> T {
    seen.recv_timeout(WAIT_MAX).expect("it arrives")
}

fn nothing_more<T: Debug>(seen: &Receiver<T>) {
    if let Ok(value) = seen.recv_timeout(Duration::from_millis(20)) {
        panic!("one too many: {value:?}");
    }
}

fn text(message: &Message) -> (String, String) {
    let payload = String::from_utf8_lossy(message.payload()).into_owned();
    (message.subject().to_owned(), payload)
}

/// Checks that the next message of a client over TCP has this subject and payload.
fn arrives(client: &mut RawClient, subject: &str, payload: &str) {
    let message = client.message();
    let seen = String::from_utf8_lossy(&message.payload);
    assert_eq!((message.subject.as_str(), &*seen), (subject, payload));
}

fn with_jetstream() -> TestServer {
    TestServer::with(Options {
        jetstream: Some(JetStreamOptions::default()),
        ..options(2)
    })
}

fn make_stream(server: &Handle, messages: std::ops::Range<u32>) {
    block_on(async {
        let client = server.client().await.expect("connected");
        let jetstream = JetStream::new(&client);
        let config = StreamConfig {
            name: "ORDERS".into(),
            subjects: vec!["orders.*".into()],
            storage: fanline_server::client::jetstream::Storage::Memory,
            ..Default::default()
        };
        let made = jetstream.create_stream(&config.into()).await;
        made.expect("a stream");
        for number in messages {
            let subject = if number % 2 == 0 {
                "orders.even"
            } else {
                "orders.odd"
            };
            let stored = jetstream.publish(subject, number.to_string()).await;
            stored.expect("stored");
        }
    });
}

#[test]
fn emitted_values_reach_clients_and_observers() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let mut outside = server.client();
        outside.subscribe("ticks.*", "1");
        let (_guard, inside) = follow(&server.handle.observe("ticks.>").expect("observed"));

        let ticks = Subject::<Tick>::new();
        let codec = Json.to(|tick: &Tick| format!("ticks.{}", tick.symbol));
        let binding = server.handle.publish_from("ticks.>", &ticks, codec);
        let binding = binding.expect("bound");
        ticks.next(tick("MUG", 7));
        ticks.next_slice(&[tick("CUP", 8), tick("MUG", 9)]);

        let expected = [("ticks.MUG", 7), ("ticks.CUP", 8), ("ticks.MUG", 9)];
        for (subject, price) in expected {
            let message = next(&inside);
            assert_eq!(message.subject(), subject);
            let decoded: Tick = serde_json::from_slice(message.payload()).expect("JSON");
            assert_eq!(decoded.price, price);
            let symbol = subject.trim_start_matches("ticks.");
            let payload = serde_json::to_string(&tick(symbol, price)).expect("JSON");
            arrives(&mut outside, subject, &payload);
        }
        nothing_more(&inside);
        until("three messages are published", || binding.published() == 3);
        assert_eq!(binding.dropped(), 0);

        binding.unbind();
        ticks.next(tick("MUG", 10));
        assert!(!ticks.has_observers());
        nothing_more(&inside);
    }
}

#[test]
fn client_messages_reach_observers() {
    for shards in SHARD_COUNTS {
        let server = TestServer::start(shards);
        let orders: Source<Message> = server.handle.observe("orders.*").expect("observed");
        let (_first, seen) = follow(&orders);
        let (_second, seen_too) = follow(&orders);
        let mut outside = server.client();
        outside.publish("orders.new", "one coffee");
        outside.publish("elsewhere", "nothing");
        outside.publish("orders.late", "");
        for seen in [&seen, &seen_too] {
            assert_eq!(
                text(&next(seen)),
                ("orders.new".into(), "one coffee".into())
            );
            assert_eq!(text(&next(seen)), ("orders.late".into(), String::new()));
            nothing_more(seen);
        }
    }
}

#[test]
fn bytes_are_not_copied_in_the_process() {
    let server = TestServer::start(1);
    let (_guard, seen) = follow(&server.handle.observe("frames").expect("observed"));
    let frames = Subject::<Bytes>::new();
    let _binding = server.handle.publish_from("frames", &frames, Raw);
    let frame = Bytes::from(vec![7; 4096]);
    frames.next(frame.clone());
    assert_eq!(next(&seen).payload().as_ptr(), frame.as_ptr());
}

#[test]
fn values_survive_each_codec() {
    let server = TestServer::start(2);
    let bridge = server.handle.bridge().expect("a bridge");
    let json: Source<Tick> = bridge.observe_as("json", Json).expect("observed");
    let packed: Source<Tick> = bridge.observe_as("packed", MessagePack).expect("observed");
    let words: Source<String> = bridge.observe_as("words", Raw).expect("observed");
    let ((_a, json), (_b, packed), (_c, words)) = (follow(&json), follow(&packed), follow(&words));
    let ticks = Subject::<Tick>::new();
    let lines = Subject::<String>::new();
    let _bindings = [
        bridge.publish_from("json", &ticks, Json).expect("bound"),
        bridge
            .publish_from("packed", &ticks, MessagePack)
            .expect("bound"),
        bridge.publish_from("words", &lines, Raw).expect("bound"),
    ];
    ticks.next(tick("MUG", 3));
    lines.next("é".into());
    assert_eq!(next(&json), tick("MUG", 3));
    assert_eq!(next(&packed), tick("MUG", 3));
    assert_eq!(next(&words), "é");
}

#[test]
fn faults_are_reported_and_later_messages_pass() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let (_faults, faults) = follow(&bridge.faults());
    let (_guard, ticks) = follow::<Tick>(&bridge.observe_as("ticks.*", Json).expect("observed"));
    let mut outside = server.client();
    outside.publish("ticks.MUG", "no JSON");
    let fault = next(&faults);
    assert!(
        matches!(&fault, Fault::Decode { subject, .. } if subject == "ticks.MUG"),
        "{fault}"
    );

    let source = Subject::<Tick>::new();
    let codec = Json.to(|tick: &Tick| tick.symbol.clone());
    let binding = bridge
        .publish_from("ticks.*", &source, codec)
        .expect("bound");
    for wrong in [
        "elsewhere",
        "ticks.a.b",
        "ticks.",
        "ticks.*",
        "ticks.a b",
        "",
        "ticks.a\r\n",
    ] {
        source.next(tick(wrong, 1));
        let subject = wrong.to_owned();
        let bound_to = "ticks.*".to_owned();
        let fault = next(&faults);
        assert_eq!(fault, Fault::Subject { subject, bound_to });
        // The error of a codec that sets no subject contains a hint.
        assert_eq!(fault.to_string().contains("codec.to("), wrong.is_empty());
    }
    let lines = Subject::<String>::new();
    let _lines = bridge.publish_from("lines", &lines, Raw).expect("bound");
    lines.next("x".repeat(1024 * 1024 + 1));
    let fault = next(&faults);
    assert!(
        matches!(&fault, Fault::Encode { subject, .. } if subject == "lines"),
        "{fault}"
    );

    source.next(tick("ticks.CUP", 2));
    assert_eq!(next(&ticks), tick("ticks.CUP", 2));
    assert_eq!(binding.dropped(), 7);
    nothing_more(&faults);
}

#[test]
fn invalid_subjects_are_rejected() {
    let server = TestServer::start(1);
    let source = Subject::<String>::new();
    for wrong in ["", "a..b", "a b", "a.>.b", ".a"] {
        let observed = server.handle.observe(wrong);
        assert!(matches!(observed, Err(BridgeError::Client(_))), "{wrong:?}");
        let bound = server.handle.publish_from(wrong, &source, Raw);
        assert!(matches!(bound, Err(BridgeError::Client(_))), "{wrong:?}");
        let published = server.handle.bridge().expect("open").publish(wrong, "x");
        assert!(
            matches!(published, Err(BridgeError::Client(_))),
            "{wrong:?}"
        );
    }
    assert!(!source.has_observers());
}

/// Regression: a codec built a subject that was longer than the server accepts. The server then closed the
/// bridge for all its users.
#[test]
fn a_subject_that_is_too_long_costs_its_message_alone() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let (_faults, faults) = follow(&bridge.faults());
    let (_guard, seen) = follow(&bridge.observe("a.>").expect("observed"));
    let mut outside = server.client();
    outside.subscribe("a.>", "1");

    // The limit of 4,096 bytes applies to the whole protocol line, with reply subject and sizes.
    let longest = format!("a.{}", "x".repeat(4096 - "a. 2".len()));
    let longer = format!("{longest}x");
    let names = Subject::<String>::new();
    let codec = Raw.to(|name: &String| name.clone());
    let binding = bridge.publish_from("a.>", &names, codec).expect("bound");
    names.next(longer.clone());
    assert!(matches!(next(&faults), Fault::Encode { subject, .. } if subject == longer));
    let too_long = |outcome: Result<(), BridgeError>| {
        let found = matches!(
            outcome,
            Err(BridgeError::Client(ClientError::LineTooLong { bytes, bytes_max: 4096 })) if bytes > 4096
        );
        assert!(found, "{outcome:?}");
    };
    too_long(bridge.publish(&longer, "ok"));
    too_long(bridge.observe(&longer).map(drop));
    too_long(bridge.messages(&longer).map(drop));
    let reply = Some("r".repeat(4096));
    too_long(bridge.publish_message(OutgoingMessage {
        subject: "a.b".into(),
        reply,
        ..OutgoingMessage::default()
    }));

    bridge.publish(&longest, "ok").expect("published");
    assert_eq!(next(&seen).subject(), longest);
    arrives(&mut outside, &longest, "ok");
    assert_eq!((binding.dropped(), bridge.is_closed()), (1, false));
}

#[test]
fn requests_are_answered() {
    let server = TestServer::start(2);
    let bridge = server.handle.bridge().expect("a bridge");
    let requests = bridge.observe("double").expect("observed");
    let answers = bridge.clone();
    let _guard = requests.subscribe(move |request| {
        let answer = [request.payload(), request.payload()].concat();
        let reply = request.reply().expect("somebody waits");
        answers.publish(reply, answer).expect("published");
    });
    block_on(async {
        let client = server.handle.client().await.expect("connected");
        let answer = client.request("double", "ab", WAIT_MAX).await;
        assert_eq!(answer.expect("an answer").payload(), b"abab");
    });
    // A request from this process, and then one through the server.
    let (_guard, seen) = follow(&bridge.observe("inbox").expect("observed"));
    let request = OutgoingMessage {
        subject: "double".into(),
        reply: Some("inbox".into()),
        payload: "x".into(),
        ..Default::default()
    };
    bridge.publish_message(request).expect("published");
    assert_eq!(next(&seen).payload(), b"xx");
    nothing_more(&seen);
}

#[test]
fn replies_and_headers_are_preserved() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let (_inside, inside) = follow(&bridge.observe("copies").expect("observed"));
    let mut outside = server.client();
    outside.subscribe("copies", "1");
    let originals = bridge.observe("originals").expect("observed");
    let _binding = bridge
        .publish_from("copies", &originals, Raw)
        .expect("bound");
    let mut message = OutgoingMessage {
        subject: "originals".into(),
        reply: Some("in.box".into()),
        payload: "x".into(),
        ..Default::default()
    };
    message.headers.append("A", "1").expect("a header");
    bridge.publish_message(message).expect("published");
    let copy = next(&inside);
    assert_eq!((copy.subject(), copy.reply()), ("copies", Some("in.box")));
    assert_eq!(
        copy.headers().and_then(|headers| headers.get("A")),
        Some("1")
    );
    let copy = outside.message();
    assert_eq!(
        (copy.reply.as_deref(), &*copy.payload),
        (Some("in.box"), &b"x"[..])
    );
}

#[test]
fn order_of_a_publisher_holds_for_all_receivers() {
    let server = TestServer::start(2);
    let (_guard, inside) = follow::<u32>(&server.handle.observe_as("n", Json).expect("observed"));
    let mut outside = server.client();
    outside.subscribe("n", "1");
    let numbers = Subject::<u32>::new();
    let _binding = server
        .handle
        .publish_from("n", &numbers, Json)
        .expect("bound");
    let slices: Vec<Vec<u32>> = vec![(0..1).collect(), (1..700).collect(), (700..701).collect()];
    for slice in slices {
        numbers.next_slice(&slice);
    }
    for number in 0..701 {
        assert_eq!(next(&inside), number);
        arrives(&mut outside, "n", &number.to_string());
    }
}

#[test]
fn message_published_by_an_observer_follows_its_cause() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let mut outside = server.client();
    outside.subscribe(">", "1");
    let (causes, reaction) = (bridge.observe("cause").expect("observed"), bridge.clone());
    let _guard = causes.subscribe(move |_| {
        reaction.publish("effect", "2").expect("published");
    });
    bridge.publish("cause", "1").expect("published");
    arrives(&mut outside, "cause", "1");
    arrives(&mut outside, "effect", "2");
}

#[test]
fn subscription_ends_without_observers() {
    let server = TestServer::start(1);
    let source = server.handle.observe("quiet").expect("observed");
    let subscriptions = || {
        block_on(async {
            let client = server.handle.client().await.expect("connected");
            let outcome = client.request("quiet", "", Duration::from_millis(50)).await;
            !matches!(outcome, Err(ClientError::NoResponders))
        })
    };
    assert!(subscriptions(), "a source is enough");
    let guard = source.subscribe(|_| ());
    drop(source);
    assert!(subscriptions(), "an observer is enough");
    drop(guard);
    until("the subscription ends", || !subscriptions());
}

#[test]
fn the_last_records_of_a_stream_come_first_and_then_what_follows() {
    let server = with_jetstream();
    make_stream(&server.handle, 0..10);
    let source = server.handle.stream("ORDERS").replay(Replay::many(3));
    let source: Source<Message> = source.expect("replayed");
    let (_guard, seen) = follow(&source);
    for number in 7..10 {
        assert_eq!(next(&seen).payload(), number.to_string().as_bytes());
    }
    server.client().publish("orders.odd", "11");
    assert_eq!(text(&next(&seen)), ("orders.odd".into(), "11".into()));
    // A late observer receives the last three messages before it subscribed.
    let (_late, late) = follow(&source);
    let payloads: Vec<_> = (0..3).map(|_| text(&next(&late)).1).collect();
    assert_eq!(payloads, ["8", "9", "11"]);
}

#[test]
fn replay_has_the_requested_length() {
    let server = with_jetstream();
    make_stream(&server.handle, 0..6);
    let replayed = |replay: Result<Source<Message>, BridgeError>, expected: &[u32]| {
        let (_guard, seen) = follow(&replay.expect("replayed"));
        for number in expected {
            assert_eq!(next(&seen).payload(), number.to_string().as_bytes());
        }
        nothing_more(&seen);
    };
    let stream = || server.handle.stream("ORDERS");
    replayed(stream().replay(Replay::all()), &[0, 1, 2, 3, 4, 5]);
    replayed(stream().replay(Replay::one()), &[5]);
    replayed(stream().replay(Replay::many(100)), &[0, 1, 2, 3, 4, 5]);
    replayed(
        stream().replay(Replay::within(WAIT_MAX)),
        &[0, 1, 2, 3, 4, 5],
    );
    replayed(
        stream().filter("orders.odd").replay(Replay::all()),
        &[1, 3, 5],
    );
    // An early observer receives no more stored messages than a late one.
    let odd = || stream().filter("orders.odd");
    replayed(odd().replay(Replay::many(2)), &[3, 5]);
    replayed(odd().replay(Replay::many_within(1, WAIT_MAX)), &[5]);
    let (_guard, seen) = follow(&odd().replay(Replay::one()).expect("replayed"));
    assert_eq!(next(&seen).payload(), b"5");
    server.client().publish("orders.odd", "7");
    assert_eq!(next(&seen).payload(), b"7");
}

#[test]
fn deleted_records_do_not_make_a_replay_longer() {
    let server = with_jetstream();
    make_stream(&server.handle, 0..10);
    block_on(async {
        let client = server.handle.client().await.expect("connected");
        let jetstream = JetStream::new(&client);
        for sequence in [2, 3] {
            let deleted = jetstream.delete_message("ORDERS", sequence, false).await;
            deleted.expect("deleted");
        }
    });
    let replay = server.handle.stream("ORDERS").replay(Replay::many(3));
    let (_guard, seen) = follow(&replay.expect("replayed"));
    for number in 7..10 {
        assert_eq!(next(&seen).payload(), number.to_string().as_bytes());
    }
    nothing_more(&seen);
}

#[test]
fn impossible_replay_fails_immediately() {
    let server = TestServer::start(1);
    let stream = |name| server.handle.stream(name);
    assert!(matches!(
        stream("ORDERS").replay(Replay::one()),
        Err(BridgeError::JetStream(JetStreamError::NotEnabled))
    ));
    assert!(matches!(
        stream("ORDERS").records(Start::All),
        Err(BridgeError::JetStream(JetStreamError::NotEnabled))
    ));
    let Err(BridgeError::Client(error)) = stream("ORDERS").filter("a..b").replay(Replay::one())
    else {
        panic!("it is no filter");
    };
    assert!(error.to_string().starts_with("invalid subject \"a..b\""));
}

#[test]
fn missing_or_deleted_stream_is_reported() {
    let server = with_jetstream();
    let bridge = server.handle.bridge().expect("a bridge");
    let missing = bridge.stream("NONE").replay(Replay::all());
    let Err(BridgeError::JetStream(error)) = missing else {
        panic!("there is no such stream");
    };
    assert!(error.is_stream_not_found());

    make_stream(&server.handle, 0..1);
    let (_faults, faults) = follow(&bridge.faults());
    let mut records = bridge.stream("ORDERS").records(Start::All).expect("read");
    assert_eq!(
        records.blocking_next().map(|record| record.stream_sequence),
        Some(1)
    );
    block_on(async {
        let client = server.handle.client().await.expect("connected");
        let deleted = JetStream::new(&client).delete_stream("ORDERS").await;
        deleted.expect("deleted");
    });
    assert!(records.blocking_next().is_none());
    let fault = next(&faults);
    assert!(
        matches!(&fault, Fault::Stream { stream, .. } if stream == "ORDERS"),
        "{fault}"
    );
}

#[test]
fn a_hub_waits_for_the_server_and_records_for_a_hub() {
    let server = with_jetstream();
    make_stream(&server.handle, 0..0);
    let bridge = server.handle.bridge().expect("a bridge");
    const COUNT: u32 = 3000;

    // A hub publishes to the server. A producer that is faster than the server waits for room in the hub.
    let (hub, receiver) = fanline::hub::merge::<String>(16);
    let binding = bridge
        .publish_stream("orders.in", receiver, Raw)
        .expect("bound");
    let mut producer = hub.producer();
    for number in 0..COUNT {
        producer
            .blocking_send(number.to_string())
            .expect("the hub is open");
    }
    drop(producer);
    hub.drain();
    until("all is published", || {
        binding.is_closed() && binding.published() == u64::from(COUNT)
    });

    // A hub reads from the server. With a slow consumer, unread messages stay in the log, and none is lost.
    let records = bridge.stream("ORDERS").records(Start::All).expect("read");
    let (out, mut slow) = fanline::hub::merge::<fanline_server::client::jetstream::Delivery>(16);
    let attached = std::thread::spawn({
        let producer = out.producer();
        move || block_on(producer.attach(records))
    });
    for number in 0..COUNT {
        if number % 1000 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let record = slow.blocking_recv().expect("a record");
        assert_eq!(record.message.payload(), number.to_string().as_bytes());
    }
    drop(slow);
    // The hub is closed, so its producer ends.
    attached.join().expect("no panic").expect_err("closed");
}

#[test]
fn handle_binds_hubs_with_the_default_bridge() {
    let server = TestServer::start(1);
    let handle = &server.handle;
    // A hub reads from the server: each consumer receives the messages of all publishers.
    let (seen, desks) = fanline::hub::broadcast::<Message>(16);
    let mut desk = desks.subscribe();
    let guard = seen.attach_source(handle.observe("orders.*").expect("observed"));
    // A hub publishes to the server.
    let (mut orders, hub) = fanline::hub::broadcast::<String>(16);
    let binding = handle
        .publish_stream("orders.new", hub.subscribe(), Raw)
        .expect("bound");
    orders
        .blocking_send("one coffee".to_owned())
        .expect("the hub is open");
    let order = desk.blocking_recv().expect("an order");
    assert_eq!(text(&order), ("orders.new".into(), "one coffee".into()));
    let mut messages = handle.messages("orders.*").expect("subscribed");
    handle.publish("orders.old", "two teas").expect("published");
    let order = messages.blocking_next().expect("an order");
    assert_eq!(text(&order), ("orders.old".into(), "two teas".into()));
    let order = desk.blocking_recv().expect("the same");
    assert_eq!(text(&order), ("orders.old".into(), "two teas".into()));
    drop((guard, binding));
}

#[test]
fn messages_can_be_pulled() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let mut messages = bridge.messages("a.*").expect("subscribed");
    bridge.publish("a.here", "1").expect("published");
    assert_eq!(text(&messages.blocking_next().expect("one")).0, "a.here");
    server.client().publish("a.there", "2");
    assert_eq!(text(&messages.blocking_next().expect("one")).0, "a.there");
    server.handle.shutdown();
    assert!(messages.blocking_next().is_none());
}

/// Returns a server with a user that may publish and subscribe only below `mine`.
fn guarded() -> TestServer {
    let mut user = User::new("ada", "secret");
    user.permissions = Some(Permissions {
        publish: Allowed::publish(Some(&["mine.>"]), &[]).expect("subjects"),
        subscribe: Allowed::subscribe(Some(&["mine.>"]), &[]).expect("subjects"),
        responses: None,
    });
    let mut config = AccessConfig::default();
    config.account_mut("$G").users.push(user);
    let access = Access::new(config).expect("a directory");
    TestServer::with(Options {
        auth: Auth::Directory(Arc::new(access)),
        ..options(2)
    })
}

#[test]
fn bridge_has_the_permissions_of_its_user() {
    let server = guarded();
    assert!(matches!(
        server.handle.observe("mine.a"),
        Err(BridgeError::Client(_))
    ));
    let ada = ConnectOptions::default().user("ada", "secret");
    let bridge = server.handle.bridge_with(&ada).expect("let in");
    let refused = bridge.observe("theirs").expect_err("not allowed");
    assert!(matches!(refused, BridgeError::NotAllowed(_)), "{refused}");
    let (_faults, faults) = follow(&bridge.faults());
    let (_guard, seen) = follow(&bridge.observe("mine.>").expect("allowed"));
    let words = Subject::<String>::new();
    let _theirs = bridge.publish_from("theirs", &words, Raw).expect("bound");
    let _mine = bridge
        .publish_from("mine.words", &words, Raw)
        .expect("bound");
    words.next("word".into());
    // The message passed through the server, and was received once.
    assert_eq!(text(&next(&seen)), ("mine.words".into(), "word".into()));
    nothing_more(&seen);
    let fault = next(&faults);
    assert!(
        matches!(&fault, Fault::Server(text) if text.contains("theirs")),
        "{fault}"
    );
}

#[test]
fn the_end_of_the_server_is_the_end_of_the_bridge() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let words = Subject::<String>::new();
    let binding = bridge.publish_from("words", &words, Raw).expect("bound");
    let ended = Arc::new(Mutex::new(Vec::new()));
    let (values, faults) = (ended.clone(), ended.clone());
    let source = bridge.observe("words").expect("observed");
    source
        .subscribe_with(observer(|_: &Message| ()).on_complete(move || {
            values
                .lock()
                .expect("no panic")
                .push("completed".to_owned());
        }))
        .detach();
    let received = move |fault: &Fault| faults.lock().expect("no panic").push(fault.to_string());
    bridge.faults().subscribe(received).detach();
    server.handle.shutdown();
    until("both end", || ended.lock().expect("no panic").len() == 2);
    let ended = ended.lock().expect("no panic").clone();
    assert_eq!(ended[0], "completed");
    assert!(ended[1].starts_with("the bridge is closed"), "{ended:?}");
    assert!(bridge.is_closed() && source.has_ended());
    words.next("nobody".into());
    until("the binding closes", || binding.is_closed());
    assert!(bridge.observe("words").is_err());
    assert!(bridge.publish("words", "x").is_err());
    assert!(matches!(
        server.handle.bridge(),
        Err(BridgeError::Client(_))
    ));
}

#[test]
fn bridge_closes_with_its_last_user() {
    let server = TestServer::start(1);
    let words = Subject::<String>::new();
    let open = || {
        let bridge = server.handle.bridge().expect("a bridge");
        let (sender, closed) = channel();
        let tell = move |fault: &Fault| drop(sender.send(fault.clone()));
        bridge.faults().subscribe(tell).detach();
        (bridge, closed)
    };
    let (bridge, closed) = open();
    let binding = bridge.publish_from("words", &words, Raw).expect("bound");
    let mut outside = server.client();
    outside.subscribe("words", "1");
    drop(bridge);
    words.next("still there".into());
    arrives(&mut outside, "words", "still there");
    words.next("the last".into());
    drop(binding);
    assert_eq!(next(&closed), Fault::Closed(Disconnect::Closed));
    // The last pending message arrives, and then a new bridge can be opened.
    arrives(&mut outside, "words", "the last");
    let (bridge, _) = open();
    bridge.publish("words", "again").expect("published");
    arrives(&mut outside, "words", "again");
}

#[test]
fn an_observer_that_the_bridge_calls_cannot_wait_for_it() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let (sender, outcome) = channel();
    let again = bridge.clone();
    let source = bridge.observe("a").expect("observed");
    let _guard = source.subscribe(move |_| drop(sender.send(again.observe("b").map(drop))));
    server.client().publish("a", "over the wire");
    assert!(matches!(next(&outcome), Err(BridgeError::InsideObserver)));
}

/// Regression: a codec that panicked ended the task that reads messages. The source then emitted nothing more
/// and did not complete.
#[test]
fn a_codec_that_panics_costs_one_message() {
    struct Picky;
    impl Picky {
        fn check(payload: &[u8]) {
            assert_ne!(payload, b"bad", "a codec of the test panics");
        }
    }
    impl Decode<Bytes> for Picky {
        fn decode(&self, message: &Message) -> Result<Bytes, BoxError> {
            Picky::check(message.payload());
            Ok(message.payload_bytes())
        }
    }
    impl Encode<&'static str> for Picky {
        fn encode(&mut self, value: &&'static str, draft: &mut Draft) -> Result<(), BoxError> {
            Picky::check(value.as_bytes());
            draft.payload().extend_from_slice(value.as_bytes());
            Ok(())
        }
    }
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let (_faults, faults) = follow(&bridge.faults());
    let (_guard, seen) = follow::<Bytes>(&bridge.observe_as("a", Picky).expect("observed"));
    let mut outside = server.client();
    for word in ["bad", "over the wire"] {
        outside.publish("a", word);
    }
    assert!(matches!(next(&faults), Fault::Decode { subject, .. } if subject == "a"));
    assert_eq!(next(&seen), "over the wire");
    for word in ["bad", "in the process"] {
        bridge.publish("a", word).expect("published");
    }
    assert!(matches!(next(&faults), Fault::Decode { subject, .. } if subject == "a"));
    assert_eq!(next(&seen), "in the process");

    let words = Subject::new();
    let binding = bridge.publish_from("a", &words, Picky).expect("bound");
    for word in ["bad", "emitted"] {
        words.next(word);
    }
    assert!(matches!(next(&faults), Fault::Encode { subject, .. } if subject == "a"));
    assert_eq!(next(&seen), "emitted");
    assert_eq!(binding.dropped(), 1);
}

#[test]
fn a_stream_that_panics_is_unbound() {
    struct Bad;
    impl futures_core::Stream for Bad {
        type Item = String;
        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<String>> {
            panic!("a stream of the test panics")
        }
    }
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let binding = bridge.publish_stream("a", Bad, Raw).expect("bound");
    until("the binding closes", || binding.is_closed());
    assert!(!bridge.is_closed());
}

/// A relay receives messages, passes them through a hub, and publishes them again. With one bridge, the
/// bridge's thread would wait for room in a hub that only this thread empties. So the relay reads a stream,
/// or uses a bridge for each side.
#[test]
fn a_hub_stands_between_two_subjects() {
    const COUNT: u32 = 2000;
    let server = TestServer::start(1);
    let handle = &server.handle;
    let (observed, pulled) = (
        fanline::hub::broadcast::<Message>(4),
        fanline::hub::merge::<Message>(4),
    );
    let other = handle
        .bridge_with(&ConnectOptions::default())
        .expect("a bridge");
    let (feed, hub) = observed;
    let _out = other
        .publish_stream("out.observed", hub.subscribe(), Raw)
        .expect("bound");
    let _in = feed.attach_source(handle.observe("in").expect("observed"));
    let (hub, receiver) = pulled;
    let _pulled = handle
        .publish_stream("out.pulled", receiver, Raw)
        .expect("bound");
    let (producer, messages) = (hub.producer(), handle.messages("in").expect("subscribed"));
    std::thread::spawn(move || block_on(producer.attach(messages)));

    let mut outside = server.client();
    outside.subscribe("out.observed", "1");
    outside.subscribe("out.pulled", "2");
    let mut source = server.client();
    for number in 0..COUNT {
        source.publish("in", number.to_string());
    }
    let mut seen = [0; 2];
    while seen != [COUNT; 2] {
        let message = outside.message();
        let place = usize::from(message.subject == "out.pulled");
        assert_eq!(message.payload, seen[place].to_string().as_bytes());
        seen[place] += 1;
    }
}

#[test]
fn panicking_observer_is_removed_and_others_continue() {
    let server = TestServer::start(1);
    let source = server.handle.observe("a").expect("observed");
    let _bad = source.subscribe(|message| {
        assert_ne!(message.payload(), b"bad", "an observer of the test panics");
    });
    let (_good, seen) = follow(&source);
    let mut outside = server.client();
    for word in ["bad", "good"] {
        outside.publish("a", word);
        assert_eq!(next(&seen).payload(), word.as_bytes());
    }
    until("an observer subscribes", || source.observer_count() == 1);
}

/// A subscriber reads nothing. With `Drop` the emitter continues, and skipped values are counted.
#[test]
fn emitter_with_drop_skips_values() {
    let server = TestServer::start(1);
    let bridge = server.handle.bridge().expect("a bridge");
    let (_faults, faults) = follow(&bridge.faults());
    let mut stuck = server.client();
    stuck.subscribe("blocks", "1");
    let (_guard, inside) = follow(&bridge.observe("blocks").expect("observed"));
    let blocks = Subject::<Bytes>::new();
    let binding = bridge.publish_from_with("blocks", &blocks, Raw, WhenFull::Drop);
    let binding = binding.expect("bound");
    let block = Bytes::from(vec![b'x'; 512 * 1024]);
    let mut emitted = 0;
    while binding.dropped() == 0 {
        blocks.next(block.clone());
        emitted += 1;
        assert!(emitted < 100_000, "there is always room");
    }
    assert_eq!(binding.published() + binding.dropped(), emitted);
    let bound_to = "blocks".to_owned();
    assert_eq!(next(&faults), Fault::Full { bound_to });
    for _ in 0..emitted {
        assert_eq!(next(&inside).payload().len(), block.len());
    }
}

#[test]
fn an_emitter_that_waits_loses_nothing() {
    let server = TestServer::start(1);
    let blocks = ReplaySubject::<Bytes>::new(Replay::one());
    let binding = server
        .handle
        .publish_from("blocks", &blocks, Raw)
        .expect("bound");
    let mut outside = server.client();
    outside.subscribe("blocks", "1");
    let block = "x".repeat(256 * 1024);
    let emitter = std::thread::spawn({
        let block = Bytes::from(block.clone());
        move || (0..40).for_each(|_| blocks.next(block.clone()))
    });
    for _ in 0..40 {
        arrives(&mut outside, "blocks", &block);
    }
    emitter.join().expect("no panic");
    assert_eq!((binding.published(), binding.dropped()), (40, 0));
}

#[path = "../../examples/price_feed/exchange.rs"]
mod exchange;

/// The example, as seen by a strategy, a client over TCP, and a late client.
#[test]
fn the_price_feed_reaches_everybody() {
    let mut exchange = exchange::Exchange::open(0, 0).expect("it opens");
    let addresses = exchange.server.addresses().clone();
    let mut outside = RawClient::connect(addresses.clients);
    assert!(addresses.websocket.is_some());
    outside.subscribe("ticks.*", "1");
    outside.send("SUB orders.* 2\r\n");
    outside.settle();
    exchange.trade();
    for symbol in ["CUP", "MUG", "POT"] {
        let message = outside.message();
        let tick: exchange::Tick = serde_json::from_slice(&message.payload).expect("a tick");
        assert_eq!(tick.symbol, symbol);
        assert_eq!(message.subject, format!("ticks.{symbol}"));
    }
    while exchange.orders() == 0 {
        exchange.trade();
    }
    let order = loop {
        let message = outside.message();
        if message.sid == "2" {
            break message;
        }
    };
    let decoded: exchange::Order = serde_json::from_slice(&order.payload).expect("an order");
    assert_eq!(order.subject, format!("orders.{}", decoded.side));

    let mut late = RawClient::connect(addresses.clients);
    late.subscribe("page", "1");
    late.send("PUB snapshot page 0\r\n\r\n");
    let ticks: Vec<exchange::Tick> =
        serde_json::from_slice(&late.message().payload).expect("ticks");
    assert!(ticks.len() >= 3);

    late.publish("control.paused", "true");
    late.settle();
    let mut seen = exchange.ticks();
    until("the ticks stop", || {
        exchange.trade();
        seen == std::mem::replace(&mut seen, exchange.ticks())
    });
    exchange.server.shutdown();
}
