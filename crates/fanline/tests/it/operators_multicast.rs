//! One subscription for many observers: publish, replay, share and their like.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use fanline::operators::{Connectable, Hub};
use fanline::scheduler::VirtualTime;
use fanline::{
    BehaviorSubject, Guard, Observable, ObservableExt, Replay, ReplaySubject, Source, Subject,
};

use crate::hand::{Cold, Hand, Log};

/// What the tables' words act on: `+x` and `-x` subscribe and unsubscribe the observer `x`, `c` connects,
/// `d` disconnects; a number is a value of the source, `|` its end, `#` its error.
struct Stage {
    source: Hand<u32>,
    logs: [(Log, Option<Guard>); 3],
}

/// Plays a script; what the observers `x`, `y` and `z` heard, and how often the source was subscribed.
#[track_caller]
fn check(
    subscribe: impl Fn(Log) -> Guard,
    connect: impl Fn() -> Guard,
    source: Hand<u32>,
    script: &str,
    heard: [&str; 3],
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
        assert_eq!(log.text(), heard[n], "{script}: observer {n}");
    }
    assert_eq!(stage.source.subscriptions(), subscriptions, "{script}");
    drop(connection);
    for (_, guard) in &mut stage.logs {
        *guard = None;
    }
    assert_eq!(stage.source.observers(), 0, "{script}: still subscribed");
    for (log, _) in &stage.logs {
        assert_eq!(log.handles(), 1, "{script}: an observer is kept");
    }
}

fn at(who: &str) -> usize {
    usize::from(who.as_bytes()[0] - b'x')
}

type Case = (&'static str, [&'static str; 3], usize);

#[track_caller]
fn check_connectable<H: Hub<u32, &'static str>>(
    build: impl Fn(Hand<u32>) -> Connectable<Hand<u32>, H>,
    table: &[Case],
) {
    for (script, heard, subscriptions) in table {
        let source = Hand::new();
        let shared = build(source.clone());
        check(
            |log| shared.subscribe_with(log),
            || shared.connect(),
            source,
            script,
            *heard,
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
fn guards_of_one_connection_are_alike() {
    let source = Hand::<u32>::new();
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
fn multicast_through_a_subject_of_ones_own() {
    check_connectable(
        |source| source.multicast(BehaviorSubject::with_error(0)),
        &[("+x c 1 +y", ["0 1", "1", ""], 1)],
    );
    // One that has ended stays so.
    check_connectable(
        |source| source.multicast(Subject::with_error()),
        &[("+x c 1 | c +y 2", ["1 |", "|", ""], 2)],
    );
    let subject = ReplaySubject::<u32, &'static str>::with_error(Replay::all());
    let source = Hand::new();
    let connection = source.clone().multicast(subject.clone()).connect();
    source.next(1);
    subject.complete();
    source.next(2);
    assert_eq!(source.observers(), 0, "nobody listens to an ended subject");
    assert_eq!(subject.snapshot(), [1], "what is retained stays");
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
    for (script, heard, subscriptions) in table {
        let source = Hand::new();
        let shared = source.clone().share();
        let subscribe = |log| shared.subscribe_with(log);
        check(
            subscribe,
            Guard::closed,
            source,
            script,
            *heard,
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
    for (script, heard, subscriptions) in table {
        let source = Hand::new();
        let shared = source.clone().share_replay(Replay::all());
        let subscribe = |log| shared.subscribe_with(log);
        check(
            subscribe,
            Guard::closed,
            source,
            script,
            *heard,
            *subscriptions,
        );
    }
}

#[test]
fn auto_connect() {
    for (count, script, heard, subscriptions) in [
        (2, "+x 1 +y 2 -x -y 3 +z 4", ["2", "2", "4"], 1),
        (0, "1 +x 2", ["2", "", ""], 1),
        (3, "+x +y 1", ["", "", ""], 0),
        (1, "+x 1 | +y", ["1 |", "|", ""], 1),
    ] {
        let source = Hand::<u32>::new();
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
            heard.map(str::to_owned),
            "{script}"
        );
        assert_eq!(source.subscriptions(), subscriptions, "{script}");
    }
}

#[test]
fn a_time_of_grace_keeps_the_connection() {
    let time = VirtualTime::new();
    let source = Hand::<u32>::new();
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
        "anew"
    );
    source.complete();
    drop(guard);
    assert_eq!(time.queued(), 0, "nothing waits after the end");
    assert_eq!(log.handles(), 1);
}

#[test]
fn a_source_that_ends_at_once_is_subscribed_by_each_in_turn() {
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
fn an_observer_that_has_enough_at_once_leaves_no_connection() {
    let source = Hand::<u32>::new();
    let shared = Cold::<u32>::new([1, 2], None)
        .concat(source.clone())
        .share();
    let log = Log::default();
    shared.clone().take(1).subscribe_with(log.clone()).detach();
    assert_eq!(log.text(), "1 |");
    assert_eq!((source.observers(), log.handles()), (0, 1));
}

#[test]
fn an_observer_that_panics_costs_the_others_nothing() {
    let source = Hand::<u32>::new();
    let shared = source.clone().share();
    let _bad = shared.subscribe(|_| panic!("told to"));
    let log = Log::default();
    let _good = shared.subscribe_with(log.clone());
    source.next(1);
    source.next(2);
    assert_eq!(log.text(), "1 2");
}

#[test]
fn values_are_not_cloned_for_observers() {
    #[derive(Debug)]
    struct Counted(Arc<AtomicUsize>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(&self.0))
        }
    }
    let clones = Arc::new(AtomicUsize::new(0));
    let source = Hand::<Counted>::new();
    let shared = source.clone().share();
    let _guards: Vec<Guard> = (0..3).map(|_| shared.subscribe(|_| ())).collect();
    source.next(Counted(Arc::clone(&clones)));
    assert_eq!(clones.load(Ordering::SeqCst), 0);
}

#[test]
fn a_source_that_goes_away_takes_the_observers_along() {
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
fn a_chain_on_a_shared_source() {
    let source = Hand::<u32>::new();
    let shared = source.clone().share();
    let sums = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&sums);
    let guard = shared
        .clone()
        .zip_with(shared.map(|value| value * 10), |a, b| a + b)
        .subscribe(move |sum| heard.lock().unwrap().push(*sum));
    source.next(1);
    source.next(2);
    assert_eq!(source.subscriptions(), 1);
    assert_eq!(*sums.lock().unwrap(), [11, 22]);
    drop(guard);
    assert_eq!(source.observers(), 0);
}

/// Subscribing and leaving on two threads: there is a connection exactly while somebody is there.
#[test]
fn coming_and_going_on_two_threads() {
    let source = Hand::<u32>::new();
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
