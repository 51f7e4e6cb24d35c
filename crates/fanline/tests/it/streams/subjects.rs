//! Streams, sinks, and futures of subjects.

use std::sync::Arc;

use fanline::stream::{Bounded, Lagged, SubjectEnded, Unbounded};
use fanline::{AsyncSubject, BehaviorSubject, ObservableExt, Replay, ReplaySubject, Subject};
use futures::executor::block_on;
use futures::{SinkExt, StreamExt, stream};

#[test]
fn stream_starts_with_retained_values() {
    let (mut tx, source) = fanline::replay::<u32>(Replay::many(2));
    tx.next_slice(&[1, 2, 3]);
    let all = source.clone().into_stream(Bounded::block(1));
    let last = source.into_stream(Bounded::drop_oldest(1).report_lag());
    tx.complete();
    assert!(all.blocking_iter().eq([2, 3]));
    assert!(last.blocking_iter().eq([Err(Lagged(1)), Ok(3)]));
}

#[test]
fn stream_ends_with_every_end_of_subject() {
    type End = fn(Subject<u32>);
    let ends: [(&str, End); 3] = [
        ("complete", |subject| subject.complete()),
        ("dispose", |subject| subject.dispose()),
        ("drop", drop),
    ];
    for (name, end) in ends {
        let subject = Subject::new();
        let stream = subject.clone().into_stream(Unbounded);
        subject.next(1);
        end(subject);
        assert!(stream.blocking_iter().eq([1]), "{name}");
    }
}

#[test]
fn dropped_stream_or_future_unsubscribes() {
    let subject = Subject::<u32>::new();
    let streams = (
        subject.clone().into_stream(Unbounded),
        subject.clone().into_stream(Bounded::fail(1)),
    );
    let futures = (subject.clone().first_value(), subject.clone().last_value());
    assert_eq!(subject.observer_count(), 4);
    drop(streams);
    assert_eq!(subject.observer_count(), 2);
    drop(futures);
    assert!(!subject.has_observers());
}

#[test]
fn dropped_stream_unblocks_subject() {
    for taken in 0..3 {
        let subject = Subject::<u32>::new();
        let other = subject.clone().into_stream(Unbounded);
        let mut stream = subject.clone().into_stream(Bounded::block(1));
        let producer = std::thread::spawn(move || {
            (0..10).for_each(|value| subject.next(value));
            subject.observer_count()
        });
        for value in 0..taken {
            assert_eq!(stream.blocking_next(), Some(value));
        }
        drop(stream);
        assert_eq!(producer.join().unwrap(), 1);
        assert!(
            other.blocking_iter().eq(0..10),
            "no other observer lost a value"
        );
    }
}

#[test]
fn streams_of_one_subject_see_same_order() {
    let subject = Subject::<u32>::new();
    let streams = [(); 3].map(|()| subject.clone().into_stream(Unbounded));
    let producers: Vec<_> = (0..3)
        .map(|thread_index| {
            let subject = subject.clone();
            std::thread::spawn(move || {
                (0..5_000).for_each(|value| subject.next(value * 3 + thread_index))
            })
        })
        .collect();
    let readers: Vec<_> = streams
        .into_iter()
        .map(|stream| std::thread::spawn(move || stream.blocking_iter().collect::<Vec<_>>()))
        .collect();
    for producer in producers {
        producer.join().unwrap();
    }
    subject.complete();
    let seen: Vec<_> = readers
        .into_iter()
        .map(|reader| reader.join().unwrap())
        .collect();
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    let mut sorted = seen[0].clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..15_000));
}

#[test]
fn producer_is_a_sink() {
    block_on(async {
        let (mut tx, source) = fanline::replay::<u32>(Replay::all());
        tx.send(1).await.unwrap();
        tx.send_all(&mut stream::iter([Ok(2), Ok(3)]))
            .await
            .unwrap();
        assert!(!source.has_ended());
        tx.close().await.unwrap();
        assert!(source.has_ended());
        assert_eq!(tx.send(4).await, Err(SubjectEnded));
        tx.next(5);
        tx.close().await.unwrap();
        let stream = source.into_stream(Unbounded);
        assert_eq!(stream.collect::<Vec<_>>().await, [1, 2, 3]);
        drop(tx);
    });
}

#[test]
fn failed_forward_leaves_producer_open() {
    block_on(async {
        let (mut tx, source) = fanline::subject::<u32>();
        let stream = source.into_stream(Unbounded);
        let results = stream::iter([Ok(1), Err(SubjectEnded), Ok(2)]);
        assert_eq!(results.forward(&mut tx).await, Err(SubjectEnded));
        tx.next(3);
        tx.complete();
        assert_eq!(stream.collect::<Vec<_>>().await, [1, 3]);
    });
}

/// Sends through a handle and through a reference to a handle, and closes the sink.
macro_rules! check_sink {
    ($subject:expr, $expected:expr) => {
        block_on(async {
            let mut subject = $subject;
            let stream = subject.clone().into_stream(Unbounded);
            subject.send(1).await.unwrap();
            (&subject).send(2).await.unwrap();
            (&subject).close().await.unwrap();
            assert!(subject.has_ended());
            assert_eq!((&subject).send(3).await, Err(SubjectEnded));
            assert_eq!(stream.collect::<Vec<u32>>().await, $expected);
        })
    };
}

#[test]
fn shared_subject_is_a_sink() {
    check_sink!(Subject::<u32>::new(), [1, 2]);
    check_sink!(BehaviorSubject::new(0_u32), [0, 1, 2]);
    check_sink!(AsyncSubject::<u32>::new(), [2]);
    check_sink!(ReplaySubject::<u32>::new(Replay::one()), [1, 2]);
    let disposed = Subject::<u32>::new();
    disposed.dispose();
    assert_eq!(block_on((&disposed).send(1)), Err(SubjectEnded));
}

#[test]
fn async_subject_is_a_future() {
    type Play = fn(&AsyncSubject<u32, &'static str>);
    let table: [(Play, Result<Option<u32>, &str>); 4] = [
        (|subject| subject.complete(), Ok(None)),
        (
            |subject| {
                subject.next(1);
                subject.next(2);
                subject.complete();
            },
            Ok(Some(2)),
        ),
        (
            |subject| {
                subject.next(1);
                subject.error("gone");
            },
            Err("gone"),
        ),
        (
            |subject| {
                subject.next(1);
                subject.dispose();
            },
            Ok(None),
        ),
    ];
    for (play, expected) in table {
        let subject = AsyncSubject::with_error();
        let early = (&subject).into_future();
        play(&subject);
        assert_eq!(block_on(early), expected);
        assert_eq!(block_on((&subject).into_future()), expected, "late");
        assert_eq!(subject.blocking_wait(), expected);
        assert_eq!(block_on(subject.into_future()), expected, "the last handle");
    }
}

#[test]
fn awaiting_last_handle_of_async_subject_returns_none() {
    let subject = AsyncSubject::<u32>::new();
    subject.next(1);
    assert_eq!(block_on(subject.into_future()), Ok(None));
}

#[test]
fn async_subject_completed_on_another_thread_wakes_future() {
    for _ in 0..100 {
        let subject = AsyncSubject::<Arc<u32>>::new();
        let answer = subject.clone();
        let thread = std::thread::spawn(move || {
            answer.next(Arc::new(7));
            answer.complete();
        });
        let value = block_on(async { (&subject).await });
        assert_eq!(value, Ok(Some(Arc::new(7))));
        thread.join().unwrap();
    }
}
