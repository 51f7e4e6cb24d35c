use super::{Bench, check};

const CONFIG: &str = r#""subjects":["d.>"],"allow_msg_schedules":true,"allow_msg_ttl":true,"allow_rollup_hdrs":true"#;

#[test]
fn invalid_schedules_are_refused() {
    let pattern = "!10189 message schedules pattern is invalid";
    let target = "!10190 message schedules target is invalid";
    let source = "!10203 message schedules source is invalid";
    let rollup = "!10192 message schedules invalid rollup";
    let every = |more: &str| format!("d.s |Nats-Schedule: @every 1s|{more}| body");
    let to_t = |more: &str| every(&format!("Nats-Schedule-Target: d.t|{more}"));
    check(
        CONFIG,
        &[
            (
                "d.s |Nats-Schedule: x|Nats-Schedule-Target: d.t| body",
                pattern,
            ),
            ("d.s |Nats-Schedule: @every 1s| body", target),
            (&every("Nats-Schedule-Target: d.t"), "=1"),
            (
                "d.s |Nats-Schedule: @daily|Nats-Schedule-Target: d.t|Nats-Schedule-Time-Zone: x/y| b",
                "!10223 message schedules time zone is invalid",
            ),
            (&to_t("Nats-Schedule-Time-Zone: Europe/Rome"), pattern),
            (&every("Nats-Schedule-Target: d.s"), target),
            (&every("Nats-Schedule-Target: q.s"), target),
            (&every("Nats-Schedule-Target: d.*"), target),
            (
                &to_t("Nats-Schedule-TTL: x"),
                "!10191 message schedules invalid per-message TTL",
            ),
            (&to_t("Nats-Schedule-TTL: 5"), "=2"),
            (&to_t("Nats-Schedule-Source: d.*"), source),
            (&to_t("Nats-Schedule-Source: d.t"), source),
            (&to_t("Nats-Schedule-Source: d.s"), source),
            (&to_t("Nats-Schedule-Source: q.x"), source),
            (&to_t("Nats-Schedule-Source: d.src"), "=3"),
            (&to_t("Nats-Schedule-Rollup: all"), rollup),
            (&to_t("Nats-Rollup: all"), rollup),
            (&to_t("Nats-Rollup: sub"), "=4"),
            ("d.s |Nats-Schedule:|Nats-Schedule-Target: d.t| body", "=5"),
        ],
    );
}

#[test]
fn schedules_publish_once_or_repeatedly() {
    let mut bench = Bench::new(CONFIG);
    bench.publish(
        "d.x |Nats-Schedule: @at 2020-01-01T00:00:00Z|Nats-Schedule-Target: d.at|Own: 1| at",
    );
    bench.publish(
        "d.y |Nats-Schedule: @every 1s|Nats-Schedule-Target: d.ev|Nats-Schedule-TTL: 60|Nats-TTL: 30|Own: 1|Nats-Msg-Id: 7| ev",
    );
    bench.publish("d.src |A: b|Nats-Expected-Stream: S| copied");
    bench.publish(
        "d.z |Nats-Schedule: @every 1s|Nats-Schedule-Target: d.c|Nats-Schedule-Source: d.src|Nats-Schedule-Rollup: sub| z",
    );
    // The schedule was published at 9.64 s. Due times are rounded to full seconds, so they are 11 s and 12 s.
    bench.wait(2_500);
    let all = bench.records();
    assert_eq!(
        all[0],
        "2 d.y |Nats-Schedule: @every 1s|Nats-Schedule-Target: d.ev|Nats-Schedule-TTL: 60|Nats-TTL: 30|Own: 1|Nats-Msg-Id: 7|Nats-Rollup: sub| ev"
    );
    assert_eq!(
        all[3..],
        [
            "5 d.at |Own: 1|Nats-Scheduler: d.x|Nats-Schedule-Next: purge| at",
            "6 d.ev |Own: 1|Nats-Scheduler: d.y|Nats-Schedule-Next: 2026-11-21T22:33:12Z|Nats-TTL: 60| ev",
            "8 d.ev |Own: 1|Nats-Scheduler: d.y|Nats-Schedule-Next: 2026-11-21T22:33:13Z|Nats-TTL: 60| ev",
            "9 d.c |A: b|Nats-Scheduler: d.z|Nats-Schedule-Next: 2026-11-21T22:33:13Z|Nats-Rollup: sub| copied",
        ]
    );
}

/// If the source subject has no record, the schedule's own content is published, as in nats-server.
#[test]
fn schedule_without_source_record_publishes_own_content() {
    let mut bench = Bench::new(CONFIG);
    bench.publish(
        "d.s |Nats-Schedule: @at 2020-01-01T00:00:00Z|Nats-Schedule-Target: d.t|Nats-Schedule-Source: d.src|Own: 1| own",
    );
    bench.wait(500);
    assert_eq!(
        bench.records(),
        ["2 d.t |Own: 1|Nats-Scheduler: d.s|Nats-Schedule-Next: purge| own"]
    );
}

#[test]
fn message_on_its_subject_ends_a_schedule() {
    let mut bench = Bench::new(CONFIG);
    bench.publish("d.s |Nats-Schedule: @every 1s|Nats-Schedule-Target: d.t| body");
    bench.publish("d.s stop");
    assert_eq!(bench.stream.next_timeout(), None);
    bench.publish("d.s |Nats-Schedule: @every 1s|Nats-Schedule-Target: d.t| body");
    bench.stream.delete_message(3, false, bench.now).unwrap();
    bench.wait(2_000);
    assert_eq!(bench.records(), Vec::<String>::new());
}

/// Schedules are recovered from the log. If several messages were due while the server was down, one is
/// published.
#[test]
fn schedules_are_recovered_after_restart() {
    let mut bench = Bench::new(CONFIG);
    bench.publish("d.s |Nats-Schedule: @every 1s|Nats-Schedule-Target: d.t| body");
    bench.wait(1_500);
    assert_eq!(bench.records().len(), 2);
    bench.stream.schedules = super::super::Schedules::default();
    bench.now.unix_nanos += 60_000_000_000;
    bench.stream.clock = bench.now;
    bench.stream.recover_subjects().unwrap();
    bench.wait(0);
    let all = bench.records();
    assert_eq!(all.len(), 3);
    assert!(
        all[2].contains("Nats-Schedule-Next: 2026-11-21T22:34:12Z"),
        "{}",
        all[2]
    );
}
