//! Operators that share one subscription among many observers: `publish`, `replay`, `share`, and similar
//! ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use fanline::operators::Connectable;
use fanline::policy::Flavor;
use fanline::scheduler::VirtualTime;
use fanline::{
    BehaviorSubject, CombineExt, Guard, Observable, ObservableExt, Replay, ReplaySubject, Source,
    Subject,
};

use crate::manual_source::{Cold, Log, ManualSource};

/// The source and the observers that a script uses. In a script, `+x` and `-x` subscribe and unsubscribe the
/// observer `x`, `c` connects, and `d` disconnects. A number is a value of the source, `|` its end, and `#`
/// its error.
struct Stage {
    source: ManualSource<u32>,
    logs: [(Log, Option<Guard>); 3],
}

/// Runs a script, and checks the logs of the observers `x`, `y`, and `z` and the number of subscriptions to
/// the source.
#[track_caller]
fn check(
    subscribe: impl Fn(Log) -> Guard,
    connect: impl Fn() -> Guard,
    source: ManualSource<u32>,
    script: &str,
    expected: [&str; 3],
    subscriptions: usize,
) {
    let mut stage = Stage {
        source,
        logs: Default::default(),
    };
    let mut connection = None;
    for word in script.split_whitespace() {
        match word {
            "c" => connection = Some(connect()),
            "d" => connection = None,
            "|" => stage.source.complete(),
            "#" => stage.source.error("lost"),
            _ => match word.split_at(1) {
                ("+", who) => {
                    let slot = &mut stage.logs[at(who)];
                    slot.1 = Some(subscribe(slot.0.clone()));
                }
                ("-", who) => stage.logs[at(who)].1 = None,
                _ => stage.source.next(word.parse().expect("a number")),
            },
        }
    }
    for (n, (log, _)) in stage.logs.iter().enumerate() {
        assert_eq!(log.text(), expected[n], "{script}: observer {n}");
    }
    assert_eq!(stage.source.subscriptions(), subscriptions, "{script}");
    drop(connection);
    for (_, guard) in &mut stage.logs {
        *guard = None;
    }
    assert_eq!(stage.source.observers(), 0, "{script}: still subscribed");
    for (log, _) in &stage.logs {
        assert_eq!(log.handles(), 1, "{script}: an observer was not dropped");
    }
}

fn at(who: &str) -> usize {
    usize::from(who.as_bytes()[0] - b'x')
}

type Case = (&'static str, [&'static str; 3], usize);

#[track_caller]
fn check_connectable<P: Flavor>(
    build: impl Fn(ManualSource<u32>) -> Connectable<ManualSource<u32>, P>,
    table: &[Case],
) {
    for (script, expected, subscriptions) in table {
        let source = ManualSource::new();
        let shared = build(source.clone());
        check(
            |log| shared.subscribe_with(log),
            || shared.connect(),
            source,
            script,
            *expected,
            *subscriptions,
        );
    }
}

#[test]
fn publish() {
    check_connectable(
        |source| source.publish(),
        &[
            ("+x 1 c 2 +y 3 d 4", ["2 3", "3", ""], 1),
            ("c 1 +x 2 | +y", ["2 |", "|", ""], 1),
            ("c +x # +y", ["#lost", "#lost", ""], 1),
            ("+x c 1 d 2 c 3", ["1 3", "", ""], 2),
            ("+x c 1 | c +y 2", ["1 |", "2", ""], 2),
            ("+x +y c 1 -x 2", ["1", "1 2", ""], 1),
        ],
    );
}

#[test]
fn any_guard_of_a_connection_disconnects() {
    let source = ManualSource::<u32>::new();
    let shared = source.clone().publish();
    let (first, second) = (shared.connect(), shared.connect());
    assert_eq!(source.subscriptions(), 1);
    drop(second);
    assert_eq!(source.observers(), 0);
    assert!(first.is_closed());
}

#[test]
fn replay() {
    check_connectable(
        |source| source.replay(Replay::many(2)),
        &[
            ("c 1 2 3 +x 4 +y", ["2 3 4", "3 4", ""], 1),
            ("c 1 | +x", ["1 |", "", ""], 1),
            ("c 1 d +x c 2", ["1 2", "", ""], 2),
            ("c 1 | +x c +y 2 +z", ["1 |", "2", "2"], 2),
        ],
    );
}

#[test]
fn multicast_through_custom_subject() {
    check_connectable(
        |source| source.multicast(BehaviorSubject::with_error(0)),
        &[("+x c 1 +y", ["0 1", "1", ""], 1)],
    );
    // A subject that has ended stays ended.
    check_connectable(
        |source| source.multicast(Subject::with_error()),
        &[("+x c 1 | c +y 2", ["1 |", "|", ""], 2)],
    );
    let subject = ReplaySubject::<u32, &'static str>::with_error(Replay::all());
    let source = ManualSource::new();
    let connection = source.clone().multicast(subject.clone()).connect();
    source.next(1);
    subject.complete();
    source.next(2);
    assert_eq!(source.observers(), 0, "an ended subject has no observers");
    assert_eq!(subject.snapshot(), [1], "retained values stay");
    assert!(connection.is_closed());
}

#[test]
fn share() {
    let table: &[Case] = &[
        ("1 +x 2 +y 3 -x 4 -y 5", ["2 3", "3 4", ""], 1),
        ("+x 1 -x 2 +y 3", ["1", "3", ""], 2),
        ("+x 1 | +y 2", ["1 |", "2", ""], 2),
        ("+x # +y #", ["#lost", "#lost", ""], 2),
        ("+x +y | +z", ["|", "|", ""], 2),
    ];
    for (script, expected, subscriptions) in table {
        let source = ManualSource::new();
        let shared = source.clone().share();
        let subscribe = |log| shared.subscribe_with(log);
        check(
            subscribe,
            Guard::closed,
            source,
            script,
            *expected,
            *subscriptions,
        );
    }
}

#[test]
fn share_replay() {
    let table: &[Case] = &[
        ("+x 1 2 +y 3", ["1 2 3", "1 2 3", ""], 1),
        ("+x 1 -x +y 2", ["1", "2", ""], 2),
        ("+x 1 | +y -x -y +z", ["1 |", "1 |", "1 |"], 1),
        ("+x 1 # +y", ["1 #lost", "1 #lost", ""], 1),
    ];
    for (script, expected, subscriptions) in table {
        let source = ManualSource::new();
        let shared = source.clone().share_replay(Replay::all());
        let subscribe = |log| shared.subscribe_with(log);
        check(
            subscribe,
            Guard::closed,
            source,
            script,
            *expected,
            *subscriptions,
        );
    }
}

#[test]
fn auto_connect() {
    for (count, script, expected, subscriptions) in [
        (2, "+x 1 +y 2 -x -y 3 +z 4", ["2", "2", "4"], 1),
        (0, "1 +x 2", ["2", "", ""], 1),
        (3, "+x +y 1", ["", "", ""], 0),
        (1, "+x 1 | +y", ["1 |", "|", ""], 1),
    ] {
        let source = ManualSource::<u32>::new();
        let shared = source.clone().publish().auto_connect(count);
        let logs: [Log; 3] = Default::default();
        let mut guards: [Option<Guard>; 3] = Default::default();
        for word in script.split_whitespace() {
            match word.split_at(1) {
                ("+", who) => guards[at(who)] = Some(shared.subscribe_with(logs[at(who)].clone())),
                ("-", who) => guards[at(who)] = None,
                ("|", _) => source.complete(),
                _ => source.next(word.parse().expect("a number")),
            }
        }
        assert_eq!(
            logs.each_ref().map(Log::text),
            expected.map(str::to_owned),
            "{script}"
        );
        assert_eq!(source.subscriptions(), subscriptions, "{script}");
    }
}

#[test]
fn grace_period_keeps_connection() {
    let time = VirtualTime::new();
    let source = ManualSource::<u32>::new();
    let shared = source
        .clone()
        .replay(Replay::one())
        .ref_count_with_grace(Duration::from_millis(10), time.clone());
    let wait = |millis| time.advance_by(Duration::from_millis(millis));
    let log = Log::default();

    drop(shared.subscribe_with(log.clone()));
    source.next(1);
    wait(9);
    let guard = shared.subscribe_with(log.clone());
    assert_eq!(log.text(), "1", "the same connection, the same subject");
    wait(20);
    assert_eq!((source.subscriptions(), source.observers()), (1, 1));

    drop(guard);
    wait(10);
    assert_eq!(source.observers(), 0);
    let guard = shared.subscribe_with(log.clone());
    assert_eq!(
        (source.subscriptions(), log.text().as_str()),
        (2, "1"),
        "a new connection"
    );
    source.complete();
    drop(guard);
    assert_eq!(time.queued(), 0, "nothing waits after the end");
    assert_eq!(log.handles(), 1);
}

#[test]
fn shared_cold_source_is_subscribed_by_each_observer() {
    let cold = Cold::<u32>::new([1, 2], Some(Ok(())));
    let shared = cold.clone().share();
    for _ in 0..2 {
        let log = Log::default();
        shared.subscribe_with(log.clone()).detach();
        assert_eq!(log.text(), "1 2 |");
    }
    assert_eq!(cold.subscriptions.load(Ordering::SeqCst), 2);

    let kept = cold.clone().share_replay(Replay::all());
    for _ in 0..2 {
        let log = Log::default();
        kept.subscribe_with(log.clone()).detach();
        assert_eq!(log.text(), "1 2 |");
    }
    assert_eq!(cold.subscriptions.load(Ordering::SeqCst), 3);
}

#[test]
fn immediately_closed_observer_leaves_no_connection() {
    let source = ManualSource::<u32>::new();
    let shared = Cold::<u32>::new([1, 2], None)
        .concat(source.clone())
        .share();
    let log = Log::default();
    shared.clone().take(1).subscribe_with(log.clone()).detach();
    assert_eq!(log.text(), "1 |");
    assert_eq!((source.observers(), log.handles()), (0, 1));
}

#[test]
fn panicking_observer_costs_others_nothing() {
    let source = ManualSource::<u32>::new();
    let shared = source.clone().share();
    let _bad = shared.subscribe(|_| panic!("on purpose"));
    let log = Log::default();
    let _good = shared.subscribe_with(log.clone());
    source.next(1);
    source.next(2);
    assert_eq!(log.text(), "1 2");
}

#[test]
fn share_does_not_clone_values() {
    #[derive(Debug)]
    struct Counted(Arc<AtomicUsize>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(&self.0))
        }
    }
    let clones = Arc::new(AtomicUsize::new(0));
    let source = ManualSource::<Counted>::new();
    let shared = source.clone().share();
    let _guards: Vec<Guard> = (0..3).map(|_| shared.subscribe(|_| ())).collect();
    source.next(Counted(Arc::clone(&clones)));
    assert_eq!(clones.load(Ordering::SeqCst), 0);
}

#[test]
fn dropped_source_drops_observers() {
    let subject = Subject::<u32, &'static str>::with_error();
    let shared = subject.source().share();
    let log = Log::default();
    shared.subscribe_with(log.clone()).detach();
    subject.next(1);
    assert_eq!(log.handles(), 2);
    drop(subject);
    assert_eq!((log.text().as_str(), log.handles()), ("1", 1));
}

#[test]
fn chain_on_shared_source_subscribes_once() {
    let source = ManualSource::<u32>::new();
    let shared = source.clone().share();
    let sums = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&sums);
    let guard = shared
        .clone()
        .zip_with(shared.map(|value| value * 10), |a, b| a + b)
        .subscribe(move |sum| received.lock().unwrap().push(*sum));
    source.next(1);
    source.next(2);
    assert_eq!(source.subscriptions(), 1);
    assert_eq!(*sums.lock().unwrap(), [11, 22]);
    drop(guard);
    assert_eq!(source.observers(), 0);
}

/// Two threads subscribe and unsubscribe. The source is connected exactly while there is an observer.
#[test]
fn share_connects_while_observers_exist_on_two_threads() {
    let source = ManualSource::<u32>::new();
    let shared = source.clone().share();
    for _ in 0..200 {
        let start = Arc::new(Barrier::new(2));
        let threads = [0, 1].map(|_| {
            let (shared, start) = (shared.clone(), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                for _ in 0..20 {
                    drop(shared.subscribe(|_| ()));
                }
                shared.subscribe(|_| ())
            })
        });
        let guards = threads.map(|thread| thread.join().unwrap());
        assert_eq!(source.observers(), 1);
        drop(guards);
        assert_eq!(source.observers(), 0);
    }
}

fn _is_cloneable_and_shared(source: Source<u32>) -> impl Clone + Send + Sync {
    source.share()
}
