//! Tests of requested configurations. Expected results are those of nats-server 2.15.2.

use super::*;

/// Checks a new stream with a name, subjects, and these fields. Returns the error code (0 if there is no
/// error) and the resulting configuration.
fn stream(pedantry: Pedantry, fields: &str) -> (u16, Option<StreamConfig>) {
    let comma = if fields.is_empty() { "" } else { "," };
    let json = format!(r#"{{"name":"S","subjects":["s.>"]{comma}{fields}}}"#);
    answer(
        decode::<StreamConfig>(json.as_bytes(), Strictness::Strict)
            .and_then(|c| c.checked_new(pedantry)),
    )
}

/// Checks a new stream with a name, these fields, and no subjects. Returns the error code.
fn copy(fields: &str) -> u16 {
    let json = format!(r#"{{"name":"S",{fields}}}"#);
    let requested = decode::<StreamConfig>(json.as_bytes(), Strictness::Strict);
    answer(requested.and_then(|c| c.checked_new(Pedantry::Lax))).0
}

fn answer<T>(result: Result<T, crate::jetstream::ApiError>) -> (u16, Option<T>) {
    match result {
        Ok(config) => (0, Some(config)),
        Err(error) => (error.err_code, None),
    }
}

/// Fields of a new stream, and the expected error code.
const NEW_STREAMS: &[(&str, u16)] = &[
    ("", 0),
    (r#""max_consumers":-2"#, 0),
    (r#""max_msgs":"x""#, 10025),
    (r#""max_msgs":1.5"#, 10025),
    (r#""max_msg_size":2147483648"#, 10025),
    (r#""max_age":-1"#, 10052),
    (r#""max_age":50000000"#, 10052),
    (r#""max_age":100000000"#, 0),
    (r#""num_replicas":-1"#, 10133),
    (r#""num_replicas":6"#, 10052),
    (r#""duplicate_window":-1"#, 10052),
    (r#""duplicate_window":50000000"#, 10052),
    (
        r#""duplicate_window":1000000000,"max_age":100000000"#,
        10052,
    ),
    (r#""subject_delete_marker_ttl":-1"#, 10052),
    (r#""subject_delete_marker_ttl":50000000"#, 10052),
    (
        r#""subject_delete_marker_ttl":1000000000,"deny_purge":true"#,
        0,
    ),
    (r#""retention":"""#, 10025),
    (r#""storage":"tape""#, 10025),
    (r#""compression":"lz4""#, 10025),
    (r#""persist_mode":"""#, 0),
    (r#""persist_mode":"slow""#, 10025),
    (r#""persist_mode":"async""#, 0),
    (r#""persist_mode":"async","storage":"memory""#, 10052),
    (r#""persist_mode":"async","allow_atomic":true"#, 10052),
    (r#""first_seq":-1"#, 10025),
    (r#""first_seq":4611686018427387904"#, 0),
    (r#""first_seq":4611686018427387905"#, 10052),
    (r#""metadata":{"a":1}"#, 10025),
    (r#""foo":1"#, 10025),
    (r#""placement":{"preferred":"x"}"#, 10052),
    (r#""placement":{"cluster":"x","tags":["a"]}"#, 0),
    (r#""discard_new_per_subject":true"#, 10052),
    (r#""discard_new_per_subject":true,"discard":"new""#, 10052),
    (
        r#""discard_new_per_subject":true,"discard":"new","max_msgs_per_subject":1"#,
        0,
    ),
    (r#""sealed":true"#, 10052),
    (r#""deny_purge":true,"allow_rollup_hdrs":true"#, 10052),
    (r#""allow_msg_counter":true"#, 0),
    (r#""allow_msg_counter":true,"retention":"interest""#, 10052),
    (r#""allow_msg_counter":true,"discard":"new""#, 10052),
    (r#""allow_msg_counter":true,"allow_msg_ttl":true"#, 10052),
    (
        r#""allow_msg_counter":true,"allow_msg_schedules":true"#,
        10052,
    ),
    (
        r#""allow_msg_counter":true,"subject_delete_marker_ttl":1000000000"#,
        0,
    ),
    (r#""allow_msg_schedules":true,"discard":"new""#, 10052),
    (r#""allow_msg_schedules":true,"deny_purge":true"#, 0),
    (r#""mirror_direct":true"#, 10052),
    (r#""subject_transform":{"src":"x.*","dest":"t.$1"}"#, 0),
    (r#""subject_transform":{"src":"s.*","dest":"t.$2"}"#, 10156),
    (r#""subject_transform":{"src":"s..","dest":"t"}"#, 10155),
    (r#""subject_transform":{"src":"s.>","dest":""}"#, 0),
    (r#""subject_transform":{"src":"s.*","dest":"t.*"}"#, 10156),
    (
        r#""subject_transform":{"src":"s.*","dest":"t.{{foo(1)}}"}"#,
        10156,
    ),
    (r#""republish":{"dest":"t.>"}"#, 0),
    (r#""republish":{"src":"s.>","dest":"s.>"}"#, 10052),
    (r#""republish":{"src":"s.*","dest":"s.x.$1"}"#, 10052),
    (r#""republish":{"src":"s.*","dest":"t.$2"}"#, 10052),
    (r#""republish":{"src":"s..","dest":"t"}"#, 10052),
    (r#""republish":{"src":"s.*","dest":""}"#, 0),
];

#[test]
fn new_stream_configs_get_nats_server_errors() {
    for (fields, expected) in NEW_STREAMS {
        assert_eq!(stream(Pedantry::Lax, fields).0, *expected, "{fields}");
    }
}

#[test]
fn pedantic_stream_configs_get_nats_server_errors() {
    for (fields, expected) in [
        ("", 0),
        (r#""max_consumers":-2"#, 10157),
        (r#""max_msg_size":-2"#, 10157),
        (r#""max_msgs":0"#, 0),
        (r#""max_age":1000000000"#, 10157),
        (r#""max_age":1000000000,"duplicate_window":1000000000"#, 0),
        (r#""republish":{"dest":"t.>"}"#, 10157),
        (r#""subject_delete_marker_ttl":1000000000"#, 10052),
        (r#""allow_msg_schedules":true"#, 10052),
    ] {
        assert_eq!(stream(Pedantry::Pedantic, fields).0, expected, "{fields}");
    }
}

#[test]
fn subjects() {
    for (subjects, expected) in [
        (r#"[""]"#, 10052),
        (r#"["s.."]"#, 10052),
        (r#"[">"]"#, 10052),
        (r#"["*"]"#, 0),
        (r#"["s.>","s.a"]"#, 10052),
        (r#"["s.a","s.a"]"#, 10052),
        (r#"["*.x"]"#, 10052),
        (r#"["$JS.>"]"#, 10052),
        (r#"["$JS.EVENT.>"]"#, 0),
        (r#"["$SYS.>"]"#, 10052),
        (r#"["$SYS.ACCOUNT.>"]"#, 0),
        (r#"["$KV.a.>"]"#, 0),
        (r#"["$JS.>"],"no_ack":true"#, 0),
        (r#"[">"],"no_ack":true"#, 0),
    ] {
        assert_eq!(
            copy(&format!(r#""subjects":{subjects}"#)),
            expected,
            "{subjects}"
        );
    }
}

/// Fields of an origin, and the expected error codes of a mirror and of a source.
const ORIGINS: &[(&str, u16, u16)] = &[
    (r#""name":"O""#, 0, 0),
    (r#""name":"S""#, 10052, 10052),
    (r#""name":"""#, 10142, 10141),
    (r#""name":"O","filter_subject":"a b""#, 10049, 10049),
    (
        r#""name":"O","filter_subject":"a","subject_transforms":[{"src":"b","dest":"c"}]"#,
        10150,
        10144,
    ),
    (
        r#""name":"O","subject_transforms":[{"src":"o..","dest":"c"}]"#,
        10151,
        10145,
    ),
    (
        r#""name":"O","subject_transforms":[{"src":"o.*","dest":"$3"}]"#,
        10154,
        10146,
    ),
    (
        r#""name":"O","subject_transforms":[{"src":"o.*","dest":"a"},{"src":"o.a","dest":"b"}]"#,
        10152,
        10147,
    ),
    (
        r#""name":"O","external":{"api":"$JS.API","deliver":""}"#,
        10021,
        10021,
    ),
    (
        r#""name":"O","external":{"api":"$JS.x.API","deliver":"d.*"}"#,
        10024,
        10024,
    ),
    (
        r#""name":"O","external":{"api":"a b","deliver":""}"#,
        10052,
        10052,
    ),
    (
        r#""name":"S","external":{"api":"$JS.x.API","deliver":""}"#,
        0,
        0,
    ),
    (r#""name":"O","consumer":{"name":"x"}"#, 10213, 10215),
    (
        r#""name":"O","consumer":{"name":"x","deliver_subject":"d"}"#,
        0,
        0,
    ),
    (r#""name":"O","foo":1"#, 10025, 10025),
    (r#""name":"O","opt_start_time":"x""#, 10025, 10025),
];

#[test]
fn mirrors_and_sources_get_nats_server_errors() {
    for (fields, mirror, source) in ORIGINS {
        assert_eq!(
            copy(&format!(r#""mirror":{{{fields}}}"#)),
            *mirror,
            "{fields}"
        );
        assert_eq!(
            copy(&format!(r#""sources":[{{{fields}}}]"#)),
            *source,
            "{fields}"
        );
    }
    for (fields, expected) in [
        (r#""mirror":{"name":"O"},"subjects":["s"]"#, 10034),
        (r#""mirror":{"name":"O"},"sources":[{"name":"O"}]"#, 10031),
        (r#""mirror":{"name":"O"},"first_seq":1"#, 10143),
        (r#""mirror":{"name":"O"},"allow_msg_counter":true"#, 10173),
        (r#""mirror":{"name":"O"},"allow_atomic":true"#, 10198),
        (r#""mirror":{"name":"O"},"allow_batched":true"#, 10209),
        (r#""mirror":{"name":"O"},"allow_msg_schedules":true"#, 10186),
        (
            r#""mirror":{"name":"O"},"subject_delete_marker_ttl":1000000000"#,
            10052,
        ),
        (r#""sources":[{"name":"O"},{"name":"O"}]"#, 10140),
        (
            r#""sources":[{"name":"O"},{"name":"O","filter_subject":"a"}]"#,
            0,
        ),
        (
            r#""sources":[{"name":"O"}],"allow_msg_schedules":true"#,
            10187,
        ),
    ] {
        assert_eq!(copy(fields), expected, "{fields}");
    }
}

#[test]
fn checked_stream_configs_print_as_in_nats_server() {
    let config = stream(Pedantry::Lax, "").1.unwrap();
    let expected = r#"{"name":"S","subjects":["s.>"],"retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0,"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","storage":"file","num_replicas":1,"duplicate_window":120000000000,"compression":"none","allow_direct":false,"mirror_direct":false,"sealed":false,"deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false}"#;
    assert_eq!(serde_json::to_string(&config).unwrap(), expected);
}

#[test]
fn changed_stream_configs_get_nats_server_errors() {
    for (was, becomes, expected) in [
        ("", "", 0),
        ("", r#""storage":"memory""#, 10052),
        ("", r#""retention":"interest""#, 0),
        ("", r#""retention":"workqueue""#, 10052),
        ("", r#""sealed":true"#, 0),
        (r#""deny_delete":true"#, "", 10052),
        (r#""deny_purge":true"#, "", 10052),
        ("", r#""mirror":{"name":"O"}"#, 10034),
        (r#""allow_msg_ttl":true"#, "", 10052),
        ("", r#""allow_msg_counter":true"#, 10052),
        (r#""allow_msg_schedules":true"#, "", 10052),
        ("", r#""persist_mode":"async""#, 10052),
        ("", r#""allow_atomic":true"#, 0),
        (r#""max_msg_size":5"#, r#""max_msg_size":3"#, 0),
    ] {
        let old = stream(Pedantry::Lax, was).1.unwrap();
        let comma = if becomes.is_empty() { "" } else { "," };
        let json = format!(r#"{{"name":"S","subjects":["s.>"]{comma}{becomes}}}"#);
        let wanted = decode(json.as_bytes(), Strictness::Strict).unwrap();
        assert_eq!(
            answer(old.updated(wanted, Pedantry::Lax)).0,
            expected,
            "{was} to {becomes}"
        );
    }
}

/// Checks a consumer with these fields. `on` contains the fields of its stream.
fn consumer(on: &str, fields: &str) -> (u16, Option<ConsumerConfig>) {
    let stream = stream(Pedantry::Lax, on).1.unwrap();
    let requested =
        decode::<ConsumerConfig>(format!("{{{fields}}}").as_bytes(), Strictness::Strict);
    answer(requested.and_then(|config| config.checked(&stream, Pedantry::Lax)))
}

#[test]
fn pedantic_consumer_configs_get_nats_server_errors() {
    let stream = stream(Pedantry::Lax, "").1.unwrap();
    for (fields, expected) in [
        (r#""max_deliver":-1,"max_ack_pending":-1"#, 0),
        (r#""max_deliver":-2"#, 10157),
        (r#""max_ack_pending":-2"#, 10157),
        (r#""max_waiting":-1"#, 10157),
        (r#""max_batch":-1"#, 10157),
        (r#""max_expires":-1"#, 10157),
        (r#""max_bytes":-1"#, 10157),
        (r#""idle_heartbeat":-1"#, 10157),
        (r#""inactive_threshold":-1"#, 10157),
        (r#""priority_timeout":-1"#, 10157),
        (r#""ack_wait":-1"#, 10183),
    ] {
        let body = format!(r#"{{"ack_policy":"explicit",{fields}}}"#);
        let requested = decode::<ConsumerConfig>(body.as_bytes(), Strictness::Strict).unwrap();
        let found = answer(requested.checked(&stream, Pedantry::Pedantic)).0;
        assert_eq!(found, expected, "{fields}");
    }
}

#[test]
fn pull_consumer_configs_get_nats_server_errors() {
    for (fields, expected) in [
        ("", 0),
        (r#""ack_wait":-1"#, 10183),
        (r#""max_deliver":-2"#, 0),
        (r#""rate_limit_bps":1"#, 10086),
        (r#""max_expires":1"#, 10115),
        (r#""idle_heartbeat":1"#, 10088),
        (r#""flow_control":true"#, 10089),
        (r#""direct":true"#, 10090),
        (r#""num_replicas":-1"#, 10133),
        (r#""num_replicas":3"#, 10126),
        (r#""opt_start_seq":1"#, 10094),
        (r#""deliver_policy":"by_start_sequence""#, 10094),
        (
            r#""deliver_policy":"by_start_sequence","opt_start_seq":3"#,
            0,
        ),
        (
            r#""deliver_policy":"by_start_time","opt_start_seq":3"#,
            10094,
        ),
        (r#""deliver_policy":"last_per_subject""#, 10094),
        (
            r#""deliver_policy":"last_per_subject","filter_subject":"s.a""#,
            0,
        ),
        (r#""deliver_policy":"first""#, 10025),
        (r#""ack_policy":"none","max_ack_pending":5"#, 0),
        (r#""ack_policy":"flow_control""#, 10218),
        (
            r#""ack_policy":"explicit","backoff":[1,1],"max_deliver":1"#,
            10116,
        ),
        (r#""ack_policy":"explicit","backoff":[-1]"#, 10184),
        (r#""filter_subject":"s.a","filter_subjects":["s.b"]"#, 10136),
        (r#""filter_subjects":["s.a","s.*"]"#, 10138),
        (r#""filter_subjects":[""]"#, 10139),
        (r#""filter_subject":"s..""#, 10052),
        (r#""filter_subject":"elsewhere""#, 0),
        (r#""sample_freq":"30%""#, 0),
        (r#""sample_freq":"often""#, 10095),
        (r#""sample_freq":"-1""#, 10095),
        (r#""pause_until":"x""#, 10025),
        (r#""priority_groups":["g"]"#, 10196),
        (r#""priority_timeout":1"#, 10197),
        (r#""priority_policy":"overflow""#, 10159),
        (
            r#""priority_policy":"overflow","priority_groups":[""]"#,
            10161,
        ),
        (
            r#""priority_policy":"overflow","priority_groups":["a b"]"#,
            10162,
        ),
        (
            r#""priority_policy":"prioritized","priority_groups":["g"]"#,
            0,
        ),
        (r#""name":"a*""#, 10052),
        (r#""name":"a/b""#, 10127),
        (r#""foo":1"#, 10025),
    ] {
        assert_eq!(consumer("", fields).0, expected, "{fields}");
    }
}

#[test]
fn push_consumer_configs_get_nats_server_errors() {
    for (fields, expected) in [
        (r#""deliver_subject":"d""#, 0),
        (r#""deliver_subject":"d.*""#, 10079),
        (r#""deliver_subject":"d..""#, 10112),
        (r#""deliver_subject":"s.x""#, 10081),
        (r#""deliver_subject":"d","max_waiting":1"#, 10080),
        (r#""deliver_subject":"d","idle_heartbeat":1"#, 10083),
        (r#""deliver_subject":"d","flow_control":true"#, 10108),
        (r#""deliver_subject":"d","max_ack_pending":1"#, 10082),
        (
            r#""deliver_subject":"d","max_ack_pending_per_subject":1"#,
            10082,
        ),
        (
            r#""deliver_subject":"d","metadata":{"fanline.max_ack_pending_per_subject":"1"}"#,
            10082,
        ),
        (
            r#""deliver_subject":"d","metadata":{"fanline.max_ack_pending_per_subject":"x"}"#,
            10094,
        ),
        (
            r#""deliver_subject":"d","direct":true,"durable_name":"x""#,
            10091,
        ),
        (
            r#""deliver_subject":"d","priority_policy":"overflow","priority_groups":["g"]"#,
            10178,
        ),
        (r#""deliver_subject":"d","ack_policy":"flow_control""#, 0),
        (
            r#""deliver_subject":"d","ack_policy":"flow_control","ack_wait":1"#,
            10221,
        ),
        (
            r#""deliver_subject":"d","ack_policy":"flow_control","max_deliver":1"#,
            10222,
        ),
    ] {
        assert_eq!(consumer("", fields).0, expected, "{fields}");
    }
}

#[test]
fn consumers_of_work_queues_and_limited_streams_get_nats_server_errors() {
    let queue = r#""retention":"workqueue""#;
    let limits = r#""consumer_limits":{"inactive_threshold":10000000000,"max_ack_pending":50}"#;
    for (on, fields, expected) in [
        (queue, r#""ack_policy":"explicit""#, 0),
        (queue, r#""ack_policy":"none""#, 10084),
        (queue, r#""ack_policy":"all""#, 10098),
        (queue, r#""deliver_subject":"d""#, 10098),
        (queue, r#""deliver_subject":"d","direct":true"#, 0),
        (
            queue,
            r#""ack_policy":"explicit","deliver_policy":"new""#,
            10101,
        ),
        (limits, r#""ack_policy":"explicit""#, 0),
        (
            limits,
            r#""ack_policy":"explicit","max_ack_pending":100"#,
            10121,
        ),
        (limits, r#""ack_policy":"explicit","max_ack_pending":-1"#, 0),
        (limits, r#""inactive_threshold":20000000000"#, 10153),
    ] {
        assert_eq!(consumer(on, fields).0, expected, "{on}: {fields}");
    }
}

#[test]
fn checked_consumer_configs_print_as_in_nats_server() {
    for (fields, expected) in [
        (
            "",
            r#"{"deliver_policy":"all","ack_policy":"none","max_deliver":-1,"replay_policy":"instant","max_waiting":512,"inactive_threshold":5000000000,"num_replicas":0}"#,
        ),
        (
            r#""durable_name":"a","ack_policy":"explicit""#,
            r#"{"durable_name":"a","deliver_policy":"all","ack_policy":"explicit","ack_wait":30000000000,"max_deliver":-1,"replay_policy":"instant","max_waiting":512,"max_ack_pending":1000,"num_replicas":0}"#,
        ),
    ] {
        let config = consumer("", fields).1.unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), expected);
    }
}

#[test]
fn levels() {
    for (fields, expected) in [
        ("", 0),
        (r#""allow_msg_ttl":true"#, 1),
        (r#""allow_msg_counter":true"#, 2),
        (r#""persist_mode":"async""#, 2),
        (r#""allow_batched":true"#, 4),
    ] {
        let level = stream(Pedantry::Lax, fields).1.unwrap().required_level();
        assert_eq!(level, expected, "{fields}");
    }
}
