//! Tests of runs: successive messages with one subject.

use super::*;

/// Configurations of a stream.
const CONFIGS: &[&str] = &[
    "",
    r#""max_msg_size":4"#,
    r#""max_msgs":3"#,
    r#""max_msgs":3,"discard":"new""#,
    r#""max_bytes":100"#,
    r#""max_msgs_per_subject":1"#,
    r#""no_ack":true"#,
    r#""retention":"interest""#,
    r#""retention":"workqueue""#,
    r#""republish":{"src":"birds.*","dest":"seen.{{wildcard(1)}}"}"#,
    r#""subject_transform":{"src":"birds.*","dest":"known.{{wildcard(1)}}"}"#,
    r#""allow_msg_counter":true"#,
    r#""allow_msg_schedules":true"#,
    r#""allow_batched":true"#,
    r#""sealed":false,"deny_delete":true"#,
];

const ID: &str = "NATS/1.0\r\nNats-Msg-Id: 7\r\n\r\n";

/// Messages with reply subject, headers, and payload.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("r.1", "", "wren"),
    ("r.2", "", "robin"),
    ("", "", "rook"),
    ("r.3", "", ""),
    ("r.4", ID, "tit"),
    ("r.5", "", "jay"),
    ("r.6", ID, "tit"),
    ("id.0.ok.1.0.$FI", "", "kite"),
    ("x.$FI", "", "gull"),
    ("r.7", "", "crow"),
    ("r.8", "", "owl"),
];

/// Returns all published messages and the final state, after the messages are handled one by one or as a run.
fn publish(config: &str, limits: AccountLimits, as_run: bool) -> Vec<String> {
    let mut account = Account::with(Settings {
        account: "$G".to_owned(),
        limits,
        ..Settings::default()
    });
    account.add(
        "BIRDS",
        &format!(
            r#"{BIRDS}{}{config}"#,
            if config.is_empty() { "" } else { "," }
        ),
    );
    account.port.interest.insert(b"deliver".to_vec());
    let consumer = r#"{"stream_name":"BIRDS","config":{"durable_name":"d","deliver_subject":"deliver","ack_policy":"explicit"}}"#;
    account.ask("CONSUMER.DURABLE.CREATE.BIRDS.d", consumer);
    let mut messages = MESSAGES.iter().map(|(reply, headers, payload)| Message {
        subject: b"birds.song",
        reply: reply.as_bytes(),
        headers: headers.as_bytes(),
        payload: payload.as_bytes(),
        ..Message::default()
    });
    let (js, port, now) = (&mut account.js, &mut account.port, account.now);
    if as_run {
        let first = messages.next().unwrap();
        js.handle(&first, now, port);
        js.handle_run(&mut messages, now, port);
    } else {
        messages.for_each(|message| js.handle(&message, now, port));
    }
    js.settle(now, port);
    let mut published = port.take_published();
    published.push(account.ask("STREAM.INFO.BIRDS", r#"{"subjects_filter":">"}"#));
    published.push(account.ask("CONSUMER.INFO.BIRDS.d", ""));
    published
}

#[test]
fn run_has_the_effects_of_single_messages() {
    let limited = AccountLimits {
        max_memory: 200,
        ..AccountLimits::default()
    };
    for config in CONFIGS {
        for limits in [AccountLimits::default(), limited.clone()] {
            let single = publish(config, limits.clone(), false);
            assert_eq!(publish(config, limits, true), single, "{config}");
        }
    }
}

#[test]
fn cached_prefix_follows_the_streams() {
    let mut account = Account::new();
    let sent = |account: &mut Account, subject: &str| account.send(subject, "", "x").concat();
    let stored =
        |stream: &str, sequence| format!(r#"reply {{"stream":"{stream}","seq":{sequence}}}"#);
    account.add("A", r#""subjects":["birds.>"]"#);
    assert_eq!(sent(&mut account, "birds.a.b"), stored("A", 1));
    assert_eq!(sent(&mut account, "birds.c.d"), stored("A", 2));
    assert_eq!(sent(&mut account, "birds.e"), stored("A", 3));
    assert_eq!(sent(&mut account, "birds"), "");
    assert_eq!(sent(&mut account, "birds.a..b"), "");
    let narrow = r#"{"name":"A","storage":"memory","subjects":["birds.a.>"]}"#;
    assert_eq!(account.error("STREAM.UPDATE.A", narrow), 0);
    assert_eq!(sent(&mut account, "birds.c.d"), "");
    assert_eq!(sent(&mut account, "birds.a.d"), stored("A", 4));
    account.add("B", r#""subjects":["birds.c.*"]"#);
    assert_eq!(sent(&mut account, "birds.c.d"), stored("B", 1));
    assert_eq!(sent(&mut account, "birds.c.e"), stored("B", 2));
    assert_eq!(sent(&mut account, "birds.c.e.f"), "");
    assert_eq!(account.error("STREAM.DELETE.A", ""), 0);
    assert_eq!(sent(&mut account, "birds.a.d"), "");
}

/// Acknowledgements: the end of the subject, the payload, and the reply subject.
const ACKS: &[(&str, &str, &str)] = &[
    ("d.1.1.1.7.9", "", ""),
    ("d.1.3.3.7.7", "+ACK", ""),
    ("d.1.2.2.7.8", "+ACK", ""),
    ("d.1.2.2.7.8", "+ACK", ""),
    ("d.1.4.4.7.6", "-NAK", ""),
    ("d.1.5.5.7.5", "+ACK", "r.1"),
    ("all.1.4.4.7.6", "", ""),
    ("all.1.2.2.7.8", "", ""),
    ("d.1.6.6.7", "", ""),
    ("d.1.6.6.7.4.3", "", ""),
    ("d.1.x.6.7.4", "", ""),
    ("d.1.6.6.7.99999999999999999999", "", ""),
    ("d.1.7.7.7.10000000000000000000", "", ""),
    ("nobody.1.1.1.7.9", "", "r.2"),
    ("none.1.1.1.7.9", "", "r.3"),
    ("d.1.8.8.7.2", "+TERM", ""),
    ("d.1.9.9.7.1", "+WPI", ""),
    ("d.1.40.40.7.0", "", ""),
    ("d.1.10.10.7.0", "", ""),
];

/// Returns all published messages and the final state, after acknowledgements are handled one by one or as a run.
fn acknowledge(config: &str, as_run: bool) -> Vec<String> {
    let mut account = Account::new();
    account.add("BIRDS", &format!("{BIRDS}{config}"));
    for (name, policy) in [("d", "explicit"), ("all", "all"), ("none", "none")] {
        account.port.interest.insert(name.as_bytes().to_vec());
        let consumer = format!(
            r#"{{"stream_name":"BIRDS","config":{{"durable_name":"{name}","deliver_subject":"{name}","ack_policy":"{policy}"}}}}"#
        );
        account.ask(&format!("CONSUMER.DURABLE.CREATE.BIRDS.{name}"), &consumer);
    }
    for _ in 0..10 {
        account.send("birds.song", "", "wren");
    }
    let subjects: Vec<String> = (ACKS.iter())
        .map(|(end, ..)| format!("$JS.ACK.BIRDS.{end}"))
        .collect();
    let mut messages = (ACKS.iter().zip(&subjects)).map(|((_, payload, reply), subject)| Message {
        subject: subject.as_bytes(),
        reply: reply.as_bytes(),
        payload: payload.as_bytes(),
        ..Message::default()
    });
    let (js, port, now) = (&mut account.js, &mut account.port, account.now);
    match as_run {
        true => js.handle_acks(&mut messages, now, port),
        false => messages.for_each(|message| js.handle(&message, now, port)),
    }
    js.settle(now, port);
    let mut published = port.take_published();
    for request in [
        "STREAM.INFO.BIRDS",
        "CONSUMER.INFO.BIRDS.d",
        "CONSUMER.INFO.BIRDS.all",
    ] {
        published.push(account.ask(request, ""));
    }
    published
}

#[test]
fn run_of_acks_has_the_effects_of_single_acks() {
    for config in ["", r#","retention":"interest""#] {
        let single = acknowledge(config, false);
        assert_eq!(acknowledge(config, true), single, "{config}");
        let info = single.concat();
        assert!(info.contains(r#""num_ack_pending":"#), "{info}");
    }
}
