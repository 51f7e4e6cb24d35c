//! The client and the engine have separate types for the same JSON and the same nkeys. These types must
//! agree.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanline_engine::auth::nkey::{KeyKind, SecretKey};
use fanline_engine::jetstream as engine;
use fanline_server::client::{Credentials, jetstream as client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("it can be written")
}

/// Checks that the client knows every field of the engine's JSON, and writes the same JSON.
fn check<C: Serialize + DeserializeOwned>(of_engine: &impl Serialize) {
    let written = json(of_engine);
    let read: client::Kept<C> = serde_json::from_value(written.clone()).expect("it can be read");
    assert_eq!(
        Value::from(read.other.clone()),
        json!({}),
        "not known to the client"
    );
    assert_eq!(json(&read), written);
}

fn transform() -> engine::SubjectTransform {
    engine::SubjectTransform {
        src: "a.*".into(),
        dest: "b.{{wildcard(1)}}".into(),
    }
}

fn source() -> engine::StreamSource {
    engine::StreamSource {
        name: "O".into(),
        opt_start_seq: 2,
        opt_start_time: engine::Timestamp::parse("2026-11-21T22:31:01.5+02:00"),
        filter_subject: "f".into(),
        subject_transforms: vec![transform()],
        external: Some(engine::External {
            api: "$JS.x.API".into(),
            deliver: "d".into(),
        }),
        consumer: Some(engine::SourceConsumer {
            name: "c".into(),
            deliver_subject: "e".into(),
        }),
    }
}

/// Returns a stream configuration without default values. If the type gets a new field, this function does
/// not compile until it sets the field.
fn stream() -> engine::StreamConfig {
    engine::StreamConfig {
        name: "S".into(),
        description: "text".into(),
        subjects: vec!["a.>".into()],
        retention: engine::Retention::Interest,
        max_consumers: 1,
        max_msgs: 2,
        max_bytes: 3,
        max_age: engine::Nanos(4),
        max_msgs_per_subject: 5,
        max_msg_size: 6,
        discard: engine::Discard::New,
        storage: engine::Storage::Memory,
        num_replicas: 3,
        no_ack: true,
        duplicate_window: engine::Nanos(7),
        placement: Some(engine::Placement {
            cluster: "c".into(),
            tags: vec!["t".into()],
            preferred: "p".into(),
        }),
        mirror: Some(source()),
        sources: vec![source()],
        compression: engine::Compression::S2,
        first_seq: 8,
        subject_transform: Some(transform()),
        republish: Some(engine::Republish {
            src: "a".into(),
            dest: "b".into(),
            headers_only: true,
        }),
        allow_direct: true,
        mirror_direct: true,
        discard_new_per_subject: true,
        sealed: true,
        deny_delete: true,
        deny_purge: true,
        allow_rollup_hdrs: true,
        consumer_limits: engine::ConsumerLimits {
            inactive_threshold: engine::Nanos(9),
            max_ack_pending: 10,
        },
        allow_msg_ttl: true,
        subject_delete_marker_ttl: engine::Nanos(11),
        allow_msg_counter: true,
        allow_atomic: true,
        allow_msg_schedules: true,
        persist_mode: engine::PersistMode::Async,
        allow_batched: true,
        sync: Some(engine::SyncMode::Interval),
        metadata: [("k".to_owned(), "v".to_owned())].into(),
    }
}

/// Returns a consumer configuration without default values.
fn consumer() -> engine::ConsumerConfig {
    let time = engine::Timestamp::parse("2026-11-21T22:31:01Z");
    engine::ConsumerConfig {
        durable_name: "C".into(),
        name: "C".into(),
        description: "text".into(),
        deliver_policy: engine::DeliverPolicy::ByStartTime,
        opt_start_seq: 1,
        opt_start_time: time,
        ack_policy: engine::AckPolicy::Explicit,
        ack_wait: engine::Nanos(2),
        max_deliver: 3,
        backoff: vec![engine::Nanos(4)],
        filter_subject: "a".into(),
        filter_subjects: vec!["b".into()],
        replay_policy: engine::ReplayPolicy::Original,
        rate_limit_bps: 5,
        sample_freq: "30%".into(),
        max_waiting: 6,
        max_ack_pending: 7,
        flow_control: true,
        headers_only: true,
        max_batch: 8,
        max_expires: engine::Nanos(9),
        max_bytes: 10,
        deliver_subject: "d".into(),
        deliver_group: "g".into(),
        idle_heartbeat: engine::Nanos(11),
        inactive_threshold: engine::Nanos(12),
        num_replicas: 3,
        mem_storage: true,
        direct: true,
        sourcing: true,
        metadata: [("k".to_owned(), "v".to_owned())].into(),
        pause_until: time,
        priority_groups: vec!["p".into()],
        priority_policy: engine::PriorityPolicy::PinnedClient,
        priority_timeout: engine::Nanos(13),
        max_ack_pending_per_subject: 14,
        fair_subjects: true,
    }
}

#[test]
fn configurations_are_the_same_json() {
    check::<client::StreamConfig>(&stream());
    check::<client::StreamConfig>(&engine::StreamConfig::default());
    check::<client::ConsumerConfig>(&consumer());
    check::<client::ConsumerConfig>(&engine::ConsumerConfig::default());
    check::<client::ApiError>(&engine::ApiError::STREAM_NOT_FOUND);
    assert_eq!(
        json(&client::StreamConfig::default()),
        json(&engine::StreamConfig::default())
    );
    assert_eq!(
        json(&client::ConsumerConfig::default()),
        json(&engine::ConsumerConfig::default())
    );
}

#[test]
fn choices_are_the_same_words() {
    macro_rules! same {
        ($($kind:ident { $($variant:ident),+ })+) => {
            $($(assert_eq!(json(&client::$kind::$variant), json(&engine::$kind::$variant));)+)+
        };
    }
    same! {
        Retention { Limits, Interest, WorkQueue }
        Discard { Old, New }
        Storage { File, Memory }
        Compression { None, S2 }
        PersistMode { Default, Async }
        SyncMode { Commit, Interval, None }
        DeliverPolicy { All, Last, New, ByStartSequence, ByStartTime, LastPerSubject }
        AckPolicy { None, All, Explicit, FlowControl }
        ReplayPolicy { Instant, Original }
        PriorityPolicy { None, Overflow, PinnedClient, Prioritized }
    }
}

#[test]
fn keys_are_read_and_sign_alike() {
    for kind in [KeyKind::User, KeyKind::Account, KeyKind::Operator] {
        let secret = SecretKey::new(kind, [9; 32]);
        let text = format!(
            "-----BEGIN SEED-----\n{}\n------END SEED------\n",
            secret.encode()
        );
        let credentials = Credentials::from_nkey(&text).expect("a seed");
        assert_eq!(credentials.nkey(), Some(secret.public().encode()));
        let signature = URL_SAFE_NO_PAD.decode(credentials.sign("nonce"));
        let signature = signature.expect("base64");
        assert!(secret.public().verifies(b"nonce", &signature));
        assert!(!format!("{credentials:?}").contains(&secret.encode()));
        // A seed with one wrong letter is rejected.
        let wrong = secret.encode().replacen('A', "B", 1);
        assert!(wrong == secret.encode() || Credentials::from_nkey(&wrong).is_err());
        let public = secret.public().encode();
        assert!(Credentials::from_nkey(&public).is_err());
    }
}
