use proptest::prelude::*;

use super::{Bench, check, parsed};
use crate::jetstream::Message;
use crate::jetstream::stream::messages::Purge;

#[test]
fn discard_new_refuses_at_limits() {
    let full = "!10077 maximum messages exceeded";
    let subject_full = "!10077 maximum messages per subject exceeded";
    let bytes = "!10077 maximum bytes exceeded";
    for (config, answers) in [
        (r#""max_msgs":1"#, ["=1", full, full]),
        (r#""max_bytes":30"#, ["=1", bytes, bytes]),
        (r#""max_bytes":10"#, [bytes, bytes, bytes]),
        (
            r#""max_msgs_per_subject":1,"discard_new_per_subject":true"#,
            ["=1", subject_full, subject_full],
        ),
        (r#""max_msgs_per_subject":1"#, ["=1", "=2", "=3"]),
        (
            r#""max_msgs":1,"max_msgs_per_subject":1,"discard_new_per_subject":true"#,
            ["=1", subject_full, subject_full],
        ),
        (
            r#""max_msgs":1,"max_msgs_per_subject":1"#,
            ["=1", "=2", "=3"],
        ),
    ] {
        let config = format!(r#""subjects":["s"],"discard":"new",{config}"#);
        check(
            &config,
            &[
                ("s xx", answers[0]),
                ("s xxxx", answers[1]),
                ("s xxxxxxxx", answers[2]),
            ],
        );
    }
}

#[test]
fn deletes_and_purges_are_refused() {
    let mut bench = Bench::new(r#""subjects":["s"],"deny_delete":true,"deny_purge":true"#);
    bench.publish("s x");
    let refused = bench.stream.delete_message(1, true, bench.now).unwrap_err();
    assert_eq!(refused.to_string(), "message delete not permitted (10057)");
    let refused = bench
        .stream
        .purge(&Purge::default(), bench.now, &mut bench.port)
        .unwrap_err();
    assert_eq!(refused.to_string(), "stream purge not permitted (10110)");
    let mut bench = Bench::new(r#""subjects":["s"]"#);
    bench.publish("s x");
    for (sequence, text) in [
        (9, "stream store EOF (10057)"),
        (0, "no message found (10057)"),
    ] {
        let refused = bench
            .stream
            .delete_message(sequence, true, bench.now)
            .unwrap_err();
        assert_eq!(refused.to_string(), text);
    }
    assert_eq!(bench.stream.delete_message(1, true, bench.now), Ok(()));
    assert_eq!(bench.records(), Vec::<String>::new());
}

/// An event that affects a stream.
#[derive(Clone, Debug)]
enum Step {
    Publish {
        subject: usize,
        rollup: Option<&'static str>,
        id: Option<u8>,
    },
    Wait(u64),
    Delete(u64),
    Purge {
        subject: usize,
        keep: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let rollup = prop_oneof![6 => Just(None), 1 => Just(Some("sub")), 1 => Just(Some("all"))];
    prop_oneof![
        8 => (0_usize..3, rollup, prop::option::of(0_u8..4))
            .prop_map(|(subject, rollup, id)| Step::Publish { subject, rollup, id }),
        1 => (1_u64..400).prop_map(Step::Wait),
        1 => (1_u64..30).prop_map(Step::Delete),
        1 => (0_usize..3, 0_u64..3).prop_map(|(subject, keep)| Step::Purge { subject, keep }),
    ]
}

const SUBJECTS: [&str; 3] = ["s.a", "s.b", "s.c"];
const AGE_MILLIS: u64 = 500;
const WINDOW_MILLIS: u64 = 300;

/// A minimal model of a stream with limits.
#[derive(Default)]
struct Model {
    messages_max: usize,
    per_subject_max: usize,
    discard_new: bool,
    now: u64,
    last: u64,
    /// Sequence, subject, and time of each record.
    records: Vec<(u64, usize, u64)>,
    ids: Vec<(u8, u64, u64)>,
}

impl Model {
    fn publish(&mut self, subject: usize, rollup: Option<&str>, id: Option<u8>) -> String {
        let now = self.now;
        self.ids.retain(|(_, _, at)| at + WINDOW_MILLIS > now);
        if let Some((_, sequence, _)) = self.ids.iter().find(|(known, _, _)| Some(*known) == id) {
            return format!("={sequence},\"duplicate\": true");
        }
        let of_subject = self
            .records
            .iter()
            .filter(|(_, s, _)| *s == subject)
            .count();
        let replaces = of_subject >= self.per_subject_max;
        if self.discard_new && self.records.len() - usize::from(replaces) >= self.messages_max {
            return "!10077 maximum messages exceeded".to_owned();
        }
        self.last += 1;
        if replaces {
            let first = self
                .records
                .iter()
                .position(|(_, s, _)| *s == subject)
                .unwrap();
            self.records.remove(first);
        }
        let last = self.last;
        self.records.push((last, subject, now));
        if self.records.len() > self.messages_max {
            self.records.remove(0);
        }
        match rollup {
            Some("all") => self.records.retain(|(sequence, _, _)| *sequence == last),
            Some(_) => self
                .records
                .retain(|(sequence, s, _)| *sequence == last || *s != subject),
            None => {}
        }
        self.ids.extend(id.map(|id| (id, self.last, now)));
        format!("={}", self.last)
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        let now = self.now;
        self.records.retain(|(_, _, at)| at + AGE_MILLIS > now);
    }

    fn purge(&mut self, subject: usize, keep: u64) {
        let of_subject = self
            .records
            .iter()
            .filter(|(_, s, _)| *s == subject)
            .count();
        let mut goes = of_subject.saturating_sub(usize::try_from(keep).unwrap());
        self.records.retain(|(_, s, _)| {
            let removed = *s == subject && goes > 0;
            goes -= usize::from(removed);
            !removed
        });
    }
}

proptest! {
    #[test]
    fn limits_agree_with_model(
        steps in prop::collection::vec(step(), 1..80),
        messages_max in 1_usize..8,
        per_subject_max in 1_usize..5,
        discard_new: bool,
    ) {
        let discard = if discard_new { "new" } else { "old" };
        let mut bench = Bench::new(&format!(
            r#""subjects":["s.*"],"max_msgs":{messages_max},"max_msgs_per_subject":{per_subject_max},
               "discard":"{discard}","allow_rollup_hdrs":true,"max_age":{},"duplicate_window":{}"#,
            AGE_MILLIS * 1_000_000, WINDOW_MILLIS * 1_000_000
        ));
        let mut model = Model { messages_max, per_subject_max, discard_new, ..Model::default() };
        for step in steps {
            match step {
                Step::Publish { subject, rollup, id } => {
                    let mut headers = String::new();
                    headers.extend(rollup.map(|value| format!("|Nats-Rollup: {value}")));
                    headers.extend(id.map(|id| format!("|Nats-Msg-Id: {id}")));
                    let bar = if headers.is_empty() { "" } else { "| " };
                    let answers = bench.publish(&format!("{} {headers}{bar}x", SUBJECTS[subject]));
                    prop_assert_eq!(answers, model.publish(subject, rollup, id));
                }
                Step::Wait(millis) => {
                    bench.wait(millis);
                    model.wait(millis);
                }
                Step::Delete(sequence) => {
                    let deleted = bench.stream.delete_message(sequence, false, bench.now).is_ok();
                    let before = model.records.len();
                    model.records.retain(|(known, _, _)| *known != sequence);
                    prop_assert_eq!(deleted, model.records.len() < before);
                }
                Step::Purge { subject, keep } => {
                    let filter = SUBJECTS[subject].as_bytes();
                    let purge = Purge { filter, below: None, keep };
                    let before = model.records.len();
                    model.purge(subject, keep);
                    let purged = bench.stream.purge(&purge, bench.now, &mut bench.port).unwrap();
                    prop_assert_eq!(purged, (before - model.records.len()) as u64);
                }
            }
            let found: Vec<_> = bench.records().iter()
                .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
            let expected: Vec<_> = model.records.iter()
                .map(|(sequence, subject, _)| format!("{sequence} {}", SUBJECTS[*subject])).collect();
            prop_assert_eq!(found, expected);
            let state = bench.stream.state();
            prop_assert_eq!((state.messages, state.last_sequence), (model.records.len() as u64, model.last));
        }
    }

    #[test]
    fn interest_stream_stores_exactly_needed_records(
        steps in prop::collection::vec((0_usize..3, 0_u64..4), 1..60),
        queue: bool,
    ) {
        let retention = if queue { "workqueue" } else { "interest" };
        let mut bench = Bench::new(&format!(r#""subjects":["s.*"],"retention":"{retention}""#));
        let consumer = |name: &str, filter: &str| serde_json::from_str(&format!(
            r#"{{"name":"{name}","durable_name":"{name}","ack_policy":"explicit","ack_wait":30000000000,
                "max_deliver":-1,"max_waiting":512,"max_ack_pending":1000,"filter_subject":"{filter}"}}"#
        )).unwrap();
        let filters: &[&str] = if queue { &["s.a", "s.b"] } else { &["s.a", "s.*"] };
        for (name, filter) in ["one", "two"].iter().zip(filters) {
            let (now, port) = (bench.now, &mut bench.port);
            bench.stream.with_consumers(now, port, |consumers, context| {
                consumers.create(consumer(name, filter), 0, context).unwrap()
            });
        }
        bench.stream.settle(bench.now, &mut bench.port);
        // Sequence and subject of each record, and whether each of the two consumers must still acknowledge
        // it.
        let mut model: Vec<(u64, usize, [bool; 2])> = Vec::new();
        for (subject, ack) in steps {
            let sequence = bench.publish(&format!("{} x", SUBJECTS[subject]));
            let sequence: u64 = sequence[1..].parse().unwrap();
            let wants = if queue { [subject == 0, subject == 1] } else { [subject == 0, true] };
            model.push((sequence, subject, wants));
            // One of the two consumers receives a record, and acknowledges it or does not.
            let which = usize::try_from(ack % 2).unwrap();
            let name = ["one", "two"][which];
            let (now, port) = (bench.now, &mut bench.port);
            bench.stream.with_consumers(now, port, |consumers, context| {
                let id = consumers.find(name).unwrap();
                let request = Message { reply: b"inbox", payload: br#"{"batch":1,"no_wait":true}"#, ..Message::default() };
                consumers.handle_pull(id, &request, context);
            });
            bench.stream.settle(now, &mut bench.port);
            let published = bench.port.take_published();
            let reply = published.iter().find_map(|line| line.split(' ').find(|word| word.starts_with("$JS.ACK.")));
            if let (Some(reply), true) = (reply, ack < 2) {
                let acked: u64 = reply.split('.').nth(5).unwrap().parse().unwrap();
                bench.stream.with_consumers(now, &mut bench.port, |consumers, context| {
                    consumers.handle_ack(&Message { subject: reply.as_bytes(), ..Message::default() }, context)
                });
                bench.stream.settle(now, &mut bench.port);
                for (sequence, _, wants) in &mut model {
                    if *sequence == acked { wants[which] = false; }
                }
                model.retain(|(sequence, _, wants)| {
                    if queue { *sequence != acked } else { wants.contains(&true) }
                });
            }
            let found: Vec<_> = bench.records().iter()
                .map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap()).collect();
            let expected: Vec<u64> = model.iter().map(|(sequence, _, _)| *sequence).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn update_enforces_new_limits() {
    let mut bench = Bench::new(r#""subjects":["s.*"]"#);
    for n in 0..6 {
        bench.publish(&format!("s.{} x", n % 2));
    }
    let config = parsed(r#""subjects":["s.*"],"max_msgs_per_subject":1"#);
    bench
        .stream
        .update(config, bench.now, &mut bench.port)
        .unwrap();
    assert_eq!(bench.records(), ["5 s.0 x", "6 s.1 x"]);
}
