//! Tests of requests and their answers, with a port that records messages.

mod power_cut;
mod remote_origins;
mod restart;
mod restore;
mod runs;

use std::time::Duration;

use super::stream::testing::Recorder;
use super::*;
use crate::limits::AccountLimits;

/// The JetStream of an account, with a clock and a port.
struct Account {
    js: JetStream,
    port: Recorder,
    now: Now,
}

impl Account {
    fn new() -> Self {
        let settings = Settings {
            account: "$G".to_owned(),
            server_id: "SERVER".to_owned(),
            server_name: "heron".to_owned(),
            server_version: "2.15.2".to_owned(),
            ..Settings::default()
        };
        Account::with(settings)
    }

    fn with(settings: Settings) -> Self {
        Account::over(settings, None)
    }

    fn over(settings: Settings, folders: Option<Box<dyn Folders>>) -> Self {
        let now = Now {
            since_start: Duration::ZERO,
            unix_nanos: 1_700_000_000_000_000_000,
        };
        let mut port = Recorder::default();
        let js = JetStream::new(settings, folders, 7, now, &mut port);
        Account { js, port, now }
    }

    /// Returns the answers to a message, each with its subject.
    fn send(&mut self, subject: &str, headers: &str, payload: &str) -> Vec<String> {
        let message = Message {
            subject: subject.as_bytes(),
            reply: b"reply",
            headers: headers.as_bytes(),
            payload: payload.as_bytes(),
            ..Message::default()
        };
        self.js.handle(&message, self.now, &mut self.port);
        self.js.settle(self.now, &mut self.port);
        self.port.take_published()
    }

    /// Returns the answer to an API request; empty without an answer.
    fn ask(&mut self, path: &str, body: &str) -> String {
        let answers = self.send(&format!("$JS.API.{path}"), "", body);
        match answers.as_slice() {
            [] => String::new(),
            [answer] => answer.strip_prefix("reply ").unwrap_or(answer).to_owned(),
            several => panic!("{path}: {several:?}"),
        }
    }

    /// Returns the error code in the answer to a request; 0 without an error.
    fn error(&mut self, path: &str, body: &str) -> u64 {
        let answer: serde_json::Value = serde_json::from_str(&self.ask(path, body)).unwrap();
        answer["error"]["err_code"].as_u64().unwrap_or(0)
    }

    fn add(&mut self, name: &str, fields: &str) {
        let comma = if fields.is_empty() { "" } else { "," };
        let body = format!(r#"{{"name":"{name}","storage":"memory"{comma}{fields}}}"#);
        assert_eq!(
            self.error(&format!("STREAM.CREATE.{name}"), &body),
            0,
            "{body}"
        );
    }

    /// Returns the number of messages of a stream.
    fn messages(&mut self, stream: &str) -> u64 {
        let info = self.ask(&format!("STREAM.INFO.{stream}"), "");
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        info["state"]["messages"].as_u64().unwrap()
    }

    fn wait(&mut self, duration: Duration) {
        self.now.since_start += duration;
        self.now.unix_nanos += i64::try_from(duration.as_nanos()).unwrap();
        self.js.handle_timeout(self.now, &mut self.port);
        self.js.settle(self.now, &mut self.port);
    }
}

const BIRDS: &str = r#""subjects":["birds.*"]"#;

#[test]
fn stream_is_created_described_and_deleted() {
    let mut account = Account::new();
    let made = account.ask(
        "STREAM.CREATE.BIRDS",
        r#"{"name":"BIRDS","subjects":["birds.*"],"storage":"memory"}"#,
    );
    let config = r#""config":{"name":"BIRDS","subjects":["birds.*"],"retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0,"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","storage":"memory","num_replicas":1,"duplicate_window":120000000000,"compression":"none","allow_direct":false,"mirror_direct":false,"sealed":false,"deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false,"metadata":{"_nats.level":"5","_nats.req.level":"0","_nats.ver":"2.15.2"}},"created":"2023-11-14T22:13:20Z","state":{"messages":0,"bytes":0,"first_seq":0,"first_ts":"0001-01-01T00:00:00Z","last_seq":0,"last_ts":"0001-01-01T00:00:00Z","consumer_count":0}"#;
    assert_eq!(
        made,
        format!(
            r#"{{"type":"io.nats.jetstream.api.v1.stream_create_response",{config},"ts":"2023-11-14T22:13:20Z","did_create":true}}"#
        )
    );
    assert_eq!(
        account.ask("STREAM.INFO.BIRDS", ""),
        format!(
            r#"{{"type":"io.nats.jetstream.api.v1.stream_info_response","total":0,"offset":0,"limit":0,{config},"cluster":{{"leader":"heron"}},"ts":"2023-11-14T22:13:20Z"}}"#
        )
    );
    assert_eq!(
        account.ask("STREAM.DELETE.BIRDS", ""),
        r#"{"type":"io.nats.jetstream.api.v1.stream_delete_response","success":true}"#
    );
    assert_eq!(
        account.ask("STREAM.INFO.BIRDS", ""),
        r#"{"type":"io.nats.jetstream.api.v1.stream_info_response","error":{"code":404,"err_code":10059,"description":"stream not found"},"total":0,"offset":0,"limit":0}"#
    );
    assert!(!account.port.interest.contains(&b"birds.*"[..]));
}

#[test]
fn narrowed_filter_removes_unneeded_records() {
    let mut account = Account::new();
    account.add("BIRDS", &format!(r#"{BIRDS},"retention":"interest""#));
    let path = "CONSUMER.DURABLE.CREATE.BIRDS.d";
    let consumer = |filters: &str| {
        format!(
            r#"{{"stream_name":"BIRDS","config":{{"durable_name":"d","ack_policy":"explicit","filter_subjects":[{filters}]}}}}"#
        )
    };
    let both = consumer(r#""birds.heron","birds.finch""#);
    assert_eq!(account.error(path, &both), 0);
    for bird in ["heron", "finch", "swift"] {
        account.send(&format!("birds.{bird}"), "", "x");
    }
    assert_eq!(account.messages("BIRDS"), 2);
    assert_eq!(account.error(path, &consumer(r#""birds.finch""#)), 0);
    assert_eq!(account.messages("BIRDS"), 1);
}

/// A source counts as interest. Otherwise it would receive no records of a stream without consumers.
#[test]
fn copy_counts_as_interest() {
    let mut account = Account::new();
    account.add("BIRDS", &format!(r#"{BIRDS},"retention":"interest""#));
    account.add("COPY", r#""sources":[{"name":"BIRDS"}]"#);
    account.send("birds.heron", "", "x");
    account.wait(Duration::from_secs(1));
    assert_eq!(account.messages("COPY"), 1);
    assert_eq!(account.messages("BIRDS"), 0);
    // Without the source there is no interest, so the stream removes all records.
    assert_eq!(account.error("STREAM.DELETE.COPY", ""), 0);
    account.send("birds.finch", "", "x");
    account.wait(Duration::from_secs(1));
    assert_eq!(account.messages("BIRDS"), 0);
}

#[test]
fn active_push_consumer_cannot_be_moved() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    let push_to = |account: &mut Account, subject: &str| {
        let config = format!(
            r#"{{"stream_name":"BIRDS","config":{{"durable_name":"d","deliver_subject":"{subject}"}}}}"#
        );
        account.error("CONSUMER.DURABLE.CREATE.BIRDS.d", &config)
    };
    assert_eq!(push_to(&mut account, "nest.a"), 0);
    assert_eq!(push_to(&mut account, "nest.b"), 0);
    account.port.interest.insert(b"nest.b".to_vec());
    let now = account.now;
    account
        .js
        .handle_interest(b"nest.b", now, &mut account.port);
    assert_eq!(push_to(&mut account, "nest.b"), 0);
    assert_eq!(push_to(&mut account, "nest.c"), 10013);
}

#[test]
fn streams_are_checked_against_each_other() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    for (name, fields, expected) in [
        ("BIRDS", r#""subjects":["birds.*"],"storage":"memory""#, 0),
        (
            "BIRDS",
            r#""subjects":["fish.*"],"storage":"memory""#,
            10058,
        ),
        ("FISH", r#""subjects":["birds.heron"]"#, 10065),
        ("FISH", r#""subjects":["*.heron"],"no_ack":true"#, 10065),
        ("OTHER", r#""subjects":["fish"]"#, 10056),
        ("FISH", r#""subjects":["fish"],"fins":2"#, 10025),
        (
            "COPY",
            r#""sources":[{"name":"BIRDS"}],"max_msg_size":10,"storage":"memory""#,
            0,
        ),
    ] {
        let path = match name {
            "OTHER" => "STREAM.CREATE.FISH".to_owned(),
            name => format!("STREAM.CREATE.{name}"),
        };
        let body = format!(r#"{{"name":"{name}",{fields}}}"#);
        assert_eq!(account.error(&path, &body), expected, "{body}");
    }
    let circle =
        r#"{"name":"BIRDS","storage":"memory","subjects":["birds.*"],"sources":[{"name":"COPY"}]}"#;
    assert_eq!(account.error("STREAM.UPDATE.BIRDS", circle), 10052);
    assert_eq!(
        account.error("STREAM.UPDATE.NONE", r#"{"name":"NONE"}"#),
        10059
    );
    assert_eq!(account.error("STREAM.UPDATE.BIRDS", ""), 10052);
}

#[test]
fn update_of_subjects_changes_subscriptions() {
    let mut account = Account::new();
    account.add("BIRDS", r#""subjects":["birds.*","eggs"]"#);
    let body = r#"{"name":"BIRDS","storage":"memory","subjects":["birds.*","nests"]}"#;
    assert_eq!(account.error("STREAM.UPDATE.BIRDS", body), 0);
    assert!(account.port.interest.contains(&b"nests"[..]));
    assert!(account.port.interest.contains(&b"birds.*"[..]));
    assert!(!account.port.interest.contains(&b"eggs"[..]));
    assert_eq!(
        account.send("nests", "", "x"),
        [r#"reply {"stream":"BIRDS","seq":1}"#]
    );
    assert!(account.send("eggs", "", "x").is_empty());
}

#[test]
fn stream_lists_are_paged() {
    let mut account = Account::new();
    account.add("FISH", r#""subjects":["fish"]"#);
    account.add("BIRDS", BIRDS);
    let typed = |fields: &str| {
        format!(r#"{{"type":"io.nats.jetstream.api.v1.stream_names_response",{fields}}}"#)
    };
    for (body, expected) in [
        (
            "",
            r#""total":2,"offset":0,"limit":1024,"streams":["BIRDS","FISH"]"#,
        ),
        (
            r#"{"offset":1}"#,
            r#""total":2,"offset":1,"limit":1024,"streams":["FISH"]"#,
        ),
        (
            r#"{"offset":9}"#,
            r#""total":2,"offset":2,"limit":1024,"streams":null"#,
        ),
        (
            r#"{"subject":"birds.heron"}"#,
            r#""total":1,"offset":0,"limit":1024,"streams":["BIRDS"]"#,
        ),
        (
            r#"{"subject":">"}"#,
            r#""total":2,"offset":0,"limit":1024,"streams":["BIRDS","FISH"]"#,
        ),
        (
            r#"{"subject":"cats"}"#,
            r#""total":0,"offset":0,"limit":1024,"streams":null"#,
        ),
    ] {
        assert_eq!(account.ask("STREAM.NAMES", body), typed(expected), "{body}");
    }
    assert_eq!(account.error("STREAM.NAMES", r#"{"page":1}"#), 10025);
    assert_eq!(account.error("STREAM.LIST", "{"), 10025);
}

#[test]
fn records_are_read_deleted_and_purged() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    for bird in ["heron", "crane", "heron"] {
        account.send(&format!("birds.{bird}"), "", bird);
    }
    let with_headers = account.send("birds.owl", "NATS/1.0\r\nSeen: night\r\n\r\n", "");
    assert_eq!(with_headers, [r#"reply {"stream":"BIRDS","seq":4}"#]);
    let get = |account: &mut Account, body: &str| account.ask("STREAM.MSG.GET.BIRDS", body);
    assert_eq!(
        get(&mut account, r#"{"seq":1}"#),
        r#"{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":{"subject":"birds.heron","seq":1,"data":"aGVyb24=","time":"2023-11-14T22:13:20Z"}}"#
    );
    assert_eq!(
        get(&mut account, r#"{"last_by_subj":"birds.owl"}"#),
        r#"{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":{"subject":"birds.owl","seq":4,"hdrs":"TkFUUy8xLjANClNlZW46IG5pZ2h0DQoNCg==","time":"2023-11-14T22:13:20Z"}}"#
    );
    for (path, body, expected) in [
        ("STREAM.MSG.GET.BIRDS", "", 10003),
        ("STREAM.MSG.GET.BIRDS", "{}", 10003),
        ("STREAM.MSG.GET.BIRDS", r#"{"seq":9}"#, 10037),
        (
            "STREAM.MSG.GET.BIRDS",
            r#"{"last_by_subj":"birds.jay"}"#,
            10037,
        ),
        (
            "STREAM.MSG.GET.BIRDS",
            r#"{"last_by_subj":"birds.jay","seq":1}"#,
            10003,
        ),
        (
            "STREAM.MSG.GET.BIRDS",
            r#"{"next_by_subj":"birds.heron","seq":2}"#,
            0,
        ),
        ("STREAM.MSG.GET.BIRDS", r#"{"seq":1,"batch":3}"#, 10003),
        ("STREAM.MSG.GET.NONE", r#"{"seq":1}"#, 10059),
        ("STREAM.MSG.DELETE.BIRDS", r#"{"seq":9}"#, 10043),
        ("STREAM.MSG.DELETE.BIRDS", "", 10003),
        ("STREAM.MSG.DELETE.BIRDS", r#"{"seq":2}"#, 0),
        ("STREAM.MSG.DELETE.BIRDS", r#"{"seq":2}"#, 10043),
        ("STREAM.PURGE.BIRDS", r#"{"seq":2,"keep":1}"#, 10003),
        ("STREAM.PURGE.BIRDS", r#"{"bird":"heron"}"#, 10025),
    ] {
        assert_eq!(account.error(path, body), expected, "{path} {body}");
    }
    let info = account.ask(
        "STREAM.INFO.BIRDS",
        r#"{"subjects_filter":">","deleted_details":true}"#,
    );
    assert!(
        info.contains(r#""subjects":{"birds.heron":2,"birds.owl":1}"#),
        "{info}"
    );
    assert!(info.contains(r#""num_deleted":1,"deleted":[2]"#), "{info}");
    assert_eq!(
        account.ask("STREAM.PURGE.BIRDS", r#"{"filter":"birds.heron"}"#),
        r#"{"type":"io.nats.jetstream.api.v1.stream_purge_response","success":true,"purged":2}"#
    );
}

#[test]
fn consumer_is_created_listed_and_deleted() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    let made = account.ask(
        "CONSUMER.CREATE.BIRDS.watch",
        r#"{"stream_name":"BIRDS","config":{"durable_name":"watch","ack_policy":"explicit"}}"#,
    );
    assert_eq!(
        made,
        r#"{"type":"io.nats.jetstream.api.v1.consumer_create_response","stream_name":"BIRDS","name":"watch","created":"2023-11-14T22:13:20Z","config":{"durable_name":"watch","name":"watch","deliver_policy":"all","ack_policy":"explicit","ack_wait":30000000000,"max_deliver":-1,"replay_policy":"instant","max_waiting":512,"max_ack_pending":1000,"num_replicas":0,"metadata":{"_nats.level":"5","_nats.req.level":"0","_nats.ver":"2.15.2"}},"delivered":{"consumer_seq":0,"stream_seq":0},"ack_floor":{"consumer_seq":0,"stream_seq":0},"num_ack_pending":0,"num_redelivered":0,"num_waiting":0,"num_pending":0,"ts":"2023-11-14T22:13:20Z"}"#
    );
    assert_eq!(
        account.ask("CONSUMER.NAMES.BIRDS", ""),
        r#"{"type":"io.nats.jetstream.api.v1.consumer_names_response","total":1,"offset":0,"limit":1024,"consumers":["watch"]}"#
    );
    assert_eq!(
        account.ask(
            "CONSUMER.PAUSE.BIRDS.watch",
            r#"{"pause_until":"2023-11-15T00:13:21+02:00"}"#
        ),
        r#"{"type":"io.nats.jetstream.api.v1.consumer_pause_response","paused":true,"pause_until":"2023-11-14T22:13:21Z","pause_remaining":1000000000}"#
    );
    assert_eq!(
        account.ask("CONSUMER.DELETE.BIRDS.watch", ""),
        r#"{"type":"io.nats.jetstream.api.v1.consumer_delete_response","success":true}"#
    );
    assert_eq!(account.error("CONSUMER.INFO.BIRDS.watch", ""), 10014);
}

#[test]
fn consumer_names_must_match_the_subject() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    let cases = [
        (
            "CONSUMER.CREATE.BIRDS.a",
            r#""name":"a","durable_name":"b""#,
            10017,
        ),
        ("CONSUMER.CREATE.BIRDS.b", r#""name":"a""#, 0),
        ("CONSUMER.CREATE.BIRDS", r#""durable_name":"a""#, 10020),
        ("CONSUMER.CREATE.BIRDS", "", 0),
        (
            "CONSUMER.DURABLE.CREATE.BIRDS.c",
            r#""durable_name":"c""#,
            0,
        ),
        (
            "CONSUMER.DURABLE.CREATE.BIRDS.d",
            r#""durable_name":"c""#,
            10017,
        ),
        ("CONSUMER.DURABLE.CREATE.BIRDS.c", r#""name":"c""#, 10018),
        (
            "CONSUMER.CREATE.BIRDS.e.birds.heron",
            r#""filter_subject":"birds.heron""#,
            0,
        ),
        (
            "CONSUMER.CREATE.BIRDS.f.birds.heron",
            r#""filter_subject":"birds.owl""#,
            10131,
        ),
        (
            "CONSUMER.CREATE.BIRDS.f.birds.heron",
            r#""filter_subjects":["birds.heron"]"#,
            10137,
        ),
        ("CONSUMER.CREATE.BIRDS.x*", "", 10052),
    ];
    for (path, config, expected) in cases {
        let body = format!(r#"{{"stream_name":"BIRDS","config":{{{config}}}}}"#);
        assert_eq!(account.error(path, &body), expected, "{path} {body}");
    }
    assert_eq!(account.error("CONSUMER.CREATE.BIRDS.a", "{}"), 10056);
    let elsewhere = r#"{"stream_name":"NONE","config":{}}"#;
    assert_eq!(account.error("CONSUMER.CREATE.NONE.a", elsewhere), 10059);
}

#[test]
fn consumers_of_one_stream_are_checked_against_each_other() {
    let mut account = Account::new();
    account.add("BIRDS", r#""subjects":["birds.*"],"max_consumers":1"#);
    account.add("WORK", r#""subjects":["work.*"],"retention":"workqueue""#);
    let mut expect = |stream: &str, name: &str, config: &str, action: &str, expected: u64| {
        let path = format!("CONSUMER.CREATE.{stream}.{name}");
        let body = format!(
            r#"{{"stream_name":"{stream}","action":"{action}","config":{{"durable_name":"{name}","ack_policy":"explicit"{config}}}}}"#
        );
        assert_eq!(account.error(&path, &body), expected, "{path} {body}");
    };
    expect("BIRDS", "a", "", "update", 10149);
    expect("BIRDS", "a", "", "create", 0);
    expect("BIRDS", "a", "", "create", 0);
    expect("BIRDS", "a", r#","description":"x""#, "create", 10148);
    expect("BIRDS", "a", r#","description":"x""#, "update", 0);
    expect(
        "BIRDS",
        "a",
        r#","description":"x","max_waiting":3"#,
        "",
        10012,
    );
    expect("BIRDS", "b", "", "", 10026);
    expect("BIRDS", "a", "", "destroy", 10025);
    expect("WORK", "a", r#","filter_subject":"work.a""#, "", 0);
    expect("WORK", "b", "", "", 10099);
    expect("WORK", "b", r#","filter_subject":"work.*""#, "", 10100);
    expect("WORK", "b", r#","filter_subject":"work.b""#, "", 0);
}

#[test]
fn unknown_requests_get_no_answer() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    for (name, policy) in [("d", "explicit"), ("silent", "none")] {
        let body = format!(
            r#"{{"stream_name":"BIRDS","config":{{"durable_name":"{name}","ack_policy":"{policy}"}}}}"#
        );
        let path = format!("CONSUMER.DURABLE.CREATE.BIRDS.{name}");
        assert_eq!(account.error(&path, &body), 0);
    }
    account.port.take_published();
    for subject in [
        "FOO",
        "STREAM.FOO.BIRDS",
        "STREAM.INFO.BIRDS.x",
        "STREAM.INFO",
        "META.LEADER.STEPDOWN",
    ] {
        assert_eq!(account.ask(subject, ""), "", "{subject}");
    }
    for subject in [
        "$JS.API.DIRECT.GET.BIRDS",
        "$JS.API.DIRECT.GET.NONE",
        "$JS.API.CONSUMER.MSG.NEXT.BIRDS.none",
        "$JS.ACK.BIRDS.none.1.1.1.1.0",
        "$JS.ACK.BIRDS.silent.1.1.1.1.0",
        "$JS.ACK.BIRDS.silent.1.x.1.1.0",
        "$JS.ACK.BIRDS.d.1.1.1.1",
        "$JS.FC.BIRDS.d.x",
    ] {
        let expected = format!("reply NATS/1.0 503|Nats-Subject: {subject}||");
        assert_eq!(account.send(subject, "", ""), [expected]);
    }
    // The subject is that of an acknowledgement, but invalid.
    let unreadable = account.send("$JS.ACK.BIRDS.d.1.x.1.1.0", "", "");
    assert_eq!(unreadable, [""; 0]);
    for path in [
        "STREAM.LEADER.STEPDOWN.BIRDS",
        "STREAM.PEER.REMOVE.NONE",
        "CONSUMER.LEADER.STEPDOWN.A.b",
    ] {
        assert_eq!(account.error(path, ""), 10010, "{path}");
    }
}

#[test]
fn requests_check_api_level_domain_and_account() {
    let mut account = Account::with(Settings {
        domain: Some("lake".to_owned()),
        ..Settings::default()
    });
    let level = |level: &str| format!("NATS/1.0\r\nNats-Required-Api-Level: {level}\r\n\r\n");
    for (value, expected) in [
        ("5", false),
        ("6", true),
        ("x", true),
        ("", false),
        ("-1", false),
    ] {
        let answer = account.send("$JS.lake.API.STREAM.NAMES", &level(value), "");
        assert_eq!(answer[0].contains("10185"), expected, "{value}");
    }
    assert_eq!(
        account.ask("INFO", ""),
        r#"{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"storage":0,"reserved_memory":0,"reserved_storage":0,"streams":0,"consumers":0,"limits":{"max_memory":-1,"max_storage":-1,"max_streams":-1,"max_consumers":-1,"max_ack_pending":-1,"memory_max_stream_bytes":-1,"storage_max_stream_bytes":-1,"max_bytes_required":false},"domain":"lake","api":{"level":5,"total":5,"errors":2}}"#
    );
}

/// Accounts whose limits are per number of replicas. Expected answers are those of nats-server.
#[test]
fn account_tiers_limit_by_replicas() {
    let tier = |max_memory| AccountLimits {
        max_memory,
        max_streams: 2,
        ..AccountLimits::default()
    };
    let tiers = [("R1", tier(1_000)), ("R3", tier(3_000))];
    let tiers = tiers.map(|(name, limits)| (name.to_owned(), limits));
    let mut account = Account::with(Settings {
        limits: AccountLimits::tiered(tiers.into()),
        ..Settings::default()
    });
    for (name, replicas, expected) in [("A", 0, 0), ("B", 3, 10074), ("C", 2, 10120), ("D", 1, 0)] {
        let body = format!(r#"{{"name":"{name}","storage":"memory","num_replicas":{replicas}}}"#);
        let path = format!("STREAM.CREATE.{name}");
        assert_eq!(account.error(&path, &body), expected, "{body}");
    }
    let body = r#"{"name":"E","storage":"memory"}"#;
    assert_eq!(account.error("STREAM.CREATE.E", body), 10027);
    let info: serde_json::Value = serde_json::from_str(&account.ask("INFO", "")).unwrap();
    assert_eq!(
        (&info["streams"], &info["limits"]["max_memory"]),
        (&2.into(), &0.into())
    );
    let shown = |tier: &str| {
        let tier = &info["tiers"][tier];
        (
            tier["streams"].as_u64(),
            tier["limits"]["max_memory"].as_u64(),
        )
    };
    assert_eq!(shown("R1"), (Some(2), Some(1_000)));
    assert_eq!(shown("R3"), (Some(0), Some(3_000)));
    let mut account = Account::with(Settings {
        limits: AccountLimits::tiered([("R3".to_owned(), tier(3_000))].into()),
        ..Settings::default()
    });
    assert_eq!(account.error("STREAM.CREATE.E", body), 10120);
}

#[test]
fn account_limits_are_enforced() {
    let limits = AccountLimits {
        max_memory: 1_000,
        max_streams: 2,
        memory_max_stream_bytes: 800,
        max_bytes_required: true,
        ..AccountLimits::default()
    };
    let mut account = Account::with(Settings {
        limits,
        ..Settings::default()
    });
    for (name, bytes, expected) in [
        ("A", 0, 10113),
        ("A", 900, 10122),
        ("A", 700, 0),
        ("B", 400, 10028),
        ("B", 300, 0),
        ("C", 0, 10027),
    ] {
        let body = format!(r#"{{"name":"{name}","storage":"memory","max_bytes":{bytes}}}"#);
        assert_eq!(
            account.error(&format!("STREAM.CREATE.{name}"), &body),
            expected,
            "{body}"
        );
    }
}

/// Bytes are checked for each message, even within one `settle`. A stream without `max_bytes` is refused when
/// all bytes are reserved.
#[test]
fn account_byte_limits_apply_to_each_message() {
    let mut account = Account::with(Settings {
        limits: AccountLimits {
            max_memory: 100,
            // Zero is unlimited here.
            max_streams: 0,
            max_consumers: 0,
            ..AccountLimits::default()
        },
        ..Settings::default()
    });
    account.add("A", "");
    // A record takes 16 bytes in addition to its subject and payload.
    for (payload, expected) in [
        ("x".repeat(50), true),
        ("x".repeat(17), false),
        ("x".repeat(16), true),
    ] {
        let answers = account.send("A", "", &payload);
        assert_eq!(!answers[0].contains("10002"), expected, "{answers:?}");
    }
    assert_eq!(account.error("STREAM.DELETE.A", ""), 0);
    let body =
        |name: &str, fields: &str| format!(r#"{{"name":"{name}","storage":"memory"{fields}}}"#);
    for (name, fields, expected) in [
        ("B", r#","max_bytes":101"#, 10028),
        ("B", r#","max_bytes":100"#, 0),
        ("C", "", 10028),
    ] {
        let path = format!("STREAM.CREATE.{name}");
        assert_eq!(
            account.error(&path, &body(name, fields)),
            expected,
            "{name}{fields}"
        );
    }
}

#[test]
fn consumer_limits_must_fit_existing_consumers() {
    let mut account = Account::new();
    let update = |limits: &str| {
        format!(r#"{{"name":"A","storage":"memory","consumer_limits":{{{limits}}}}}"#)
    };
    account.ask("STREAM.CREATE.A", r#"{"name":"A","storage":"memory"}"#);
    account.ask(
        "CONSUMER.CREATE.A.c",
        r#"{"stream_name":"A","config":{"name":"c","ack_policy":"explicit","max_ack_pending":9}}"#,
    );
    for (limits, expected) in [
        (r#""max_ack_pending":8"#, 10069),
        (r#""inactive_threshold":1000000000"#, 10069),
        (r#""max_ack_pending":9,"inactive_threshold":5000000000"#, 0),
    ] {
        let found = account.error("STREAM.UPDATE.A", &update(limits));
        assert_eq!(found, expected, "{limits}");
    }
}

#[test]
fn server_limits_are_enforced() {
    let mut account = Account::with(Settings {
        asset_limits: AssetLimits {
            ack_pending_max: Some(500),
            request_batch_max: Some(50),
            duplicate_window_max: Some(Nanos::from_secs(30)),
            consumers_default: Some(2),
            ..AssetLimits::default()
        },
        limits: AccountLimits {
            max_ack_pending: 100,
            ..AccountLimits::default()
        },
        ..Settings::default()
    });
    let window = "duplicate_window";
    for (name, fields, expected) in [
        ("A", format!(r#""{window}":60000000000"#), 10052),
        ("A", r#""pedantic":true"#.to_owned(), 10157),
        ("A", r#""max_age":0"#.to_owned(), 0),
        ("B", r#""max_consumers":3"#.to_owned(), 0),
    ] {
        let body = format!(r#"{{"name":"{name}","storage":"memory",{fields}}}"#);
        let path = format!("STREAM.CREATE.{name}");
        assert_eq!(account.error(&path, &body), expected, "{body}");
    }
    assert!(
        account
            .ask("STREAM.INFO.A", "")
            .contains(r#""duplicate_window":30000000000"#)
    );
    for (path, fields, expected) in [
        ("A.1", r#""ack_policy":"explicit""#, 0),
        ("A.2", r#""max_ack_pending":101"#, 10121),
        ("A.2", r#""max_batch":51"#, 10125),
        ("A.2", r#""ack_policy":"none""#, 0),
        ("A.3", r#""ack_policy":"none""#, 10026),
        ("B.1", r#""ack_policy":"none""#, 0),
        ("B.2", r#""ack_policy":"none""#, 0),
        ("B.3", r#""ack_policy":"none""#, 0),
        ("B.4", r#""ack_policy":"none""#, 10026),
    ] {
        let (stream, name) = path.split_once('.').unwrap();
        let config = format!(r#""config":{{"name":"{name}",{fields}}}"#);
        let body = format!(r#"{{"stream_name":"{stream}",{config}}}"#);
        let path = format!("CONSUMER.CREATE.{path}");
        assert_eq!(account.error(&path, &body), expected, "{body}");
    }
    let info = account.ask("CONSUMER.INFO.A.1", "");
    assert!(
        info.contains(r#""max_ack_pending":100,"max_batch":50"#),
        "{info}"
    );
}

#[test]
fn advisories_are_published_to_subscribers() {
    let mut account = Account::new();
    for subject in [
        "STREAM.CREATED.BIRDS",
        "CONSUMER.DELETED.BIRDS.watch",
        "API",
    ] {
        let subject = format!("$JS.EVENT.ADVISORY.{subject}");
        account.port.interest.insert(subject.into_bytes());
    }
    let body = r#"{"name":"BIRDS","storage":"memory"}"#;
    let events = account.send("$JS.API.STREAM.CREATE.BIRDS", "", body);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(
        events[0].starts_with("$JS.EVENT.ADVISORY.STREAM.CREATED.BIRDS"),
        "{events:?}"
    );
    assert!(
        events[0].ends_with(r#""stream":"BIRDS","action":"create"}"#),
        "{events:?}"
    );
    assert!(
        events[2].starts_with("$JS.EVENT.ADVISORY.API"),
        "{events:?}"
    );
    let body = r#"{"stream_name":"BIRDS","config":{"durable_name":"watch"}}"#;
    account.send("$JS.API.CONSUMER.CREATE.BIRDS.watch", "", body);
    let events = account.send("$JS.API.STREAM.DELETE.BIRDS", "", "");
    assert!(
        events[0].starts_with("$JS.EVENT.ADVISORY.CONSUMER.DELETED.BIRDS.watch"),
        "{events:?}"
    );
}

#[test]
fn unused_ephemeral_consumer_is_deleted() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    let body = r#"{"stream_name":"BIRDS","config":{"name":"brief"}}"#;
    assert_eq!(account.error("CONSUMER.CREATE.BIRDS.brief", body), 0);
    account.wait(Duration::from_secs(4));
    assert_eq!(account.error("CONSUMER.INFO.BIRDS.brief", ""), 0);
    account.wait(Duration::from_secs(4));
    assert_eq!(account.error("CONSUMER.INFO.BIRDS.brief", ""), 10014);
}

#[test]
fn source_copies_new_records() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    account.send("birds.heron", "", "one");
    account.add("COPY", r#""mirror":{"name":"BIRDS"}"#);
    account.send("birds.owl", "", "two");
    account.wait(Duration::ZERO);
    let info = account.ask("STREAM.INFO.COPY", "");
    assert!(info.contains(r#""messages":2,"#), "{info}");
    assert!(
        info.contains(r#""mirror":{"name":"BIRDS","lag":0"#),
        "{info}"
    );
}

#[test]
fn snapshot_without_subscriber_is_abandoned() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    account.send("birds.heron", "", "one");
    let request = r#"{"deliver_subject":"backup"}"#;
    assert_eq!(
        account
            .send("$JS.API.STREAM.SNAPSHOT.BIRDS", "", request)
            .len(),
        1
    );
    account.wait(Duration::from_secs(3));
    assert_eq!(
        account.port.take_published(),
        ["backup NATS/1.0 408 No Flow Response||"]
    );
}

#[test]
fn backup_is_restored() {
    let mut account = Account::new();
    account.add("BIRDS", BIRDS);
    for number in 0..40 {
        account.send("birds.heron", "", &format!("{number} {}", "x".repeat(100)));
    }
    let durable =
        r#"{"stream_name":"BIRDS","config":{"durable_name":"watch","ack_policy":"explicit"}}"#;
    account.send("$JS.API.CONSUMER.CREATE.BIRDS.watch", "", durable);
    let request = r#"{"deliver_subject":"backup","chunk_size":1024}"#;
    let sent = account.send("$JS.API.STREAM.SNAPSHOT.BIRDS", "", request);
    // Nothing else is sent yet, because the nats CLI subscribes to the subject only after the reply.
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].contains("stream_snapshot_response"));
    account.port.subscribe(b"backup");
    account
        .js
        .handle_interest(b"backup", account.now, &mut account.port);
    let mut sent = account.port.take_published();
    assert!(sent.len() > 5, "{sent:?}");
    assert_eq!(sent.pop().unwrap(), "backup NATS/1.0 204||");
    let answer = account.ask("STREAM.RESTORE.BIRDS", r#"{"config":{"name":"BIRDS"}}"#);
    assert!(answer.contains("10130"), "{answer}");
    account.send("$JS.API.STREAM.DELETE.BIRDS", "", "");
    let answer = account.ask(
        "STREAM.RESTORE.BIRDS",
        r#"{"config":{"name":"BIRDS","storage":"memory"},"state":{}}"#,
    );
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let deliver = answer["deliver_subject"].as_str().unwrap().to_owned();
    assert!(
        deliver.starts_with("$JS.SNAPSHOT.RESTORE.BIRDS."),
        "{deliver}"
    );
    // An invalid chunk ends the restore.
    assert!(account.send(&deliver, "", "no backup at all")[0].contains("10062"));
    assert!(account.send(&deliver, "", "").is_empty());
    assert_eq!(account.error("STREAM.INFO.BIRDS", ""), 10059);
}
